"""Functional tensors made by hand, over lamella's functionalization, and
torch._subclasses.functional_tensor."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

from lamella import _C, Tensor
from lamella.utils._python_dispatch import TorchDispatchMode
from lamella.utils._pytree import tree_map_only

_checked: contextvars.ContextVar[bool] = contextvars.ContextVar("checked", default=False)


@contextlib.contextmanager
def enable_crossref_functionalize() -> Iterator[None]:
    """A context in which _enable_functionalization() makes errors of copies whose strides are not
    those of the views that they stand for."""
    before = _checked.set(True)
    try:
        yield
    finally:
        _checked.reset(before)


def _to_functional_tensor(t: Tensor) -> Tensor:
    """A tensor whose writes and views become calls of pure operators on `t` and what follows."""
    return _C._functionalize_wrap(t)


def _from_functional_tensor(t: Tensor) -> Tensor:
    """The value of a functional tensor, without writes to aliases since it was last read."""
    return _C._functionalize_value(t, False)


def _sync(t: Tensor) -> None:
    """Applies the writes to all aliases of a functional tensor to its value."""
    _C._functionalize_value(t, True)


def _freeze_functional_tensor(t: Tensor) -> None:
    """Makes writes to a functional tensor and its aliases errors."""
    _C._functionalize_freeze(t)


_is_functional_tensor: Callable[[Any], bool] = _C._is_functional


def _enable_functionalization(*, reapply_views: bool = False) -> None:
    """Makes new tensors functional; views become copies unless reapply_views."""
    _C._functionalize_loose(True, not reapply_views, _checked.get())


def _disable_functionalization() -> None:
    """Ends what _enable_functionalization() began."""
    _C._functionalize_loose(False, False, False)


def _mirror_autograd_meta_to(source: Tensor, target: Tensor) -> None:
    """Makes a tensor require gradients if another one does."""
    if target.is_leaf:
        target.requires_grad_(source.requires_grad)


def dispatch_functionalize(func: Callable[..., Any], mode: Any = None) -> Callable[..., Any]:
    """func on functional tensors, whose views stay views; its results are plain ones. Writes to
    arguments are not seen outside."""

    def functionalized(*args: Any, **kwargs: Any) -> Any:
        given = tree_map_only(Tensor, _to_functional_tensor, (args, kwargs))
        _enable_functionalization(reapply_views=True)
        try:
            made = func(*given[0], **given[1])
        finally:
            _disable_functionalization()
        return tree_map_only(
            Tensor, lambda t: _C._functionalize_value(t, True) if _C._is_functional(t) else t, made
        )

    functionalized.__annotations__ = {}  # graphs repeat them
    return functionalized


class FunctionalTensor(Tensor):
    """A functional tensor as an object of a class, which FunctionalTensorMode computes with."""

    elem: Tensor

    def __new__(cls, elem: Tensor, mode: Any = None) -> Any:
        made: Any = _C._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        made.elem = elem
        return made

    @staticmethod
    def to_functional(x: Tensor) -> FunctionalTensor:
        """A functional tensor that has a tensor's value. Gradients end at it: a leaf if `x` is one
        that requires gradients, else without gradients."""
        elem = _to_functional_tensor(x)
        return FunctionalTensor(elem.requires_grad_(x.requires_grad and x.is_leaf))

    def from_functional(self) -> Tensor:
        """The value, with the writes to all aliases."""
        return _C._functionalize_value(self.elem, True)

    def __repr__(self, **options: Any) -> str:
        return f"FunctionalTensor({self.elem!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: expected FunctionalTensorMode to be on for FunctionalTensors")


class FunctionalTensorMode(TorchDispatchMode):
    """A context in which operators on FunctionalTensors become calls of pure operators."""

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given: dict[int, Tensor] = {}

        def lower(x: FunctionalTensor) -> Tensor:
            given[id(x.elem)] = x
            return x.elem

        def lift(x: Tensor) -> Tensor:
            if id(x) in given:
                return given[id(x)]
            return FunctionalTensor(x) if _C._is_functional(x) else x

        args, kwargs = tree_map_only(FunctionalTensor, lower, (tuple(args), dict(kwargs or {})))
        before = _C._thread_keys()
        _C._set_thread_keys(
            before[0], before[1] & ~_C._dispatch_functionality_bits("Functionalize")
        )
        _enable_functionalization(reapply_views=True)
        try:
            return tree_map_only(Tensor, lift, func(*args, **kwargs))
        finally:
            _C._set_thread_keys(*before)
