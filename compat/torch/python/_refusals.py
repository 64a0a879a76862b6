"""What PyTorch refuses inside torch.func's transforms, refused in programs that use its names, and
what it prints there."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from lamella import _C, Tensor, _tensor_str
from lamella.autograd import functional
from lamella.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
from lamella.func import transforms
from lamella.utils._pytree import tree_flatten

_DERIVATIVES = ("hessian", "hvp", "jacobian", "jvp", "vhp", "vjp")

_running = threading.local()  # .names: the transforms whose functions run


class _Rules:
    """The rules of lamella.func.transforms."""

    @contextlib.contextmanager
    def running(self, name: str) -> Iterator[None]:
        """While the function of a transform runs: hooks on saved tensors are refused."""
        names = _running.__dict__.setdefault("names", [])
        with contextlib.ExitStack() as stack:
            if name not in ("jvp", "functionalize"):
                if _has_hooks():
                    raise RuntimeError(f"{name}: expected no saved tensor hooks around a transform")
                text = f"{name}: expected no saved tensor hooks inside a transform"
                stack.enter_context(disable_saved_tensors_hooks(text))
            names.append(name)
            stack.callback(names.pop)
            _C._set_apply_rule(_expect_setup_context)
            yield

    def check_aux(self, name: str, aux: Any) -> None:
        """RuntimeError unless the second result of a function has only tensors as leaves."""
        for leaf in tree_flatten(aux)[0]:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"{name}: Expected tensors in 'aux', got unsupported type {type(leaf).__name__}"
                )


def _expect_setup_context(function: type) -> None:
    """RuntimeError for a program's autograd.Function whose forward takes a context, inside a
    transform."""
    own = function.__module__.startswith(("lamella.", "torch."))
    if not own and getattr(_running, "names", None):
        raise RuntimeError(
            f"{function.__name__}: expected an autograd.Function with 'setup_context' inside "
            f"{_running.names[-1]}, which must override the setup_context staticmethod"
        )


def _has_hooks() -> bool:
    return bool(getattr(_running, "hooks", 0))


def _count(method: Callable[..., Any], step: int) -> Callable[..., Any]:
    @functools.wraps(method)
    def counted(self: Any, *args: Any) -> Any:
        result = method(self, *args)
        _running.hooks = getattr(_running, "hooks", 0) + step
        return result

    return counted


def _transform() -> str | None:
    """The innermost transform that runs on this thread, or None."""
    names = getattr(_running, "names", None)
    return names[-1] if names else "vmap" if _C._vmap_levels() else None


def _outside(name: str, function: Callable[..., Any], inside: str) -> Callable[..., Any]:
    """The function, refused while a transform runs, except where modules below `inside` call it."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        running = _transform()
        caller = sys._getframe(1).f_globals.get("__name__", "") if running else ""
        if running is not None and not caller.startswith(inside):
            raise RuntimeError(
                f"{name}: expected no running transform of torch.func, got {running}"
            )
        return function(*args, **kwargs)

    return checked


def _batched_repr(level: int, size: int, value: Tensor) -> str:
    """The text of a batched tensor, whose batch is dimension 0, with the depth of its vmap."""
    depth = [number for number, *_ in _C._vmap_levels()].index(level) + 1
    inner = repr(value).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {inner}\n)"


_originals: dict[tuple[Any, str], Any] = {}


def install() -> None:
    """Sets the rules."""
    transforms._rules = _Rules()
    _originals[_tensor_str, "_batched_repr"] = _tensor_str._batched_repr
    _tensor_str._batched_repr = _batched_repr
    for name, step in ("__enter__", 1), ("__exit__", -1):
        method = _originals[saved_tensors_hooks, name] = getattr(saved_tensors_hooks, name)
        setattr(saved_tensors_hooks, name, _count(method, step))
    here = functional.__name__
    for name in _DERIVATIVES:
        function = _originals[functional, name] = getattr(functional, name)
        setattr(functional, name, _outside(f"torch.autograd.functional.{name}", function, here))
    for name in "requires_grad_", "retain_grad":
        method = _originals[Tensor, name] = getattr(Tensor, name)
        _C._add_to_tensor({name: _outside(f"Tensor.{name}()", method, "lamella.")})


def uninstall() -> None:
    """Undoes install()."""
    transforms._rules = None
    _C._set_apply_rule(None)
    for (owner, name), value in _originals.items():
        if owner is Tensor:
            _C._add_to_tensor({name: value})
        else:
            setattr(owner, name, value)
    _originals.clear()
