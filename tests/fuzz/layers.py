"""Fuzzed calls under a layer: with gradients, batched, functionalized, traced."""

from __future__ import annotations

from typing import Any

from running import tensors_in

import lamella


def _autograd(call: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Floating-point tensors require gradients; backward of the sum of all results."""
    leaves = []
    for tensor in tensors_in([args, *kwargs.values()]):
        if tensor.is_floating_point() or tensor.is_complex():
            if tensor.device.type == "cpu" and len(leaves) < 4 and tensor.numel() < 10000:
                tensor.requires_grad_()
                leaves.append(tensor)
    writes = call.op.is_inplace
    if writes and args and isinstance(args[0], lamella.Tensor) and args[0].requires_grad:
        args[0] = args[0].alias()  # a leaf is not written in place
    result = call.op.call(*args, **kwargs)
    wanted = [t for t in tensors_in(result) if t.requires_grad and t.device.type == "cpu"]
    if wanted and leaves:
        grads = [lamella.ones_like(t) for t in wanted]
        lamella.autograd.grad(wanted, leaves, grads, allow_unused=True)
    return result


def _vmap(call: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Over the first dimension of every other tensor among the arguments."""
    dims: list[Any] = []
    for number, arg in enumerate(args):
        batched = isinstance(arg, lamella.Tensor) and arg.dim() > 0 and number % 3 != 2
        dims.append(0 if batched else None)
    if all(dim is None for dim in dims):
        return call.op.call(*args, **kwargs)
    return lamella.vmap(
        lambda *xs: call.op.call(*xs, **kwargs), in_dims=tuple(dims), randomness="different"
    )(*args)


def _functionalize(call: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return lamella.func.functionalize(lambda *xs: call.op.call(*xs, **kwargs))(*args)


def _trace(call: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    graph = lamella.trace(lambda *xs: call.op.call(*xs, **kwargs), *args)
    str(graph)
    return None


LAYERS: dict[str, Any] = {
    "none": None,
    "autograd": _autograd,
    "vmap": _vmap,
    "functionalize": _functionalize,
    "trace": _trace,
}
