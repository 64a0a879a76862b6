"""Modes of __torch_function__: objects that handle all operator calls of a thread, before the
__torch_function__ of the arguments."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import lamella
from lamella import _C


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.devices: list[TorchFunctionMode] = []


_stack = _Stack()


def _set() -> None:
    _C._set_torch_function_mode(_answer if _stack.modes else None)


def _answer(function: Any, types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """Calls the innermost mode. While it runs, the next outer mode is the innermost."""
    mode = _stack.modes.pop()
    _set()
    try:
        return mode.__torch_function__(function, tuple(types), args, kwargs)
    finally:
        _stack.modes.append(mode)
        _set()


class TorchFunctionMode:
    """A context in which this object's __torch_function__ handles every operator call."""

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Handles a call; return func(*args, **(kwargs or {})) to pass it on."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        _stack.modes.append(self)
        _set()
        return self

    def __exit__(self, *error: Any) -> None:
        _stack.modes.pop()
        _set()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that passes every call on."""

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """A mode for indexing by batched tensors, which always works here; it changes nothing."""


# Factories, whose calls have no tensor to take the device from.
_MAKERS = (
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted "
    "empty_strided eye full hamming_window hann_window kaiser_window linspace logspace ones rand "
    "randint randn randperm range scalar_tensor sparse_coo_tensor tensor tril_indices triu_indices "
    "zeros"
).split()
_makers = {getattr(lamella, name) for name in _MAKERS if hasattr(lamella, name)}


class DeviceContext(BaseTorchFunctionMode):
    """A mode that creates tensors on a device if the call does not name one."""

    def __init__(self, device: Any) -> None:
        self.device = lamella.device(device)

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _makers and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


def _enter_device(device: Any) -> Any:
    _stack.devices.append(DeviceContext(device).__enter__())
    return device


def _leave_device(device: Any, *error: Any) -> None:
    _stack.devices.pop().__exit__()


_default: list[DeviceContext] = []


def get_default_device() -> Any:
    """The device on which tensors are created if a call does not name one."""
    for mode in reversed(_stack.modes):
        if isinstance(mode, DeviceContext):
            return mode.device
    return lamella.device("cpu")


def set_default_device(device: Any) -> None:
    """Sets the device for calls of this thread that do not name one; None means the CPU."""
    for mode in _default:
        if mode in _stack.modes:
            _stack.modes.remove(mode)
    _default.clear()
    if device is not None:
        _default.append(DeviceContext(device))
        _stack.modes.insert(0, _default[0])
    _set()


def install() -> None:
    """Makes device objects usable as contexts: `with torch.device("meta"):`."""
    _C._add_to_device({"__enter__": _enter_device, "__exit__": _leave_device})
