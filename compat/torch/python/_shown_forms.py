"""The overloads by which __torch_dispatch__ handlers see operators.

In Lamella an operand that is a number selects an overload of its own (add.Scalar), and a reduction
over all elements is the overload for dimensions (sum.dim_IntList). Handlers for PyTorch expect
add.Tensor with a number and sum.default, so these are passed to them. They also expect factories to
have the device and `pin_memory`, which calls rarely give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C

_Shown = tuple[Any, tuple[Any, ...], dict[str, Any]]
_Form = Callable[[tuple[Any, ...], dict[str, Any]], "_Shown | None"]


def _with_number(target: Any) -> _Form:
    """The overload for a tensor, called with a number; alpha becomes a keyword."""

    def form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Shown:
        return target, args[:2], {**dict(zip(("alpha",), args[2:])), **kwargs}

    return form


def _of_all(target: Any) -> _Form:
    """The overload of a reduction without dimensions."""

    def form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Shown | None:
        dims = args[1] if len(args) > 1 else kwargs.get("dim")
        if dims or any(args[2:]) or kwargs.get("keepdim"):
            return None
        rest = {name: value for name, value in kwargs.items() if name not in ("dim", "keepdim")}
        return target, args[:1], rest

    return form


def _tensor_first(other: Any) -> _Form:
    """The call with swapped operands, for a number before a tensor."""

    def form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Shown | None:
        if len(args) == 2 and not isinstance(args[0], lamella.Tensor):
            return other, (args[1], args[0]), kwargs
        return None

    return form


_FACTORIES = (
    "arange empty empty_like empty_strided eye full full_like linspace logspace new_empty "
    "new_empty_strided new_full new_ones new_zeros ones ones_like rand rand_like randint "
    "randint_like randn randn_like randperm zeros zeros_like"
).split()


def _with_options(overload: Any) -> _Form | None:
    """The call of a factory with all options that PyTorch's functions give; None for overloads
    without options."""
    order = [argument.name for argument in overload._schema.arguments]
    if "pin_memory" not in order:
        return None
    defaults: dict[str, Any] = {"pin_memory": False}
    if not any(str(argument.type) == "Tensor" for argument in overload._schema.arguments):
        defaults["device"] = lamella.device("cpu")

    def form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Shown:
        # Operators that make tensors name the layout, and nothing that they do not need.
        given = kwargs if "layout" in kwargs else {**defaults, **kwargs}
        return overload, args, {name: given[name] for name in order if name in given}

    return form


def _forms() -> dict[Any, _Form]:
    ops = lamella.ops.aten
    forms: dict[Any, _Form] = {}
    for name in ("add", "sub", "mul", "div"):
        for mark in ("", "_"):
            packet = getattr(ops, name + mark)
            forms[packet.Scalar] = _with_number(packet.Tensor)
    for packet in (ops.div, ops.div_):
        forms[packet.Scalar_mode] = _with_number(packet.Tensor_mode)
    forms[ops.floordiv.Scalar] = _with_number(ops.floor_divide.default)
    for packet, whole in ((ops.sum.dim_IntList, ops.sum), (ops.mean.dim, ops.mean)):
        forms[packet] = _of_all(whole.default)
    for packet in (ops.all, ops.any):
        forms[packet.dims] = _of_all(packet.default)
    for packet, whole in ((ops.amax, ops.max), (ops.amin, ops.min)):
        forms[packet.default] = _of_all(whole.default)
    for packet in (getattr(ops, name) for name in _FACTORIES):
        for overload in (getattr(packet, name) for name in packet.overloads()):
            form = _with_options(overload)
            if form is not None:
                forms[overload] = form
    forms[ops.add.Tensor] = _tensor_first(ops.add.Tensor)
    forms[ops.mul.Tensor] = _tensor_first(ops.mul.Tensor)
    forms[ops.sub.Tensor] = _tensor_first(ops.rsub.Scalar)
    return forms


def install() -> None:
    """Makes handlers see PyTorch's overloads."""
    _C._set_shown_forms(_forms())


def uninstall() -> None:
    """Makes handlers see Lamella's overloads."""
    _C._set_shown_forms(None)
