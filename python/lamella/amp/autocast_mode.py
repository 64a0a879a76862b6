"""autocast: a region of mixed precision, as a context and as a decorator.

    with lamella.autocast("cpu", dtype=lamella.bfloat16):
        loss = criterion(model(x), y)
    loss.backward()

Inside, matrix products and convolutions run in the given dtype, losses and operators that need the
range in float32. Each operator has an autocast policy (lamella.ops.aten.mm.default.policy(
"autocast.cpu")). Gradients have the dtype of the tensors that they are gradients of. Regions nest;
enabled=False makes a region without autocast inside of another one. All state is thread-local.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from lamella import _C
from lamella.autograd._decorate import decorate

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast works for a device type."""
    return _C._is_autocast_available(device_type)


class autocast:  # noqa: N801
    """A region of mixed precision for the tensors on one type of device.

    device_type: "cpu", "cuda", ...
    dtype: the lower precision, bfloat16 or float16; None: get_autocast_dtype(device_type).
    enabled: False makes a region without autocast.
    cache_enabled: whether casts of weights are cached until the outermost region ends; None keeps
    the current setting.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: expected 'device_type' to be text such as 'cpu', "
                f"got {type(device_type).__name__}"
            )
        self.device = device_type
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and self.fast_dtype not in (_C.bfloat16, _C.float16):
            warnings.warn(
                f"autocast: expected 'dtype' to be bfloat16 or float16, got {self.fast_dtype}; "
                "autocast is disabled in the region",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self._before: list[tuple[bool, Any, bool]] = []

    def clone(self) -> autocast:
        """A new region with the same arguments."""
        return type(self)(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def __enter__(self) -> autocast:
        device = self.device
        cache = _C.is_autocast_cache_enabled()
        self._before.append((_C.is_autocast_enabled(device), _C.get_autocast_dtype(device), cache))
        _C.set_autocast_enabled(device, self._enabled)
        _C.set_autocast_dtype(device, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(cache if self._cache_enabled is None else self._cache_enabled)
        return self

    def __exit__(self, *error: object) -> None:
        enabled, dtype, cache = self._before.pop()
        _C.autocast_decrement_nesting()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return decorate(self, func)


def cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Casts the floating-point tensors of a device type in nested tuples, lists and dicts to
    `dtype`, except for float64."""
    if isinstance(value, _C.Tensor):
        here = value.device.type == device_type.partition(":")[0]
        if here and value.is_floating_point() and value.dtype != _C.float64:
            return value.to(dtype)
        return value
    if isinstance(value, dict):
        return {
            cast(key, device_type, dtype): cast(one, device_type, dtype)
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        made = [cast(one, device_type, dtype) for one in value]
        if hasattr(value, "_fields"):
            return type(value)(*made)
        return type(value)(made)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """Decorates the forward of an autograd Function that may be called inside of autocast regions.

    cast_inputs: inside a region, floating-point tensors are cast to this dtype and forward runs
    without autocast. None: forward runs with the autocast state of the caller.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = _C.get_autocast_dtype(device_type)
        enabled = _C.is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *cast(args, device_type, cast_inputs), **cast(kwargs, device_type, cast_inputs)
            )

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the backward of a Function whose forward has custom_fwd: it runs with the autocast
    state that the forward ran with."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward
