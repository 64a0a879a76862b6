"""Modes of __torch_function__: what answers the calls of a thread before their arguments do."""

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
    """The answer of the mode that was entered last; while it runs, the one before is asked."""
    mode = _stack.modes.pop()
    _set()
    try:
        return mode.__torch_function__(function, tuple(types), args, kwargs)
    finally:
        _stack.modes.append(mode)
        _set()


class TorchFunctionMode:
    """A context in which __torch_function__ of this object sees every call of an operator."""

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Answers a call; to let it go on: return func(*args, **(kwargs or {}))."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        _stack.modes.append(self)
        _set()
        return self

    def __exit__(self, *error: Any) -> None:
        _stack.modes.pop()
        _set()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call go on."""

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """A mode in which tensors are indexed by batched ones, which they are by everywhere here."""


# Functions that make tensors of nothing but numbers, and so ask for the device.
_MAKERS = (
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted "
    "empty_strided eye full hamming_window hann_window kaiser_window linspace logspace ones rand "
    "randint randn randperm range scalar_tensor sparse_coo_tensor tensor tril_indices triu_indices "
    "zeros"
).split()
_makers = {getattr(lamella, name) for name in _MAKERS if hasattr(lamella, name)}


class DeviceContext(BaseTorchFunctionMode):
    """A mode in which tensors are made on a device where the call names none."""

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
    """The device where tensors are made if a call names none."""
    for mode in reversed(_stack.modes):
        if isinstance(mode, DeviceContext):
            return mode.device
    return lamella.device("cpu")


def set_default_device(device: Any) -> None:
    """Makes tensors on a device from now on, where a call of this thread names none; None: CPU."""
    for mode in _default:
        if mode in _stack.modes:
            _stack.modes.remove(mode)
    _default.clear()
    if device is not None:
        _default.append(DeviceContext(device))
        _stack.modes.insert(0, _default[0])
    _set()


def install() -> None:
    """Lets devices be contexts: `with torch.device("meta"):`."""
    _C._add_to_device({"__enter__": _enter_device, "__exit__": _leave_device})
