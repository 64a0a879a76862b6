"""Devices "cuda": streams, events, memory and properties, under PyTorch's names.

liblamella_cuda.so is loaded at the first use; is_available() says whether there is a device, and
why_unavailable() why there is none.
"""

from __future__ import annotations

import os
from typing import Any

import lamella
from lamella import _C
from lamella.cuda import _library
from lamella.cuda._properties import (
    can_device_access_peer as can_device_access_peer,
)
from lamella.cuda._properties import (
    get_device_capability as get_device_capability,
)
from lamella.cuda._properties import (
    get_device_name as get_device_name,
)
from lamella.cuda._properties import (
    get_device_properties as get_device_properties,
)
from lamella.cuda.graphs import *  # noqa: F403
from lamella.cuda.memory import *  # noqa: F403
from lamella.cuda.streams import Event as Event
from lamella.cuda.streams import ExternalStream as ExternalStream
from lamella.cuda.streams import Stream as Stream
from lamella.cuda.streams import current_stream as current_stream
from lamella.cuda.streams import default_stream as default_stream
from lamella.cuda.streams import set_stream as set_stream
from lamella.cuda.streams import stream as stream

OutOfMemoryError = _C.OutOfMemoryError
_index = _library.device_index


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """The number of CUDA devices; 0 without a driver."""
    return _C._device_count("cuda")


def why_unavailable() -> str:
    """Why there is no CUDA device, in a sentence; '' if there is one."""
    return "" if is_available() else _library.obstacle()


def init() -> None:
    """Raises RuntimeError if there is no CUDA device; everything else happens at the first use."""
    _library.load("init")


def is_initialized() -> bool:
    """Whether a device was used in this process."""
    return _C._has_backend("cuda") and _library.state()[1] and not _library.state()[0]


def _is_in_bad_fork() -> bool:
    return _C._has_backend("cuda") and _library.state()[0]


def current_device() -> int:
    """The index of the current device."""
    _library.load("current_device")
    return _C._current_device("cuda")


def set_device(device: Any) -> None:
    """Makes a device the current one of this thread; a negative index changes nothing."""
    index = _index("set_device", device)
    if index >= 0:
        _C._exchange_device(lamella.device("cuda", index))


class device:
    """A context in which a device is the current one; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _index("device", device)
        self._former: list[int] = []

    def __enter__(self) -> None:
        if self.idx >= 0:
            self._former.append(_C._exchange_device(lamella.device("cuda", self.idx)))

    def __exit__(self, *error: Any) -> None:
        if self._former:
            _C._exchange_device(lamella.device("cuda", self._former.pop()))


class device_of(device):
    """A context in which the device of a tensor is the current one, if that is a CUDA device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


def synchronize(device: Any = None) -> None:
    """Waits until all work on a device (default: the current one) is done."""
    _C._synchronize_device(lamella.device("cuda", _index("synchronize", device)))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be on the devices: all dtypes can."""
    return is_available()


def fallbacks() -> dict[str, int]:
    """How often each operator ran on the CPU, on copies of its arguments, by name."""
    lines = _library.lines("fallbacks") if is_available() else []
    return {name: int(count) for name, _, count in (line.rpartition(" ") for line in lines)}


def use_deterministic_algorithms(mode: bool) -> None:
    """Whether sums at places that indices give are added in order, so that no result varies.

    That takes longer. LAMELLA_CUDA_DETERMINISTIC=1 in the environment does the same.
    """
    os.environ["LAMELLA_CUDA_DETERMINISTIC"] = "1" if mode else "0"
    if _C._has_backend("cuda"):  # else the library reads the variable when it is loaded
        _library.call("use_deterministic_algorithms", "set_deterministic", int(mode))


def reset_fallbacks() -> None:
    """Begins to count fallbacks() anew."""
    if is_available():
        _library.call("reset_fallbacks", "reset_fallbacks")


def libraries() -> dict[str, str]:
    """The files of CUDA's libraries that are used, or why there is none, in a sentence."""
    lines = _library.lines("libraries") if is_available() else []
    found = (line.split("\t") for line in lines)
    return {name: file or f"there is no {name}: {why}" for name, file, why in found}


# ---- Random numbers ----


def _generator(device: Any = None) -> Any:
    return _C._device_generator(lamella.device("cuda", _index("Generator", device)))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; does nothing without a device."""
    if is_available():
        _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def seed() -> None:
    """Seeds the current device's generator from the system."""
    if is_available():
        _generator().seed()


def seed_all() -> None:
    """Seeds the generators of all devices from the system, alike."""
    if is_available():
        manual_seed_all(_generator().seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator as a uint8 tensor."""
    return _generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restores a state of a device's generator."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Restores the states of the generators of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_generator(index) for index in range(device_count()))
    raise AttributeError(f"module 'lamella.cuda' has no attribute {name!r}")


__all__ = [
    name
    for name in dir()
    if not name.startswith("_") and name not in ("annotations", "Any", "lamella")
]
