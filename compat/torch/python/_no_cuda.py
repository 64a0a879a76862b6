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


def is_available() -> bool:
    """False: Lamella's package runs on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


is_bf16_supported = is_current_stream_capturing = is_initialized


def init() -> None:
    """RuntimeError: there is no CUDA device."""
    raise _none("init")


def synchronize(device: Any = None) -> None:
    """Does nothing: there is no CUDA device."""


def empty_cache() -> None:
    """Does nothing: there is no memory to free."""


def _lazy_call(function: Callable[[], Any], **options: Any) -> None:
    """Does nothing: the call would wait for a device."""


_initialized = False
_is_in_bad_fork = is_initialized


reset_peak_memory_stats = reset_max_memory_allocated = reset_accumulated_memory_stats = synchronize
ipc_collect = empty_cache


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """An empty text."""
    return ""


def memory_stats(device: Any = None) -> dict[str, Any]:
    """An empty dictionary."""
    return {}


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no generator to seed."""


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator to seed."""


seed = seed_all = empty_cache


def get_rng_state_all() -> list[Any]:
    """An empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Does nothing."""


def get_arch_list() -> list[str]:
    """An empty list."""
    return []


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
    "can_device_access_peer cudart current_blas_handle current_device current_stream "
    "default_stream get_device_capability get_device_name "
    "get_device_properties get_rng_state initial_seed mem_get_info set_device set_rng_state "
    "set_stream utilization"
).split():
    globals()[_name] = _refusing(_name)


class Stream:
    """A device's stream: RuntimeError, there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _none("Stream")


class Event:
    """A device's event: RuntimeError, there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _none("Event")


class CUDAGraph:
    """A recorded graph: RuntimeError, there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _none("CUDAGraph")


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
