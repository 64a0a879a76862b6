"""torch._library.utils, infer_schema and simple_registry, as far as tools use them."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import lamella
from lamella import _C
from lamella._infer_schema import infer_schema as infer_schema
from lamella._schema import FunctionSchema
from lamella.compat import _custom_op_impl, _dispatcher
from lamella.compat._tools import tuple_to_list as tuple_to_list

_NUMBER = typing.Union[int, float, bool]  # noqa: UP007
_BASES = (lamella.Tensor, int, float, bool, _NUMBER)


def _parameter_types() -> dict[Any, str]:
    found: dict[Any, str] = {}
    names = ("Tensor", "SymInt", "float", "bool", "Scalar")
    singles = {**dict(zip(_BASES, names)), str: "str", lamella.dtype: "ScalarType"}
    singles[lamella.device] = "Device"
    for kind, name in singles.items():
        found[kind] = name
        found[typing.Optional[kind]] = f"{name}?"  # noqa: UP007, UP045
    for kind, name in zip(_BASES, names):
        for sequence in (Sequence[kind], typing.List[kind]):  # type: ignore[valid-type]  # noqa: UP006
            if kind is _NUMBER:
                continue
            found[sequence] = f"{name}[]"
            if kind is not lamella.Tensor:
                found[typing.Optional[sequence]] = f"{name}[]?"  # noqa: UP007, UP045
    return found


SUPPORTED_PARAM_TYPES = _parameter_types()
SUPPORTED_RETURN_TYPES = {
    lamella.Tensor: "Tensor",
    typing.List[lamella.Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt",
    float: "float",
    bool: "bool",
    _NUMBER: "Scalar",
}


lookup_op = _dispatcher._declared  # the overload of a name such as "mine::add.Tensor"


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name of "mine::add"."""
    ns, colons, name = qualname.partition("::")
    if not colons or "::" in name:
        raise ValueError(f"expected a name such as 'mylib::twice', got '{qualname}'")
    return ns, name


def get_source(stacklevel: int) -> str:
    """The file and line of a caller."""
    frame = sys._getframe(stacklevel)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_functional_schema(schema: Any) -> bool:
    """Whether an operator writes nothing, returns something, and returns no views."""
    text = str(schema)
    return _custom_op_impl.is_functional(FunctionSchema(_C._parse_schema(text)))


def is_tensorlist_like_type(kind: Any) -> bool:
    """Whether a schema's type is a list of tensors, or of optional tensors, or None."""
    return str(kind).rstrip("?") in ("Tensor[]", "Tensor?[]") or str(kind) in (
        "List[Tensor]",
        "List[Optional[Tensor]]",
        "Optional[List[Tensor]]",
        "Optional[List[Optional[Tensor]]]",
    )


def is_tensor_like_type(kind: Any) -> bool:
    """Whether a schema's type is a tensor or an optional one."""
    return str(kind) in ("Tensor", "Tensor?", "Optional[Tensor]")


def mutates_and_returns_first_arg(op: Any) -> bool:
    """Whether an operator writes its first argument alone and returns it."""
    arguments, returns = op._schema.arguments, op._schema.returns
    if len(returns) != 1 or not arguments or not arguments[0].is_write:
        return False
    if any(each.alias_info is not None for each in arguments[1:]):
        return False
    alias = returns[0].alias_info
    return alias is not None and alias.after_set == arguments[0].alias_info.after_set


class _FakeImpl:
    """What register_fake() registered for an operator."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def kernel(self) -> Any:
        """The function and where it was registered, or None."""
        from lamella._library import _fakes

        found = _fakes.get(self._name)
        return None if found is None else _Kernel(*found[:2])


class _Kernel:
    """A function and where it was registered."""

    def __init__(self, func: Callable[..., Any], source: str) -> None:
        self.func = func
        self.source = source


class _Entry:
    def __init__(self, name: str) -> None:
        self.fake_impl = _FakeImpl(name)


class _Registry:
    """What is registered in Python, by name."""

    def find(self, qualname: str) -> Any:
        return _Entry(qualname)


singleton = _Registry()
utils: ModuleType = sys.modules[__name__]
simple_registry: ModuleType = utils
