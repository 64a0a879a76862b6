"""autograd.Function: functions whose forward and backward are written in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lamella import _C
from lamella._C import _FunctionCtx as FunctionCtx
from lamella._C import _FunctionMeta as FunctionMeta
from lamella._vmap_info import VmapInfo  # noqa: F401

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "once_differentiable"]


class Function(metaclass=FunctionMeta):
    """Base class of differentiable functions. Derive from it, and call `apply` on the class::

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad):
                (y,) = ctx.saved_tensors
                return grad * y

    Alternatively define `forward(x)` without a context and `setup_context(ctx, inputs, output)`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: expected its static methods and apply() to be used, "
            "got a call of the class"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """forward(ctx, *args), or forward(*args) if the class has setup_context."""
        raise NotImplementedError("Function: expected a static method 'forward' in the class")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Stores in `ctx` what backward needs; inputs: the tuple of forward's arguments."""
        raise NotImplementedError("Function: expected a static method 'setup_context' in the class")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes the gradients of forward's arguments from those of its outputs."""
        raise NotImplementedError(
            "Function: expected a static method 'backward' or 'vjp' in the class"
        )

    # PyTorch's other name for backward. A class may define either.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Computes the tangents of forward's outputs from those of its arguments."""
        raise NotImplementedError("Function: expected a static method 'jvp' in the class")

    # True: vmap runs forward and backward on batched tensors, so they may only call operators.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Replaces forward under vmap: args have their batch in the dimensions in_dims.

        info has batch_size and randomness. Returns (outputs, out_dims).
        """
        raise NotImplementedError("Function: expected a static method 'vmap' in the class")

    if TYPE_CHECKING:
        # The metaclass adds `apply` to every derived class.
        @classmethod
        def apply(cls, *args: Any, **kwargs: Any) -> Any: ...


_C._finish_function(Function)
_default_vmap = Function.vmap


def _apply_batched(cls: type[Function], /, *args: Any, **kwargs: Any) -> Any:
    """apply() for arguments with batched tensors; NotImplemented if the class generates its rule,
    so that forward and backward run on the batched tensors."""
    name = cls.__name__
    own = cls.vmap is not _default_vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"{name}: expected either generate_vmap_rule = True or a static method 'vmap', got both"
        )
    if cls.generate_vmap_rule:
        return NotImplemented
    if not own:
        raise RuntimeError(
            f"{name}: expected generate_vmap_rule = True, or a static method 'vmap', in a function "
            "that is used under vmap"
        )
    from lamella.func.vmap import call_rule

    if kwargs:
        args = _bind_arguments(cls.forward, *args, **kwargs)
    return call_rule(f"{name}.vmap", cls.vmap, args)


def _bind_arguments(forward: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """The arguments of a forward that takes no context, with defaults, as positional ones."""
    signature = inspect.signature(forward)
    bound = signature.bind(*args, **kwargs)
    only_named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    named = [name for name in bound.arguments if signature.parameters[name].kind in only_named]
    if named:
        raise TypeError(f"forward: expected no keyword-only arguments, got {', '.join(named)}")
    bound.apply_defaults()
    return bound.args


def _bind_behind_context(forward: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The arguments of a forward after its context, with defaults, as positional ones."""
    return _bind_arguments(forward, None, *args, **kwargs)[1:]


class _OnceDifferentiable(Function):
    """The identity, whose backward is an error."""

    @staticmethod
    def forward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return tuple(None if grad is None else grad.detach() for grad in grads)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "once_differentiable: expected the gradients of a backward with this decorator not to "
            "be differentiated again"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that cannot itself be differentiated; it runs without gradients."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with _C.no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        if not any(isinstance(arg, _C.Tensor) and arg.requires_grad for arg in args):
            return outputs
        # Aliases that require gradients, so that a second backward reaches the error.
        given = tuple(
            out.detach().requires_grad_()
            if isinstance(out, _C.Tensor) and (out.is_floating_point() or out.is_complex())
            else out
            for out in (outputs if isinstance(outputs, tuple) else (outputs,))
        )
        marked = _OnceDifferentiable.apply(*given)
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper
