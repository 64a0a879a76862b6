"""torch.cuda without a CUDA device, and in part with one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import lamella
from lamella.compat._no_device import NoDeviceError
from lamella.compat._types import TENSOR_TYPES as _TENSOR_TYPES

for _text, _type in _TENSOR_TYPES.items():
    if _text.startswith("torch.cuda."):
        globals()[_type.__name__] = _type


OutOfMemoryError = lamella.OutOfMemoryError


class AcceleratorError(RuntimeError):
    """PyTorch's error for failures of a device."""


CudaError = AcceleratorError
has_half = False
default_generators: tuple[Any, ...] = ()


def _constant(name: str, value: Any) -> Any:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value() if isinstance(value, type) else value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"{answer()!r}: there is no CUDA device."
    return answer


# What functions return without a device; a class stands for a new object of it.
for _value, _names in (
    (
        False,
        "is_available is_initialized is_bf16_supported is_current_stream_capturing _is_in_bad_fork "
        "is_tf32_supported",
    ),
    (
        0,
        "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved "
        "memory_cached max_memory_cached",
    ),
    (
        None,
        "synchronize empty_cache ipc_collect _lazy_call manual_seed manual_seed_all seed seed_all "
        "set_rng_state_all reset_peak_memory_stats reset_max_memory_allocated "
        "reset_accumulated_memory_stats",
    ),
    ("", "memory_summary"),
    (dict, "memory_stats"),
    (list, "get_rng_state_all get_arch_list"),
):
    for _name in _names.split():
        globals()[_name] = _constant(_name, _value)

_initialized = False


def _none(what: str) -> NoDeviceError:
    return NoDeviceError(f"{what}: expected a CUDA device, found none")


def _as_for(kind: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """__getattr__ and __dir__ for the module of another absent device."""

    def find(name: str) -> Any:
        found = None if name.startswith("__") else globals().get(name)
        if found is None:
            from lamella.compat._absent import missing

            raise missing(f"{kind}.{name}", globals())
        return found

    return find, lambda: [name for name in globals() if not name.startswith("_")]


def _refusing(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise _none(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "RuntimeError: there is none."
    return refuse


for _name in (
    "init can_device_access_peer cudart current_blas_handle current_device current_stream "
    "default_stream get_device_capability get_device_name "
    "get_device_properties get_rng_state initial_seed mem_get_info set_device set_rng_state "
    "set_stream utilization"
).split():
    globals()[_name] = _refusing(_name)


class _Refusing:
    """RuntimeError: there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _none(type(self).__name__)


Stream, Event, CUDAGraph = (
    type(_name, (_Refusing,), {"__doc__": _Refusing.__doc__, "__module__": __name__})
    for _name in ("Stream", "Event", "CUDAGraph")
)
StreamContext = ExternalStream = MemPool = Stream
graph = CUDAGraph


def stream(stream: Any) -> Any:
    """A context that changes nothing; it accepts only None, because there are no streams."""
    return contextlib.nullcontext()


class device:
    """A context for a current device; it accepts only None or a negative index."""

    def __init__(self, device: Any) -> None:
        if device is not None and not (isinstance(device, int) and device < 0):
            raise _none("device")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def device_of(obj: Any) -> device:
    """A context that does nothing: no tensor is on a CUDA device."""
    return device(None)
