"""Devices of backends: streams, events, and the module that each kind of device has.

`lamella.sim` is a DeviceModule once a backend calls its devices "sim"; _register_device_module()
puts a module of the backend's own in its place.
"""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C

# Modules by the name of the device type.
_modules: dict[str, Any] = {}


def _device(device: Any, type: str | None = None) -> Any:
    """The device, with its index, that an index, a name or a device stands for; None: the current
    one."""
    if device is None:
        device = type
    elif isinstance(device, int):
        device = f"{type}:{device}"
    made = lamella.device(device)
    if type is not None and made.type != type:
        raise ValueError(f"expected a device of type {type}, got {made}")
    if made.index is None:
        made = lamella.device(made.type, _C._current_device(made))
    return made


def _stream(device: Any, stream_id: int) -> Stream:
    if device.type == "cuda":
        return lamella.cuda.Stream(device, stream_id=stream_id)
    return Stream(device, stream_id=stream_id)


class Stream:
    """A stream of a device, which does its work in order: a new one, or that with `stream_id`.
    device_index, device_type: the device by its numbers.

    As a context manager it makes the stream the current one of this thread.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        if device_type is not None and device_index is not None:
            device = _C.device._of(device_type, device_index)
        if device is None:
            raise TypeError("Stream: expected 'device' to be given")
        self.device = _device(device)
        if stream_id is None:
            stream_id = _C._make_stream(self.device, priority)
        self.stream_id = stream_id
        self._former: list[tuple[int, int]] = []

    @property
    def device_index(self) -> int:
        return self.device.index

    @property
    def device_type(self) -> int:
        return self.device._number

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        return _C._query_stream(self.device, self.stream_id)

    def synchronize(self) -> None:
        """Waits until all work of the stream is done."""
        _C._synchronize_stream(self.device, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one if none is given, and returns it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Makes work that is submitted after this call wait for the event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Makes work that is submitted after this call wait for all current work of the other
        stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        device = _C._exchange_device(self.device)
        self._former.append((device, _C._exchange_stream(self.device, self.stream_id)))
        return self

    def __exit__(self, *error: Any) -> None:
        device, stream = self._former.pop()
        _C._exchange_stream(self.device, stream)
        _C._exchange_device(lamella.device(self.device.type, device))

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device == other.device and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"lamella.Stream(device={self.device}, stream_id={self.stream_id})"


class Event:
    """A point in the work of a stream. An event that was never recorded counts as done."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        if device is None:
            raise TypeError("Event: expected 'device' to be given")
        self._type = lamella.device(device).type
        self._timing = enable_timing
        self._event: Any = None

    def _stream(self, stream: Stream | None) -> Stream:
        return current_stream(self._type) if stream is None else stream

    def record(self, stream: Stream | None = None) -> None:
        """Records the point that the stream (default: the current one) has reached."""
        stream = self._stream(stream)
        if self._event is None:
            self._event = _C._make_event(stream.device, self._timing)
        _C._record_event(self._event, stream.device, stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes the stream (default: the current one) wait until the event is done."""
        stream = self._stream(stream)
        if self._event is not None:
            _C._wait_event(self._event, stream.device, stream.stream_id)

    def query(self) -> bool:
        """Whether the event is done."""
        return self._event is None or _C._query_event(self._event)

    def synchronize(self) -> None:
        """Waits until the event is done."""
        if self._event is not None:
            _C._synchronize_event(self._event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another; both must be recorded with enable_timing."""
        if self._event is None or end_event._event is None:
            raise RuntimeError("elapsed_time: expected both events to be recorded")
        if not (self._timing and end_event._timing):
            raise RuntimeError("elapsed_time: expected both events to be made with enable_timing")
        return _C._elapsed_time(self._event, end_event._event)

    def __repr__(self) -> str:
        state = "recorded" if self._event is not None else "not recorded"
        return f"<lamella.Event of {self._type}, {state}>"


def current_stream(device: Any) -> Stream:
    """The stream that this thread's work on a device is submitted to."""
    device = _device(device)
    return Stream(device, stream_id=_C._current_stream(device))


# DeviceModule has methods named Stream and Event, which would shadow the classes in annotations.
_Stream = Stream
_Event = Event


class DeviceModule:
    """The module-like object of one device type: `lamella.sim` for devices called "sim"."""

    def __init__(self, type: str) -> None:
        self._type = type
        self.__name__ = f"lamella.{type}"

    def is_available(self) -> bool:
        return _C._device_count(self._type) > 0

    def is_initialized(self) -> bool:
        return _C._has_backend(self._type)

    def device_count(self) -> int:
        return _C._device_count(self._type)

    def current_device(self) -> int:
        """The index of the current device."""
        return _C._current_device(self._type)

    def set_device(self, device: Any) -> None:
        """Makes a device the current one of this thread."""
        _C._exchange_device(_device(device, self._type))

    def device(self, device: Any) -> _DeviceContext:
        """A context in which a device is the current one."""
        return _DeviceContext(_device(device, self._type))

    def synchronize(self, device: Any = None) -> None:
        """Waits until all work on a device (default: the current one) is done."""
        _C._synchronize_device(_device(device, self._type))

    def Stream(self, device: Any = None, priority: int = 0) -> _Stream:
        return Stream(_device(device, self._type), priority=priority)

    def Event(self, enable_timing: bool = False) -> _Event:
        return Event(self._type, enable_timing=enable_timing)

    def current_stream(self, device: Any = None) -> _Stream:
        return current_stream(_device(device, self._type))

    def default_stream(self, device: Any = None) -> _Stream:
        return Stream(_device(device, self._type), stream_id=0)

    def set_stream(self, stream: _Stream) -> None:
        """Makes a stream the current one of this thread for its device."""
        _C._exchange_stream(stream.device, stream.stream_id)

    def stream(self, stream: _Stream) -> _Stream:
        """A context in which a stream is the current one."""
        return stream

    def _generator(self, device: Any = None) -> Any:
        return _C._device_generator(_device(device, self._type))

    def manual_seed(self, seed: int) -> None:
        """Seeds the default generator of the current device."""
        self._generator().manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seeds the default generators of all devices."""
        for index in range(self.device_count()):
            self._generator(index).manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> Any:
        return self._generator(device).get_state()

    def set_rng_state(self, state: Any, device: Any = None) -> None:
        self._generator(device).set_state(state)

    def __repr__(self) -> str:
        return f"<devices '{self._type}'>"


class _DeviceContext:
    def __init__(self, device: Any) -> None:
        self._device = device
        self._former: list[int] = []

    def __enter__(self) -> None:
        self._former.append(_C._exchange_device(self._device))

    def __exit__(self, *error: Any) -> None:
        _C._exchange_device(lamella.device(self._device.type, self._former.pop()))


def find_module(name: str) -> Any:
    """The module of a device type; None if no backend has devices of that name."""
    if name in _modules:
        return _modules[name]
    try:
        device = lamella.device(name)
    except RuntimeError:
        return None
    if device.type != name or not _C._has_backend(device):
        return None
    return _modules.setdefault(name, DeviceModule(name))


def seed_all(seed: int) -> None:
    """Seeds the default generators of all devices of backends."""
    for name in _C._backend_names():
        for index in range(_C._device_count(name)):
            _C._device_generator(lamella.device(name, index)).manual_seed(seed)


def register_device_module(device_type: str, module: Any) -> None:
    """Replaces `lamella.<device_type>` by a module of the backend's own."""
    device_type = lamella.device(device_type).type
    if hasattr(lamella, device_type) and not isinstance(
        getattr(lamella, device_type), DeviceModule
    ):
        raise RuntimeError(
            f"_register_device_module: expected a device type without a module, got {device_type}"
        )
    _modules[device_type] = module
    setattr(lamella, device_type, module)


def get_device_module(device: Any) -> Any:
    """The module of a device's type: lamella.sim for "sim:1"."""
    name = lamella.device(device).type
    module = find_module(name)
    if module is None:
        raise RuntimeError(f"get_device_module: expected a device with a backend, got {name}")
    return module
