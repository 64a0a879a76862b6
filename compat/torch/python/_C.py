"""torch._C, as far as programs reach into it: lamella._C, and a few names of PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import lamella
import lamella._dispatch
import lamella.compat.futures
from lamella.compat._fallback import names_of
from lamella.compat._torch_function import (
    DisableTorchFunction as DisableTorchFunction,
)
from lamella.compat._torch_function import (
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)
from lamella.compat._torch_function import (
    _disabled_torch_function_impl as _disabled_torch_function_impl,
)
from lamella.nn.modules._to import to_arguments

# What TorchScript is made of: no object is of these classes.
_SCRIPT = frozenset(
    "Block CompilationUnit DeviceObjType Graph Node PyTorchFileReader PyTorchFileWriter TensorType "
    "Value".split()
)

# What PyTorch's library was built with: devices that there are none of here.
_DEVICES = frozenset({"_has_cuda", "_has_cudnn", "_has_mps", "_has_xpu", "has_cuda"})


def _more(name: str) -> Any:
    if name == "Future":
        return lamella.compat.futures.Future
    if name == "_functorch":
        return importlib.import_module("lamella.compat._batches")
    if name in _SCRIPT:
        return type(name, (), {"__module__": "torch._C"})
    if name in _DEVICES:
        return False
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *values: None
    return lamella.Tensor if name in ("TensorBase", "_TensorBase") else None


__getattr__, __dir__ = names_of("_C", _more)


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """DispatchKey.AutocastCPU is the key's name, which is what Lamella's functions take."""


class DispatchKeySet(lamella._dispatch.DispatchKeySet):
    """The set of one key, named; other sets join it by `|`. Keys that are not here add nothing."""

    def __new__(cls, key: Any) -> Any:
        bits = lamella._C._dispatch_key_bits(key) if isinstance(key, str) else key
        return super().__new__(cls, bits)


class _ExcludeDispatchKeyGuard:
    """A context in which calls do not meet some functionalities."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        self._taken = lamella._C._exclude_keys(self._keys, True)

    def __exit__(self, *error: Any) -> None:
        lamella._C._exclude_keys(self._taken, False)


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is traced by torch.jit."""


def _is_tracing() -> bool:
    """False."""
    return False


def _infer_size(a: Any, b: Any) -> Any:
    """The shape that two shapes broadcast to."""
    import lamella

    return lamella.broadcast_shapes(a, b)


def _get_privateuse1_backend_name() -> str:
    """The name of a device from outside."""
    from lamella.utils import backend_registration

    return getattr(backend_registration, "_name", None) or "privateuseone"


class _TensorMeta(type):
    """The type of classes that some tensors are instances of."""


class _Functions(type):
    """Functions that torch.nn has of its library are those of nn.functional and the operators."""

    def __getattr__(cls, name: str) -> Any:
        for owner in (lamella.nn.functional, lamella, lamella.ops.aten):
            if not name.startswith("__") and hasattr(owner, name):
                return getattr(owner, name)
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")


class _nn(metaclass=_Functions):
    """Functions that torch.nn has of its library."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """(device, dtype, non_blocking, memory_format) of the arguments of Module.to()."""
        layout = kwargs.pop("memory_format", None)
        return (*to_arguments(*args, **kwargs), layout)


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, grad or another transform is running."""
    return len(lamella._C._vmap_levels()) > 0


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode sees the calls of this thread."""
    from lamella.compat import _modes

    return bool(_modes._stack.modes)


def _get_accelerator(check: bool | None = None) -> Any:
    """The CPU, as there is no other device."""
    return lamella.device("cpu")


def _get_cudnn_enabled() -> bool:
    """False."""
    return False


def _parallel_info() -> str:
    """What torch.__config__.parallel_info() says."""
    from lamella.compat.__config__ import parallel_info

    return parallel_info()
