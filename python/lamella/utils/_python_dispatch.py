"""Dispatch handlers written in Python: modes, and helpers for Tensor subclasses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lamella import _C

__all__ = [
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Intercepts every operator that its thread calls while the mode is on.

        class Counts(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                ...
                return func(*args, **(kwargs or {}))

        with Counts():
            x + y

    func: the overload, such as lamella.ops.aten.add.Tensor. types: the classes of arguments that
    have their own handlers. args, kwargs: the arguments, without those that have their default. A
    handler runs below autograd and the other layers, with its own mode off, so that its calls go to
    the next outer mode. Returning NotImplemented passes the call to the arguments' classes.
    """

    supports_higher_order_operators = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected it to have __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        if getattr(self.__torch_dispatch__, "__self__", self) is not self:
            raise RuntimeError(
                f"{type(self).__name__}: expected __torch_dispatch__ to be a method of the mode, "
                "got a classmethod"
            )
        _C._push_mode(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _C._pop_mode()

    @classmethod
    def is_infra_mode(cls) -> bool:
        return False


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode that is on."""
    count = _C._mode_count()
    return _C._mode_at(count - 1) if count else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes that are on, the outermost first."""
    return [_C._mode_at(i) for i in range(_C._mode_count())]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on in this thread."""
    return any(
        include_infra_modes or not mode.is_infra_mode()
        for mode in _get_current_dispatch_mode_stack()
    )


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """A context in which all modes of the thread are off; yields them, the innermost first."""
    modes = [_C._pop_mode() for _ in range(_C._mode_count())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _C._push_mode(mode)


@contextlib.contextmanager
def _disable_handlers() -> Iterator[None]:
    """A context in which no handlers run, neither those of modes nor those of classes."""
    _C._disable_handlers(1)
    try:
        yield
    finally:
        _C._disable_handlers(-1)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is an instance of a Tensor subclass with __tensor_flatten__ and
    __tensor_unflatten__."""
    return isinstance(t, _C.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    return (
        issubclass(t, _C.Tensor)
        and t is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """An instance like `t` whose inner tensors are replaced by `callback(name, tensor)`."""
    size = outer_size if outer_size is not None else t.size()
    stride = outer_stride if outer_stride is not None else t.stride()
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size:
        raise RuntimeError(
            f"transform_subclass: expected {type(t).__name__}.__tensor_unflatten__ to give the "
            f"shape {tuple(size)}, got {tuple(made.shape)}"
        )
    return made


def _alias_letters(argument: Any) -> frozenset[str]:
    return frozenset(argument.alias_info.before_set) if argument.alias_info else frozenset()


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """`out`, corrected to alias the arguments as the schema of `func` says. For handlers to return.

    A result that is a written argument is replaced by that argument; a view of a wrapper is made to
    share its storage. out: the handler's result, with the structure of the operator's returns.
    """
    schema = func._schema
    given = {}
    for i, argument in enumerate(schema.arguments):
        letters = _alias_letters(argument)
        if not letters:
            continue
        value = args[i] if i < len(args) else (kwargs or {}).get(argument.name)
        if value is not None:
            given[letters] = (value, argument.is_write)
    if not given:
        return out

    def correct(result: Any, returned: Any) -> Any:
        source = given.get(_alias_letters(returned))
        if source is None:
            return result
        value, written = source
        if written:
            return value
        if isinstance(value, _C.Tensor):
            for each in result if isinstance(result, (list, tuple)) else (result,):
                if isinstance(each, _C.Tensor):
                    _C._share_storage(each, value, True)
        return result

    if len(schema.returns) == 1:
        return correct(out, schema.returns[0])
    corrected = [correct(result, returned) for result, returned in zip(out, schema.returns)]
    return type(out)(corrected) if type(out) in (list, tuple) else tuple(corrected)
