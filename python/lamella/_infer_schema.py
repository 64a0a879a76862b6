"""lamella.library.infer_schema(): derives a schema from the type hints of a function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Union

from lamella import _C

__all__ = ["infer_schema"]

_NUMBER = frozenset({int, float, bool})

# Schema types of hints that stand for one value.
_SINGLE: dict[Any, str] = {
    _C.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
}
# Schema types that may be elements of lists.
_ELEMENTS = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNS = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")

_PARAMETERS_TEXT = (
    "Tensor, int, float, bool, str, dtype, device, int | float | bool, Optional of them, "
    "and Sequence or List of Tensor, Optional[Tensor], int, float, bool and int | float | bool"
)


def _members(annotation: Any) -> frozenset[Any] | None:
    """The member types of a Union; None for other hints."""
    origin = typing.get_origin(annotation)
    if origin is Union or origin is getattr(types, "UnionType", None):
        return frozenset(typing.get_args(annotation))
    return None


def _schema_type(annotation: Any) -> str | None:
    """The schema's name for a type, or None if it has none."""
    members = _members(annotation)
    if members == _NUMBER:
        return "Scalar"
    if members is not None and type(None) in members:
        rest = members - {type(None)}
        if rest == _NUMBER:
            return "Scalar?"
        inner = _schema_type(next(iter(rest))) if len(rest) == 1 else None
        fits = inner is not None and not inner.endswith("?") and inner != "Tensor[]"
        return f"{inner}?" if fits and inner not in ("Tensor?[]", "Scalar[]") else None
    if typing.get_origin(annotation) in (list, collections.abc.Sequence):
        element = _schema_type(typing.get_args(annotation)[0])
        return f"{element}[]" if element in (*_ELEMENTS, "Tensor?") else None
    try:
        return _SINGLE.get(annotation)
    except TypeError:  # not hashable
        return None


def _return_type(annotation: Any) -> str | None:
    kind = _schema_type(annotation)
    if kind == "Tensor[]" and typing.get_origin(annotation) is not list:
        return None
    return kind if kind in _RETURNS else None


def _default_text(value: Any, fail: Callable[[str], NoReturn], name: str) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, _C.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, _C.device):
        return f'"{value}"'
    fail(
        f"expected the default of '{name}' to be None, a number, a str, a dtype or a device, "
        f"got {type(value).__name__}"
    )


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema that the type hints of a function describe: "(Tensor x, SymInt n) -> Tensor".

    mutates_args: the names of the arguments that the function writes, or "unknown", which marks all
    tensors as written. op_name: prefixed to the schema. ValueError if a hint has no schema type.
    """
    signature = inspect.signature(prototype_function)

    def fail(text: str) -> NoReturn:
        raise ValueError(f"infer_schema: {text}; the function is {signature}")

    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "infer_schema: expected 'mutates_args' to be names of arguments or 'unknown', "
            f"got '{mutates_args}'"
        )
    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        fail(f"expected type hints that can be evaluated, got {error}")
    all_written = mutates_args == "unknown"
    written = set() if all_written else set(mutates_args)
    missing = written - set(signature.parameters)
    params = []
    keyword_only = False
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail(f"expected '{name}' to be an argument that can be given by name")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            params.append("*")
            keyword_only = True
        if parameter.annotation is parameter.empty:
            fail(f"expected a type hint for '{name}', got none")
        hint = hints[name]
        # A default of None does not make an argument Optional; only its hint does.
        kind = _schema_type(hint)
        if kind is None:
            origin = typing.get_origin(hint)
            advice = "; use a List instead of a Tuple" if origin is tuple else ""
            fail(
                f"expected the hint of '{name}' to be one of {_PARAMETERS_TEXT}, got {hint}{advice}"
            )
        if name in written or (all_written and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                fail(f"expected 'mutates_args' to name tensors, got '{name}', which is {hint}")
            kind = f"Tensor(a{i}!){kind[len('Tensor') :]}"
        text = f"{kind} {name}"
        if parameter.default is not parameter.empty:
            text += f"={_default_text(parameter.default, fail, name)}"
        params.append(text)
    if missing:
        fail(f"expected 'mutates_args' to name arguments of the function, got {sorted(missing)}")
    if signature.return_annotation is signature.empty:
        fail("expected a type hint for what it returns, got none")
    returned = hints["return"]
    if returned is type(None):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        members = [_return_type(each) for each in typing.get_args(returned)]
        if not members or None in members:
            fail(f"expected it to return a tuple of {', '.join(_RETURNS)}, got {returned}")
        result = f"({', '.join(str(each) for each in members)})"
    else:
        one = _return_type(returned)
        if one is None:
            fail(f"expected it to return one of {', '.join(_RETURNS)}, got {returned}")
        result = one
    return f"{op_name or ''}({', '.join(params)}) -> {result}"
