"""Deprecated positional signatures: add(x, alpha, y), addcmul(x, value, a, b), addmm(beta, x, a,
b).

A call that matches no current signature is retried with its arguments in the current order.
"""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import lamella
from lamella import _C, Tensor, _storage
from lamella.compat._wrapper_policy import _WrapperStorage

_NUMBERS = ("alpha", "beta", "value")


def _orders(before: str, after: str) -> list[list[str]]:
    """The argument orders of a product, with and without the factor before it."""
    return [f"{before} self {middle} {after}".split() for middle in ("", "alpha")]


# The former positions of arguments that are keyword-only today, in the order of functions. For
# methods, self comes first.
_ORDERS = {
    "add": [["self", "alpha", "other"]],
    "sub": [["self", "alpha", "other"]],
    "addcmul": [["self", "value", "tensor1", "tensor2"]],
    "addcdiv": [["self", "value", "tensor1", "tensor2"]],
    "addmm": _orders("beta", "mat1 mat2"),
    "addmv": _orders("beta", "mat vec"),
    "addr": _orders("beta", "vec1 vec2"),
    "addbmm": _orders("beta", "batch1 batch2"),
    "baddbmm": _orders("beta", "batch1 batch2"),
}


def _fits(name: str, value: Any) -> bool:
    number = isinstance(value, numbers.Number)
    # A number may be the second term of a sum.
    return number if name in _NUMBERS else isinstance(value, Tensor) or (name == "other" and number)


def _with_memory(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of Tensor.set_(), with each storage replaced by a tensor over its memory."""
    storage: Any = args[1] if len(args) > 1 else kwargs.get("source")
    storage = getattr(storage, "_untyped_storage", storage)
    lacks_memory = isinstance(storage, _WrapperStorage)
    if not lacks_memory and not isinstance(storage, _storage.UntypedStorage):
        return None
    dtype = args[0].dtype
    held = getattr(args[1] if len(args) > 1 else kwargs.get("source"), "dtype", dtype)
    if held != dtype:
        raise RuntimeError(f"set_: expected a storage of {dtype}, got one of {held}")
    count = storage.nbytes() // dtype.itemsize
    if lacks_memory:
        tensor = storage._elements()
    else:
        tensor = _storage.rebuild_tensor(storage, dtype, 0, (count,), (1,))
    rest = {key: value for key, value in kwargs.items() if key != "source"}
    return (args[0], tensor, *args[2:]), rest


_FACTORIES = frozenset(
    "arange empty eye full linspace logspace normal ones rand randint randn randperm range "
    "zeros".split()
)


def _without_options(name: str, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """A factory's keywords without the options that `out` already determines; None if `out` is
    missing."""
    out = kwargs.get("out")
    told = {key: kwargs[key] for key in ("dtype", "device", "layout") if key in kwargs}
    if out is None or not (told or "requires_grad" in kwargs or "pin_memory" in kwargs):
        return None
    for key, value in told.items():
        own = getattr(out, key)
        if value is not None and (lamella.device(value) if key == "device" else value) != own:
            raise RuntimeError(f"{name}: expected '{key}' to be that of 'out', {own}, got {value}")
    if kwargs.get("requires_grad"):
        return None
    rest = ("requires_grad", "pin_memory", *told)
    return {key: value for key, value in kwargs.items() if key not in rest}


def _rewritten(
    name: str, is_method: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Translates an old signature's arguments to today's; None if no old signature matches."""
    if name == "set_" and is_method:
        return _with_memory(args, kwargs)
    if name in _FACTORIES and not is_method:
        rest = _without_options(name, kwargs)
        return None if rest is None else (args, rest)
    if name == "roll" and kwargs.get("dims", 0) is None:
        return args, {key: value for key, value in kwargs.items() if key != "dims"}
    plain = name[:-1] if is_method and name.endswith("_") else name
    if len(args) < 2:
        return None
    for order in _ORDERS.get(plain, ()):
        if is_method:
            order = ["self", *(entry for entry in order if entry != "self")]
        given = dict(zip(order, args))
        rest = {key: value for key, value in kwargs.items() if key != "out"}
        if len(args) > len(order) or given.keys() & rest.keys():
            continue
        given.update(rest)
        if given.keys() != set(order) or not all(_fits(key, given[key]) for key in order):
            continue
        warnings.warn(
            f"This overload of {name} is deprecated: expected "
            f"{' and '.join(key for key in order if key in _NUMBERS)} by keyword, got a number by "
            "position",
            UserWarning,
            stacklevel=2,
        )
        tensor = given.pop("self")
        if "out" in kwargs:
            given["out"] = kwargs["out"]
        return (tensor,), given
    return None


def install() -> None:
    """Makes calls that match no signature try the old ones."""
    _C._rewrite_failed_calls(_rewritten)


def uninstall() -> None:
    """Undoes install()."""
    _C._rewrite_failed_calls(None)
