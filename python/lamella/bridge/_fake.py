"""Shapes and dtypes of results for PyTorch, without computing them.

Note [Symbolic shapes]
  A Meta kernel wants numbers, so a program with symbolic sizes would be compiled anew for each
  size. Of pointwise operators and reductions the policy says how the shape of the result comes
  from the arguments. It is used if it agrees with the Meta kernel on the numbers that the
  symbols stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from lamella.bridge import _library, _torch_values, _transform
from lamella.bridge._library import Operator
from lamella.bridge._transform import Chain, Meta


def _hint(n: Any) -> int:
    """The number that a size stands for, without a guard."""
    if isinstance(n, torch.SymInt):
        hint = n.node.hint
        return int(n) if hint is None else int(hint)
    return int(n)


def _is_symbolic(tensors: Sequence[torch.Tensor]) -> bool:
    return any(isinstance(n, torch.SymInt) for x in tensors for n in (*x.shape, *x.stride()))


def meta_of(x: torch.Tensor, number: Callable[[Any], int]) -> tuple[Any, ...]:
    """For metas(), with the sizes that `number` makes of torch's."""
    return list(map(number, x.shape)), list(map(number, x.stride())), str(x.dtype)[6:]


def _is_dense(y: Meta) -> bool:
    return 0 in y.shape or torch.empty(y.shape, device="meta").stride() == y.stride


def _policy_shape(op: Operator, tensors: Sequence[Any], values: Sequence[Any]) -> Any:
    """The shape of the one result as the policy says; None: it says nothing."""
    if len(op.returns) != 1 or op.returns[0].type != "Tensor":
        return None
    if op.batching == "pointwise":
        return torch.broadcast_shapes(*(x.shape for x in tensors))
    if op.batching == "reduction" and len(tensors) == 1:
        given = {a.name: v for a, v in zip(op.arguments, values)}
        shape = list(tensors[0].shape)
        dims = given.get("dim")
        if dims is None or (isinstance(dims, (list, tuple)) and not dims):
            dims = range(len(shape))
        dims = {int(d) % max(len(shape), 1) for d in ([dims] if isinstance(dims, int) else dims)}
        if given.get("keepdim", False):
            return [1 if i in dims else n for i, n in enumerate(shape)]
        return [n for i, n in enumerate(shape) if i not in dims]
    return None


def of_operator(op: Operator) -> Callable[..., Any]:
    """The fake kernel of an operator of torch."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        if op.returns and all(r.is_write for r in op.returns):
            given = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
            same = [given[r.alias] for r in op.returns]
            return same[0] if len(same) == 1 else tuple(same)
        chain, tensors = _transform.split(op, values, _torch_values.is_tensor, _torch_values.frozen)
        symbolic = _is_symbolic(tensors)
        shape = _policy_shape(op, tensors, values) if symbolic else None
        number = _hint if shape is not None else int
        metas = [meta_of(x, number) for x in tensors]
        parts = _transform.metas(chain, metas)
        device = next((x.device for x in tensors), torch.device("cpu"))

        def made(y: Any) -> torch.Tensor:
            dtype = getattr(torch, y.dtype)
            if shape is not None and tuple(map(_hint, shape)) == y.shape and _is_dense(y):
                return torch.empty(shape, dtype=dtype, device=device)
            if shape is not None:
                return again(y)
            return torch.empty_strided(y.shape, y.stride, dtype=dtype, device=device)

        def again(y: Any) -> torch.Tensor:
            # The policy does not say it, so sizes are numbers from here on.
            for x in tensors:
                for n in x.shape:
                    int(n)
            dtype = getattr(torch, y.dtype)
            return torch.empty_strided(y.shape, y.stride, dtype=dtype, device=device)

        written = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
        out: list[Any] = []
        for r, part in zip(op.returns, parts):
            if r.is_write:
                out.append(written[r.alias])
            elif isinstance(part, Meta):
                out.append(made(part))
            elif r.is_tensor and isinstance(part, list):
                out.append([made(y) for y in part])
            else:
                out.append(part)
        return out[0] if len(out) == 1 else tuple(out) if out else None

    return fake


def chain(what: Chain, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The results of a chain of transforms."""
    if not what.transforms:
        op = _library.named(what.operator)
        values = _transform.filled(what.template, xs, _torch_values.thawed)
        found = _transform.flat(_torch_values.called(of_operator(op), op, values))
        return [y for y in found if isinstance(y, torch.Tensor)]
    inner = _transform.without_last(what)
    kind, *rest = what.transforms[-1]
    if kind == "vmap":
        (batched,) = rest
        size = next(x.shape[0] for x, b in zip(xs, batched) if b)
        examples = [x[0] if b else x for x, b in zip(xs, batched)]
        return [y.new_empty((size, *y.shape)) for y in chain(inner, examples)]
    ins, outs = rest
    primals = _transform.inputs_of(what, xs)
    if kind == "vjp":
        return [primals[i].new_empty(primals[i].shape) for i in ins]
    found = chain(inner, list(primals))
    return [found[o].new_empty(found[o].shape) for o in outs]
