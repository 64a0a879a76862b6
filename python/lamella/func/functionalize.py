"""functionalize: removes in-place writes from functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from lamella import _C, Tensor
from lamella.func import transforms
from lamella.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["functionalize"]

_REMOVE = ("mutations", "mutations_and_views")


_FUNCTIONALIZE: int = _C._dispatch_functionality_bits("Functionalize")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the same effect as func that calls no in-place operators while it runs.

    In-place operators become their functional forms: `y = add(x, 1)` instead of `x.add_(1)`. Outer
    layers see only pure operators, and at the end one copy_ for each argument that func writes.
    Results equal those of func, and alias arguments if its results do.
    remove: "mutations", or "mutations_and_views", which also turns views into copies, so that
    results do not alias arguments.

    func may write only its arguments and tensors that it made.
    """
    if remove not in _REMOVE:
        raise RuntimeError(
            f"functionalize: expected 'remove' to be 'mutations' or 'mutations_and_views', got "
            f"{remove!r}"
        )
    copies = remove == "mutations_and_views"

    def functionalized(*args: Any, **kwargs: Any) -> Any:
        before = _C._functionalize_copies(copies)
        if before is not None:  # inside another functionalize, which does the work
            try:
                _C._functionalize_copies(copies or before)
                return func(*args, **kwargs)
            finally:
                _C._functionalize_copies(before)
        leaves, spec = tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        # The tensors of the function have no memory, so no guard may hide the layer from its calls.
        hidden = _C._thread_keys()[1] & _FUNCTIONALIZE
        _C._exclude_keys(hidden, False)
        session, wrappers = _C._functionalize_begin(copies, [leaves[i] for i in places])
        try:
            for i, wrapper in zip(places, wrappers):
                leaves[i] = wrapper
            new_args, new_kwargs = tree_unflatten(leaves, spec)
            rules = transforms._rules
            with rules.running("functionalize") if rules else nullcontext():
                results, out_spec = tree_flatten(func(*new_args, **new_kwargs))
            places = [i for i, result in enumerate(results) if isinstance(result, Tensor)]
            values = _C._functionalize_finish(session, [results[i] for i in places])
            for i, value in zip(places, values):
                results[i] = value
            return tree_unflatten(results, out_spec)
        finally:
            _C._functionalize_end(session)
            _C._exclude_keys(hidden, True)

    try:
        return functools.wraps(func)(functionalized)
    except (AttributeError, TypeError):
        return functionalized
