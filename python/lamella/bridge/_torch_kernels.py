"""CPU kernels of bridged operators: those in C, and in Python those of arguments without a stable
form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from lamella.bridge import _arrays, _library
from lamella.bridge._library import Operator
from lamella.bridge._torch_values import called, frozen


def implement(
    what: str, op: Operator, torch_name: str, recorded: str | None, form: int = 0
) -> bool:
    is_done = ctypes.c_int32()
    function = getattr(_library.native(), f"lamella_bridge_torch_{what}")
    full = recorded and f"{op.name.partition('::')[0]}::{recorded}"
    _library.check(
        function(
            op.name.encode(), op.overload.encode(), torch_name.encode(),
            full and full.encode(), form, ctypes.byref(is_done),
        )
    )  # fmt: skip
    return bool(is_done.value)


def _python_kernel(op: Operator) -> Callable[..., Any]:
    """The CPU kernel of an operator by its function of arrays."""
    function = _arrays.function_of(op.name, [op])

    def plain(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.detach().resolve_conj().resolve_neg()
        return [plain(y) for y in x] if isinstance(x, (list, tuple)) else x

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        made = called(function, op, list(map(plain, values)))
        if not any(r.is_write for r in op.returns):
            return made
        written = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
        parts = [made] if len(op.returns) == 1 else made
        out = [written[r.alias] if r.is_write else y for r, y in zip(op.returns, parts)]
        return out[0] if len(out) == 1 else tuple(out)

    return kernel


def _flat_types(op: Operator) -> list[str]:
    """The parameters of the operator that C has a kernel for, where some of its own have no stable
    form: Note [Torch's stable calls] in lamella/bridge/torch.cpp."""
    flat = {"Tensor?[]": ["Tensor[]", "int[]"]}
    flat["Scalar"] = flat["Scalar?"] = ["int", "int", "float", "float"]
    marks = [f"{a.type}({a.alias[0]}!)" if a.is_write else a.type for a in op.arguments]
    return [t for mark in marks for t in flat.get(mark, [mark])]


def _number(v: Any) -> tuple[int, int, float, float]:
    kind = type(v)
    if kind is float:
        return 2, 0, v, 0.0
    if kind is int:
        return 1, v, 0.0, 0.0
    if kind is bool:
        return 3, int(v), 0.0, 0.0
    if v is None:
        return 0, 0, 0.0, 0.0
    if kind is complex:
        return 4, 0, v.real, v.imag
    return _number(v.item() if isinstance(v, torch.Tensor) else frozen(v, "Scalar"))


def _present(v: Sequence[Any]) -> tuple[list[torch.Tensor], list[int]]:
    there = [x for x in v if x is not None]
    numbers = iter(range(len(there)))
    return there, [-1 if x is None else next(numbers) for x in v]


def _kernel_of_flat(op: Operator, flat: Any) -> Callable[..., Any]:
    """The kernel in Python of an operator by the one of _flat_types()."""
    encoders = {"Scalar": _number, "Scalar?": _number, "Tensor?[]": _present}
    how = [encoders.get(a.type) for a in op.arguments]
    count, raw = len(how), flat._op

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = args if len(args) == count else op.bound(args, kwargs)
        given: list[Any] = []
        for encode, v in zip(how, values):
            if encode is None:
                given.append(v)
            else:
                given += encode(v)
        return raw(*given)

    return kernel


def python_kernel(op: Operator, block: torch.library.Library) -> Callable[..., Any]:
    """The CPU kernel, in Python, of an operator whose arguments have no stable form."""
    space, _, short = op.name.partition("::")
    types = _flat_types(op)
    if len(types) == len(op.arguments):
        return _python_kernel(op)
    name = f"_lamella_flat_{short}" + (f"_{op.overload}" if op.overload else "")
    parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    results = [f"{r.type}({r.alias[0]}!)" if r.is_write else r.type for r in op.returns]
    block.define(f"{name}({parameters}) -> ({', '.join(results)})")
    if not implement("implement", op, f"{space}::{name}", None, form=4):
        return _python_kernel(op)
    return _kernel_of_flat(op, getattr(getattr(torch.ops, space), name).default)
