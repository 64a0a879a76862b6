"""Private names of torch.nn, torch.optim and torch.utils that programs use."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import lamella
from lamella import Tensor
from lamella.nn import functional, init
from lamella.nn.modules import _hooks

# The global hooks of all modules, by the ids of their handles.
_everywhere = types.SimpleNamespace(_hooks=_hooks.EVERYWHERE)
_global_parameter_registration_hooks = _hooks.View(_everywhere, "parameter")
_global_buffer_registration_hooks = _hooks.View(_everywhere, "buffer")
_global_module_registration_hooks = _hooks.View(_everywhere, "module")
_global_forward_pre_hooks = _hooks.View(_everywhere, "forward_pre")
_global_forward_hooks = _hooks.View(_everywhere, "forward")
_global_backward_pre_hooks = _hooks.View(_everywhere, "backward_pre")
_global_backward_hooks = _hooks.View(_everywhere, "backward")

# The types of an optimizer's params argument.
ParamsT = Any
# The metaclass of parameters.
_ParameterMeta = type
F = TypeVar("F", bound=Callable[..., Any])


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan-in or fan-out of a layer, by `mode`."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return init._calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """nn.init.trunc_normal_()"""
    return init.trunc_normal_(tensor, mean, std, a, b, generator)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """No devices: none can capture optimizer steps."""
    return []


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """relu or gelu, by name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    found: Callable[[Tensor], Tensor] = getattr(functional, activation)
    return found


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix from the keys of a state dict and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if key and key.startswith((prefix, prefix.rstrip("."))):
            metadata[key[len(prefix) :]] = metadata.pop(key)


def _is_checkpoint_valid() -> bool:
    """True: checkpoints may be recomputed during any backward."""
    return True


@contextlib.contextmanager
def _enable_get_lr_call(o: Any) -> Iterator[Any]:
    """A context that tells a scheduler's get_lr() that step() called it."""
    o._get_lr_called_within_step = True
    try:
        yield o
    finally:
        o._get_lr_called_within_step = False


def _same(function: F) -> F:
    """Returns the function unchanged."""
    return function


def _neither(*args: Any, **kwargs: Any) -> tuple[bool, bool]:
    """(False, False): neither fused nor foreach."""
    return False, False


def _get_value(x: Any) -> Any:
    """The number in a one-element tensor; other values unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Tensor], *states: list[Tensor]) -> None:
    """Replaces the complex tensors of lists by real views of them."""
    for i, param in enumerate(params):
        if param.is_complex():
            params[i] = lamella.view_as_real(param)
            for state in states:
                state[i] = lamella.view_as_real(state[i])


def _channels_last(module: Any, memory_format: Any, dims: int) -> Any:
    """Converts the weights of convolutions over `dims` dimensions to a memory format; returns the
    module."""
    kinds = ("Conv2d", "ConvTranspose2d") if dims == 4 else ("Conv3d", "ConvTranspose3d")
    for part in module.modules():
        if any(isinstance(part, getattr(lamella.nn, kind)) for kind in kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of 2-d convolutions to a memory format; returns the module."""
    return _channels_last(module, memory_format, 4)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of 3-d convolutions to a memory format; returns the module."""
    return _channels_last(module, memory_format, 5)


# State dicts of modules need no patches.
FALSE = False

# The decorator for optimizer steps: steps are profiled without it.
PROFILE_HOOK_STEP = staticmethod(_same)


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Does nothing: hooks are not pickled with tensors."""


class _Switch(contextlib.ContextDecorator):
    """A setting that is stored; usable as a call and as a context."""

    _is_on = False

    def __init__(self, mode: bool = True) -> None:
        self._before = type(self)._is_on
        type(self)._is_on = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        type(self)._is_on = self._before


class set_multithreading_enabled(_Switch):  # noqa: N801
    """Whether backward may use several threads. It is ignored: only kernels are multithreaded."""

    _is_on = True


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled() was told."""
    return set_multithreading_enabled._is_on


class check_sparse_tensor_invariants(_Switch):  # noqa: N801
    """Whether sparse tensors are checked on creation. It is ignored: they always are."""

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)

    @classmethod
    def is_enabled(cls) -> bool:
        """The stored value."""
        return cls._is_on

    @classmethod
    def enable(cls) -> None:
        """Turns the setting on."""
        cls._is_on = True

    @classmethod
    def disable(cls) -> None:
        """Turns the setting off."""
        cls._is_on = False


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swaps the memory and the attributes of two tensors, which must be leaves."""
    if t1.grad_fn is not None or t2.grad_fn is not None:
        raise RuntimeError("swap_tensors: expected leaves, got a result of operators")
    t1.data, t2.data = t2.data, t1.data
    t1.grad, t2.grad = t2.grad, t1.grad
    flags = t1.requires_grad, t2.requires_grad
    t1.requires_grad_(flags[1])
    t2.requires_grad_(flags[0])
    one, other = dict(t1.__dict__), dict(t2.__dict__)
    for tensor, own, taken in ((t1, one, other), (t2, other, one)):
        for name in own:
            delattr(tensor, name)
        for name, value in taken.items():
            setattr(tensor, name, value)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Empty lists: there are no devices."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Does nothing: there are no devices."""


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detaches the tensors among the values from their history."""
    made = []
    for value in inputs:
        if isinstance(value, Tensor):
            requires, value = value.requires_grad, value.detach()
            value.requires_grad_(requires)
        made.append(value)
    return tuple(made)


def check_backward_validity(inputs: Any) -> None:
    """Warns if no input requires grad."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn("checkpoint: expected an input that requires grad, got none", stacklevel=2)
