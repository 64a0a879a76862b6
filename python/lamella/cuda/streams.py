"""Streams and events of CUDA devices, under PyTorch's names."""

from __future__ import annotations

import ctypes
from typing import Any

import lamella
from lamella import _C, _device
from lamella.cuda import _library


def _of(index: int) -> Any:
    return lamella.device("cuda", index)


class Stream(_device.Stream):
    """A stream of a CUDA device: one of a pool, or that with `stream_id`."""

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: Any = None,
    ) -> None:
        if device is None and device_index is not None:
            device = device_index
        index = _library.device_index("Stream", device)
        super().__init__(_of(index), priority=priority, stream_id=stream_id)
        self._priority = priority

    @property
    def cuda_stream(self) -> int:
        """The driver's handle of the stream, as an int."""
        return _library.numbers(
            "Stream", "stream_handle", 1, self.device.index, ctypes.c_int64(self.stream_id)
        )[0]

    @property
    def priority(self) -> int:
        """The priority that was asked for: 0 or below, which is higher."""
        return self._priority

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority of the current device's streams: (0, -5)."""
        least, greatest = ctypes.c_int(), ctypes.c_int()
        index = _library.device_index("Stream", None)
        _library.call(
            "Stream", "priority_range", index, ctypes.byref(least), ctypes.byref(greatest)
        )
        return least.value, greatest.value

    def record_event(self, event: Any = None) -> Any:
        """Records an event, a new one if none is given, and returns it."""
        return super().record_event(Event() if event is None else event)

    def __repr__(self) -> str:
        return f"<lamella.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by the driver's handle, which must outlive its use."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = _library.device_index("ExternalStream", device)
        number = _library.numbers(
            "ExternalStream", "external_stream", 1, index, ctypes.c_int64(stream_ptr)
        )[0]
        super().__init__(index, stream_id=number)


class Event(_device.Event):
    """A point in the work of a stream. An event that was never recorded counts as done."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise RuntimeError("Event: expected 'interprocess' to be False, got True")
        super().__init__("cuda", enable_timing=enable_timing)


class _StreamContext:
    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._former: list[tuple[int, int]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: Any) -> _StreamContext:
    """A context in which a stream is the current one; None changes nothing."""
    return _StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device is submitted to."""
    index = _library.device_index("current_stream", device)
    return Stream(index, stream_id=_C._current_stream(_of(index)))


def default_stream(device: Any = None) -> Stream:
    """The default stream of a device."""
    return Stream(_library.device_index("default_stream", device), stream_id=0)


def set_stream(stream: Any) -> None:
    """Makes a stream, and its device, the current ones of this thread."""
    if stream is not None:
        _C._exchange_device(stream.device)
        _C._exchange_stream(stream.device, stream.stream_id)
