"""Nest: takes nested arguments and results of a traced function apart into a list of tensors and a
form, which describes the structure and the other values. Also writes forms to JSON."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.utils import _pytree

_FIXED = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))


# See Nest for the items. A form contains the forms of the nested values.
Form = tuple[Any, ...]


class Nest:
    """Nested values: `form` is their structure, `tensors` are the tensors among them in order.

    A form is ("tensor", i), ("fixed", value), ("tuple", forms), ("list", forms), ("slice", forms),
    ("dict", keys, forms), ("named", type, forms) for named tuples, and ("node", type, context,
    forms) for types registered with lamella.utils._pytree.
    """

    def __init__(self, form: Form, tensors: list[Any]) -> None:
        self.form, self.tensors = form, tensors

    @classmethod
    def pack(cls, value: Any, what: str | None = None) -> Nest:
        """Takes a nested value apart. what: the beginning of the TypeError for values of other
        types; if None, such values are fixed values."""
        tensors: list[Any] = []
        return cls(_pack(value, tensors, what, ""), tensors)

    def unpack(self, tensors: Any) -> Any:
        """The nested value with `tensors` in place of its own."""
        return _unpack(self.form, tensors)

    def without_tensors(self) -> Nest:
        return Nest(self.form, [])

    def places(self) -> list[tuple[Any, ...]]:
        """The path to each tensor: keys and indices from the outside in."""
        return list(_places(self.form, ()))

    def describe(self) -> str:
        return _describe(self.form)


def is_plain(value: Any) -> bool:
    """Whether a value holds no tensors."""
    kinds = (lamella.dtype, lamella.device, lamella.layout, lamella.memory_format, lamella.Size)
    return isinstance(value, (*_FIXED, *kinds))


def fixed_values(form: Form) -> list[Any]:
    """The values of a form that are not tensors."""
    if form[0] == "fixed":
        return [form[1]]
    if form[0] == "tensor":
        return []
    return [value for item in form[-1] for value in fixed_values(item)]


def _pack(value: Any, tensors: list[Tensor], what: str | None, place: str) -> Form:
    if isinstance(value, Tensor):
        tensors.append(value)
        return ("tensor", len(tensors) - 1)

    def below(items: Sequence[Any], keys: Iterable[Any] | None = None) -> tuple[Form, ...]:
        keys = range(len(items)) if keys is None else keys
        return tuple(_pack(v, tensors, what, f"{place}[{k!r}]") for k, v in zip(keys, items))

    kind = type(value)
    if kind is tuple or kind is list:
        return (kind.__name__, below(value))
    if kind is slice:
        return ("slice", below((value.start, value.stop, value.step)))
    if kind is dict:
        return ("dict", tuple(value), below(list(value.values()), value))
    if kind is lamella.Size:
        return ("fixed", value)
    _, found = _pytree._kind_of(value)
    if found is _pytree._named:
        return ("named", kind, below(value))
    if found is not None:
        items, context = found.flatten_fn(value)
        return ("node", kind, context, below(items))
    if what is not None and not is_plain(value):
        raise TypeError(
            f"{what} tensors, numbers, text, lists, tuples and dictionaries, got "
            f"{kind.__name__}{' at ' + place if place else ''}"
        )
    return ("fixed", value)


def _unpack(form: Form, tensors: Sequence[Any]) -> Any:
    kind = form[0]
    if kind == "tensor":
        return tensors[form[1]]
    if kind == "fixed":
        return form[1]
    items = [_unpack(item, tensors) for item in form[-1]]
    if kind == "tuple":
        return tuple(items)
    if kind == "list":
        return items
    if kind == "slice":
        return slice(*items)
    if kind == "dict":
        return dict(zip(form[1], items))
    if kind == "named":
        return _pytree._named.unflatten_fn(items, form[1])
    return _pytree._kinds[form[1]].unflatten_fn(items, form[2])


def _places(form: Form, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if form[0] == "tensor":
        yield place
    elif form[0] != "fixed":
        keys = form[1] if form[0] == "dict" else range(len(form[-1]))
        for key, item in zip(keys, form[-1]):
            yield from _places(item, (*place, key))


def _describe(form: Form) -> str:
    kind = form[0]
    if kind == "tensor":
        return "Tensor"
    if kind == "fixed":
        return repr(form[1])
    items = [_describe(item) for item in form[-1]]
    if kind == "list":
        return f"[{', '.join(items)}]"
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(form[1], items)) + "}"
    if kind == "slice":
        return f"slice({', '.join(items)})"
    name = "" if kind == "tuple" else form[1].__name__.rpartition(".")[2]
    return f"{name}({', '.join(items)}{',' if kind == 'tuple' and len(items) == 1 else ''})"


def _named(cls: Any) -> tuple[str, tuple[str, ...]]:
    """The name and the fields of a type of named tuples: types with equal ones count as equal."""
    fields = getattr(cls, "_fields", None)
    if fields is None:
        fields = getattr(cls, "__match_args__", None)  # absent in Python 3.9
    if fields is None:
        fields = [f"result{i}" for i in range(cls.n_fields)]
    return cls.__name__.rpartition(".")[2], tuple(fields)


def difference(expected: Form, got: Form, place: str = "") -> str:
    """The first difference between two forms, as text; empty if they are the same."""
    if expected[0] == got[0] == "named":
        if _named(expected[1]) != _named(got[1]):
            return f"{_describe(expected)}{place}, got {_describe(got)}"
        expected, got = ("tuple", expected[-1]), ("tuple", got[-1])
    if expected[0] != got[0] or (expected[0] == "node" and expected[1] is not got[1]):
        return f"{_describe(expected)}{place}, got {_describe(got)}"
    if expected[0] == "tensor":
        return ""
    if expected[0] == "fixed":
        if not is_plain(expected[1]) and expected[1] is not got[1]:
            return f"the same object of the class {type(expected[1]).__name__}{place}"
        same = type(expected[1]) is type(got[1]) and _same(expected[1], got[1])
        return "" if same else f"{expected[1]!r}{place}, as traced, got {got[1]!r}"
    if expected[1:-1] != got[1:-1] or len(expected[-1]) != len(got[-1]):
        return f"{_describe(expected)}{place}, got {_describe(got)}"
    for a, b in zip(expected[-1], got[-1]):
        text = difference(a, b, place)
        if text:
            return text
    return ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return a is b or bool(a == b)


# ---- Forms in files ------------------------------------------------------------------------------


def to_json(form: Form, what: str) -> dict[str, Any]:
    """The form as JSON values; TypeError if it holds a value that files cannot store."""
    kind = form[0]
    if kind == "tensor":
        return {"tensor": form[1]}
    if kind == "fixed":
        return _fixed_to_json(form[1], what)
    items = [to_json(item, what) for item in form[-1]]
    if kind == "dict":
        return {"dict": [[_fixed_to_json(k, what), v] for k, v in zip(form[1], items)]}
    if kind == "named":
        name, fields = _named(form[1])
        return {"named": [name, list(fields), items]}
    if kind == "node":
        raise TypeError(
            f"save: expected {what} to be lists, tuples and dictionaries, got "
            f"{form[1].__name__}"
        )
    return {kind: items}


def _fixed_to_json(value: Any, what: str) -> dict[str, Any]:
    if value is None or isinstance(value, (bool, int, str)):
        return {"value": value}
    if isinstance(value, lamella.Size):
        return {"size": list(value)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, lamella.dtype):
        return {"dtype": str(value).rpartition(".")[2]}
    if isinstance(value, lamella.device):
        return {"device": str(value)}
    if isinstance(value, lamella.memory_format):
        return {"memory_format": str(value).rpartition(".")[2]}
    if isinstance(value, lamella.layout):
        return {"layout": str(value).rpartition(".")[2]}
    if value is Ellipsis:
        return {"ellipsis": None}
    raise TypeError(
        f"save: expected {what} to be tensors, numbers and text, got {type(value).__name__}"
    )


def from_json(entry: Any) -> Form:
    """The form that to_json() wrote; ValueError if `entry` is not one."""
    if not isinstance(entry, dict) or len(entry) != 1:
        raise ValueError(f"load: expected a form, got {entry!r}")
    ((kind, content),) = entry.items()
    if kind == "tensor" and isinstance(content, int):
        return ("tensor", content)
    if kind in ("tuple", "list", "slice"):
        return (kind, tuple(from_json(item) for item in content))
    if kind == "dict":
        keys = tuple(_fixed_from_json(key) for key, _ in content)
        return ("dict", keys, tuple(from_json(item) for _, item in content))
    if kind == "named":
        name, fields, items = content
        # namedtuple() checks that the names are identifiers.
        named: Any = collections.namedtuple
        cls = named(name, fields)
        return ("named", cls, tuple(from_json(item) for item in items))
    return ("fixed", _fixed_from_json(entry))


def _fixed_from_json(entry: dict[str, Any]) -> Any:
    ((kind, content),) = entry.items()
    if kind == "value":
        return content
    if kind == "float":
        return float.fromhex(content)
    if kind == "size":
        return lamella.Size(content)
    if kind == "complex":
        return complex(*map(float.fromhex, content))
    if kind == "dtype":
        return dtype_named(content)
    if kind == "device":
        return lamella.device(content)
    if kind == "memory_format":
        return _attribute(content, lamella.memory_format)
    if kind == "layout":
        return _attribute(content, lamella.layout)
    if kind == "ellipsis":
        return ...
    raise ValueError(f"load: expected a fixed value, got {entry!r}")


def dtype_named(name: Any) -> Any:
    return _attribute(name, lamella.dtype)


def _attribute(name: Any, kind: type) -> Any:
    found = getattr(lamella, name, None) if isinstance(name, str) else None
    if not isinstance(found, kind):
        raise ValueError(f"load: expected a {kind.__name__}, got {name!r}")
    return found
