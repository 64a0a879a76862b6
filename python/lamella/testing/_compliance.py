"""Checks that composite kernels only call operators.

lamella.testing.check_composite_compliance(lamella.ops.mylib.norm, (x,), {"dim": 1})
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lamella import _C

__all__ = ["check_composite_compliance", "composite_check"]


@contextlib.contextmanager
def composite_check() -> Iterator[None]:
    """A context in which this thread's calls of composite kernels are checked.

    A composite kernel (CompositeImplicitAutograd) may only call operators. One that reads or writes
    elements, calls item, resize_, set_ or out= operators, or itself changes sizes, strides, types
    or flags of a tensor raises RuntimeError, which names the operator and what it did. So does an
    operator that returns an undefined tensor although its schema does not allow that.
    """
    before = _C._set_composite_check(True)
    try:
        yield
    finally:
        _C._set_composite_check(before)


def check_composite_compliance(
    op: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Calls `op` under composite_check() and returns its result.

    op: an operator, or any function that calls operators; all composite ones are checked.
    """
    with composite_check():
        return op(*args, **(kwargs or {}))
