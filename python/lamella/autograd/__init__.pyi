from collections.abc import Callable, Sequence
from typing import Any

from lamella import Tensor
from lamella import enable_grad as enable_grad
from lamella import inference_mode as inference_mode
from lamella import no_grad as no_grad
from lamella import set_grad_enabled as set_grad_enabled
from lamella.autograd import forward_ad as forward_ad
from lamella.autograd import function as function
from lamella.autograd import functional as functional
from lamella.autograd import grad_mode as grad_mode
from lamella.autograd import graph as graph

_Tensors = Tensor | Sequence[Tensor] | Any
_Grads = Tensor | Sequence[Tensor | None] | None

def backward(
    tensors: _Tensors,
    grad_tensors: _Grads = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: _Grads = None,
    inputs: _Tensors | None = None,
) -> None: ...
def grad(
    outputs: _Tensors,
    inputs: _Tensors,
    grad_outputs: _Grads = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]: ...
def gradcheck(fn: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> bool: ...
def gradgradcheck(fn: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> bool: ...

class Function:
    """A function whose forward and backward are static methods of a class derived from it."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any: ...
    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any: ...
    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any: ...
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any: ...
    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any: ...
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any: ...

class detect_anomaly:
    """Anomaly mode for a block."""

    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

class set_detect_anomaly:
    """Switches anomaly mode on or off: from now on, or for a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
