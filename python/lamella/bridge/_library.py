"""The operators of a library: schemas, policies and derivatives."""

from __future__ import annotations

import ast
import ctypes
import functools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lamella import _paths

NOT_DIFFERENTIABLE = 1 << 2
# The kinds of failures of the C ABI that Python has types of its own for.
_KINDS: dict[int, type[Exception]] = {
    2: IndexError,
    3: ValueError,
    4: TypeError,
    5: NotImplementedError,
    6: MemoryError,
}


@functools.cache
def native() -> ctypes.CDLL:
    """liblamella_bridge.so."""
    path = os.path.join(_paths.library_paths()[0], "liblamella_bridge.so")
    if not os.path.exists(path):
        raise ImportError(
            "lamella.bridge: this build has the core alone, without liblamella_bridge.so;"
            " `make build` builds all of Lamella"
        )
    library = ctypes.CDLL(path)
    for name in ("load", "error", "meta"):
        getattr(library, f"lamella_bridge_{name}").restype = ctypes.c_char_p
    return library


def error_of(status: int, text: str | None = None) -> Exception:
    if text is None:
        text = native().lamella_bridge_error().decode()
    return _KINDS.get(status, RuntimeError)(text)


def check(status: int) -> None:
    if status != 0:
        raise error_of(status)


@dataclass(frozen=True)
class Argument:
    """An argument or return of a schema."""

    name: str
    type: str  # "Tensor?[]"
    has_default: bool
    default: Any
    kwarg_only: bool
    is_out: bool
    alias: tuple[str, ...]
    is_write: bool

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("Tensor")

    @property
    def is_list(self) -> bool:
        return "[" in self.type


@dataclass(frozen=True)
class Operator:
    name: str  # "ns::op"
    overload: str
    schema: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    batching: str
    autocast: str
    slots: tuple[int, ...] | None  # None: no derivative is registered
    differentiable_returns: int
    flags: int
    has_backward: bool
    saved_returns: tuple[int, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def writes(self) -> bool:
        return any(a.is_write for a in self.arguments)

    @property
    def is_view(self) -> bool:
        return any(r.alias and not r.is_write for r in self.returns)

    def is_differentiable(self, result: int) -> bool:
        """Whether a return may have gradients, if it is of a dtype that can."""
        if self.slots is None:
            return True
        if self.flags & NOT_DIFFERENTIABLE:
            return False
        return result >= 64 or bool(self.differentiable_returns >> result & 1)

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The value of each argument, in their order."""
        values: list[Any] = []
        short = self.name.partition("::")[2]
        left = dict(kwargs)
        positional = sum(not a.kwarg_only for a in self.arguments)
        if len(args) > positional:
            raise TypeError(
                f"{short}: expected at most {positional} positional arguments, got {len(args)}"
            )
        for i, a in enumerate(self.arguments):
            if i < len(args):
                if a.name in left:
                    raise TypeError(f"{short}: got '{a.name}' twice")
                values.append(args[i])
            elif a.name in left:
                values.append(left.pop(a.name))
            elif a.has_default:
                values.append(a.default)
            else:
                raise TypeError(f"{short}: expected '{a.name}', of type {a.type}; it is missing")
        if left:
            raise TypeError(f"{short}: got an unknown argument '{next(iter(left))}'")
        return values


def _defaults(schema: str, count: int) -> list[Any]:
    """The defaults of a schema's arguments, an object that is none where there is none."""
    parts, depth, quote = [""], 0, ""
    for c in schema.partition("(")[2]:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth < 0:
                break
        if c == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
    texts = [text.partition("=")[2].strip() for text in parts if text.strip() not in ("", "*")]
    made: list[Any] = []
    for text in texts[:count]:
        try:
            made.append(ast.literal_eval(text))
        except (SyntaxError, ValueError):  # a dtype, layout or memory format, by its name
            made.append(text)
    return made


def _operator(line: str) -> Operator:
    found: dict[str, Any] = json.loads(line)

    def arguments(rows: Sequence[Any], defaults: Sequence[Any]) -> tuple[Argument, ...]:
        return tuple(
            Argument(
                name or "", type_, bool(has_default), default if has_default else None,
                bool(kwarg_only), bool(is_out),
                tuple(alias.partition(" ->")[0].replace("!", "").split("|")) if alias else (),
                bool(is_write),
            )
            for (name, type_, alias, (kwarg_only, is_write, is_out, has_default)), default in zip(
                rows, defaults
            )
        )  # fmt: skip

    rows, results = found["arguments"], found["returns"]
    return Operator(
        found["name"], found["overload"], found["schema"],
        arguments(rows, _defaults(found["schema"], len(rows))),
        arguments(results, [None] * len(results)),
        found["batching"] or "", found["autocast"] or "",
        tuple(found["slots"]) if "slots" in found else None,
        found.get("differentiable_returns", 0), found.get("flags", 0),
        found.get("has_backward", False), tuple(found.get("saved_returns", ())),
    )  # fmt: skip


@functools.cache
def operators(path: str) -> tuple[Operator, ...]:
    """Loads a library of operators, looked for as by load_library(); it stays loaded."""
    found = os.path.abspath(path) if os.path.exists(path) else path
    text = native().lamella_bridge_load(os.fsencode(found))
    if text is None:
        raise OSError(native().lamella_bridge_error().decode())
    return tuple(_operator(line) for line in text.decode().splitlines())


_BY_NAME: dict[str, Operator] = {}


def remember(found: Iterable[Operator]) -> None:
    _BY_NAME.update((op.full_name, op) for op in found)


def named(full_name: str) -> Operator:
    """The operator of a library that was loaded, "ns::op.overload"."""
    return _BY_NAME[full_name]


def remembered() -> Iterable[Operator]:
    return _BY_NAME.values()


class _Space:
    """What has names: the operators of a namespace, or the namespaces of a library."""

    def __init__(self, what: str, members: dict[str, Any]) -> None:
        self.__dict__.update(members)
        self._what, self._names = what, sorted(members)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self._what} has no '{name}'; it has {', '.join(self._names)}")

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self._names)}>"


Namespaces = _Space


def namespaces(
    path: str, found: Iterable[Operator], function_of: Callable[[str, list[Operator]], Any]
) -> Namespaces:
    """The operators by namespace and name; function_of makes one of the overloads of a name."""
    names: dict[str, dict[str, list[Operator]]] = {}
    for op in found:
        space, _, name = op.name.partition("::")
        names.setdefault(space, {}).setdefault(name, []).append(op)
    spaces = {
        space: _Space(space, {n: function_of(f"{space}::{n}", all_) for n, all_ in inside.items()})
        for space, inside in names.items()
    }
    return _Space(os.path.basename(path), spaces)
