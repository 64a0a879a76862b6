"""The functions of liblamella_cuda.so, by ctypes."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import lamella
from lamella import _C, _paths

_loaded: list[Any] = []  # liblamella_cuda.so and liblamella.so, once there is a device
# By the statuses of lamella/abi/abi.h.
_ERRORS = {2: IndexError, 3: ValueError, 4: TypeError, 5: NotImplementedError}


def load(what: str) -> Any:
    """The library; RuntimeError, which begins with `what`, if there is no CUDA device."""
    if not _loaded:
        if _C._device_count("cuda") == 0:
            raise RuntimeError(f"{what}: expected a CUDA device, found none; {obstacle()}")
        folder = _paths.library_paths()[0]
        for name in ("liblamella_cuda.so", "liblamella.so"):
            _loaded.append(ctypes.CDLL(os.path.join(folder, name)))
        _loaded[1].lamella_error_text.restype = ctypes.c_char_p
    return _loaded[0]


def obstacle() -> str:
    """Why there is no CUDA device, in a sentence."""
    try:
        lamella.empty(1, device="cuda")
    except NotImplementedError as error:
        return str(error).rpartition("; ")[2]
    return ""


def call(what: str, function: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises its error."""
    status = getattr(load(what), f"lamella_cuda_{function}")(*arguments)
    if status != 0:
        text = _loaded[1].lamella_error_text().decode("utf-8", "replace")
        if not text.startswith(f"{what}: "):
            text = f"{what}: {text}"
        raise _ERRORS.get(status, RuntimeError)(text)


def device_index(what: str, device: Any) -> int:
    """The index of a device; None: of the current one."""
    load(what)
    if device is None:
        return _C._current_device("cuda")
    if isinstance(device, int):
        return device
    made = lamella.device(device)
    if made.type != "cuda":
        raise ValueError(f"{what}: expected a device of type cuda, got {made}")
    return _C._current_device("cuda") if made.index is None else made.index


def numbers(what: str, function: str, count: int, *arguments: Any) -> list[int]:
    """The numbers that a function writes."""
    values = (ctypes.c_int64 * count)()
    call(what, function, *arguments, values)
    return list(values)


def state() -> tuple[bool, bool]:
    """Whether the process was forked after its parent had used CUDA, and whether it was used."""
    forked, used = ctypes.c_int(), ctypes.c_int()
    call("state", "state", ctypes.byref(forked), ctypes.byref(used))
    return bool(forked.value), bool(used.value)


def lines(function: str) -> list[str]:
    """The lines that a function writes."""
    size, needed = 0, ctypes.c_size_t(4096)
    while size < needed.value:
        size = needed.value
        text = ctypes.create_string_buffer(size)
        call(function, function, text, ctypes.c_size_t(size), ctypes.byref(needed))
    return text.value.decode().splitlines()


def is_pinned(address: int) -> bool:
    """Whether an address of the host is in pinned memory."""
    found = ctypes.c_int()
    call("is_pinned", "is_pinned", ctypes.c_void_p(address), ctypes.byref(found))
    return bool(found.value)


def record_stream(address: int, stream: Any) -> None:
    call(
        "record_stream",
        "record_stream",
        ctypes.c_void_p(address),
        stream.device.index,
        ctypes.c_int64(stream.stream_id),
    )
