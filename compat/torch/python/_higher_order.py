"""torch._ops.HigherOrderOperator: an operator whose arguments may be functions, made of the
functions that are registered for dispatch keys, modes and subclasses."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from lamella import _C, Tensor
from lamella.compat import _dispatcher
from lamella.utils._pytree import tree_leaves


class TransformType(enum.Enum):
    """The transforms of torch.func."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class RandomnessType(enum.Enum):
    """How vmap draws random numbers."""

    Error = 0
    Same = 1
    Different = 2


class HigherOrderOperator:
    """A call goes to the innermost mode that has a function, then to a subclass of Tensor among
    the arguments, then to the highest key of the arguments that has one."""

    namespace = "higher_order"

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "HigherOrderOperator: expected a subclass, as the class itself calls nothing"
            )
        self._name = self.__name__ = name
        self._cacheable = cacheable
        self._rules: dict[Any, Callable[..., Any]] = {}
        self._skipped: set[str] = set()

    def name(self) -> str:
        """The operator's name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self._name})>"

    def py_impl(self, key: Any) -> Callable[..., Any]:
        """A decorator that registers a function for a key, a transform, a mode or a subclass."""
        place = key if isinstance(key, (type, enum.Enum)) else str(key)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if place in self._rules:
                raise RuntimeError(f"{self._name}: already has a function for {key}")
            self._rules[place] = function
            return function

        return register

    py_functionalize_impl = property(lambda self: lambda function: function)
    py_autograd_impl = property(lambda self: self.py_impl("Autograd"))

    def fallthrough(self, key: Any) -> None:
        """Makes calls skip a key."""
        self._skipped.add(str(key))

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether a function is registered for the key."""
        return str(key) in self._rules

    def _keys_of(self, tensors: list[Tensor]) -> list[str]:
        kinds = sorted({each.device.type for each in tensors} or {"cpu"})
        recording = [*(f"Autograd{kind.upper()}" for kind in kinds), "Autograd"]
        keys = [str(_C._device_dispatch_key(kind)) for kind in kinds]
        keys += ["CompositeExplicitAutograd", "CompositeImplicitAutograd"]
        # A function for autograd is the only one of some operators, which call it for all tensors.
        if _C.is_grad_enabled() and any(each.requires_grad for each in tensors):
            return recording + keys
        return keys + recording

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        for i in reversed(range(_C._mode_count())):
            mode = _C._mode_at(i)
            if type(mode) in self._rules:
                return self._rules[type(mode)](mode, *args, **kwargs)
        for each in tensors:
            if type(each) in self._rules:
                return self._rules[type(each)](*args, **kwargs)
        for key in self._keys_of(tensors):
            if key in self._rules and key not in self._skipped:
                if not key.startswith("Autograd"):
                    return self._rules[key](*args, **kwargs)
                with _dispatcher._PreserveDispatchKeyGuard():
                    return self._rules[key](*args, **kwargs)
        raise NotImplementedError(
            f"{self._name}: has no function for the keys {', '.join(self._keys_of(tensors))}"
        )
