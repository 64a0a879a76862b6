"""Adds Python's operators to Op, and the builder's functions as methods to Builder."""

# The functions of the extension module have no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from lamella import _hlo
from lamella._hlo import Builder, Op
from lamella.hlo import _computations, _functions


def _binary(name: str, turned: bool) -> Any:
    function = getattr(_functions, name)

    def operator(self: Op, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return function(other, self) if turned else function(self, other)

    return operator


def _is_operand(value: Any) -> bool:
    return value is not None and not isinstance(value, (str, bytes, tuple, list, dict))


def _shift_right(self: Op, other: Any) -> Any:
    if not _is_operand(other):
        return NotImplemented
    signed = self.shape.element_type[0] == "s"
    name = "shift_right_arithmetic" if signed else "shift_right_logical"
    return getattr(_functions, name)(self, other)


def _item(self: Op, key: Any) -> Op:
    """One element of a tuple, or a slice of an array: an int removes a dimension, a slice keeps it,
    None adds one, and ... stands for all other dimensions."""
    shape = self.shape
    if shape.is_tuple:
        if not isinstance(key, int):
            raise TypeError(f"Op: expected the index of a tuple to be an int, got {key!r}")
        count = len(shape.tuple_shapes)
        if not -count <= key < count:
            raise IndexError(f"Op: expected an index of a tuple of {count}, got {key}")
        return _hlo.build_get_tuple_element(self, key % count)
    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > shape.rank:
        raise IndexError(f"Op: expected at most {shape.rank} indices, got {used}")
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (shape.rank - used)
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []
    turned: list[int] = []
    sizes: list[int] = []
    for k in keys:
        if k is None:
            sizes.append(1)
            continue
        dimension = len(starts)
        extent = shape.dimensions[dimension]
        if isinstance(k, slice):
            start, stop, step = k.indices(extent)
            count = len(range(start, stop, step))
            if step < 0:
                turned.append(dimension)
                start, step = start + (count - 1) * step, -step
            starts.append(start if count else 0)
            limits.append(start + (count - 1) * step + 1 if count else 0)
            strides.append(step)
            sizes.append(count)
        elif isinstance(k, int) and not isinstance(k, bool):
            if not -extent <= k < extent:
                raise IndexError(f"Op: expected an index below {extent}, got {k}")
            starts.append(k % extent)
            limits.append(k % extent + 1)
            strides.append(1)
        else:
            raise TypeError(f"Op: expected an int, a slice, None or ..., got {k!r}")
    made = self
    if any(starts) or list(limits) != list(shape.dimensions) or set(strides) - {1}:
        made = _hlo.build_slice(made, starts, limits, strides)
    if turned:
        made = _hlo.build_rev(made, turned)
    if sizes != list(made.shape.dimensions):
        made = _hlo.build_reshape(made, sizes)
    return made


def _method(function: Any) -> Any:
    """Makes a method of Builder from a function whose first parameter is the builder."""

    def method(self: Builder, *args: Any, **kwargs: Any) -> Op:
        made: Op = function(self, *args, **kwargs)
        return made

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _keyword_method(function: Any) -> Any:
    def method(self: Builder, *args: Any, **kwargs: Any) -> Op:
        made: Op = function(*args, builder=self, **kwargs)
        return made

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def install() -> None:
    operators = {
        "add": "add",
        "sub": "sub",
        "mul": "mul",
        "truediv": "div",
        "mod": "rem",
        "pow": "pow",
        "and": "and_",
        "or": "or_",
        "xor": "xor",
        "lshift": "shift_left",
    }
    kind: Any = Op
    for name, function in operators.items():
        setattr(kind, f"__{name}__", _binary(function, False))
        setattr(kind, f"__r{name}__", _binary(function, True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(kind, f"__{name}__", _binary(name, False))
    kind.__rshift__ = _shift_right
    kind.__matmul__ = _binary("dot", False)
    kind.__neg__ = lambda self: _hlo.build_neg(self)
    kind.__abs__ = lambda self: _hlo.build_abs(self)
    kind.__invert__ = lambda self: _hlo.build_not_(self)
    kind.__getitem__ = _item
    kind.__iter__ = None
    for name, parameters, _ in _hlo._builder_signatures():
        if not name.startswith("_") and parameters[0][0] == "builder" and name != "parameter":
            setattr(Builder, name, _method(getattr(_functions, name)))
    for name in ("map", "call", "composite_call"):
        setattr(Builder, name, _keyword_method(getattr(_computations, name)))
