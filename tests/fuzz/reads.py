"""Compiled functions that read random state through random paths, which changes between calls.

Usage: reads.py [--seed N] [--count N]
Each program is a function of a tensor that multiplies and adds numbers, which it reads from nested
objects of many kinds in many ways. Between calls some of these objects are changed at random. Each
result of the compiled function must be that of the function itself, and a call without a change
must not make a program.
"""

from __future__ import annotations

import argparse
import collections
import contextvars
import dataclasses
import functools
import itertools  # noqa: F401, for programs
import operator
import os
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import lamella

Change = Callable[[], None]


class Node:
    """An object, the ways in which an expression reads a number from it ("{}" stands for the
    object), and the ways in which it can change."""

    def __init__(self, value: Any, reads: list[str], changes: list[Change]) -> None:
        self.value, self.reads, self.changes = value, reads, changes


class Attributes:
    def __init__(self, k: Any) -> None:
        self.k, self.other = k, 1

    def read(self) -> Any:
        return self.k

    @property
    def shown(self) -> Any:
        return self.k

    def __call__(self) -> Any:
        return self.read()


class Slots:
    __slots__ = ("__weakref__", "k")

    def __init__(self, k: Any) -> None:
        self.k = k

    def read(self) -> Any:
        return self.k


@dataclasses.dataclass(eq=False)
class Data:
    k: Any
    other: Any = 1


class Forwards:
    def __init__(self, k: Any) -> None:
        self.__dict__["inner"] = {"k": k}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.inner[name]
        except KeyError:
            raise AttributeError(name) from None


class Intercepts:
    def __init__(self, k: Any) -> None:
        object.__setattr__(self, "own_k", k)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "own_" + name)


class Holder:
    """A descriptor that keeps its value."""

    def __init__(self, k: Any) -> None:
        self.kept = k

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.kept

    def __set__(self, instance: Any, value: Any) -> None:
        self.kept = value


class Items:
    def __init__(self, k: Any) -> None:
        self.items = [0, k]

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __contains__(self, value: Any) -> bool:
        return value in self.items

    def __add__(self, value: Any) -> Any:
        return self.items[1]


def second(items: Any) -> Any:
    _, found, *_ = items
    return found


def through(value: Any, *, key: Any = "k", read: Any = operator.getitem) -> Any:
    return read(value, key)


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def number(self) -> Any:
        return self.rng.choice([0, 1, 2, 3, 0.5, 1.5, -1.0, 2.0, True, 7])

    def leaf(self) -> Node:
        kind = self.rng.randrange(8)
        if kind == 0:
            own = set(self.rng.sample(range(10), 3))
            return Node(own, ["sum({})", "len({})", "(2 in {})", "max({})"],
                        [lambda: own.add(self.rng.randrange(10, 30))])  # fmt: skip
        if kind == 1:
            data = bytearray([1, 2, 3])
            changed = lambda: data.__setitem__(1, self.rng.randrange(256))  # noqa: E731
            return Node(data, ["{}[1]", "sum({})"], [changed, lambda: data.append(9)])
        if kind == 2:
            name = f"LAMELLA_READS_{self.rng.randrange(1000)}"
            os.environ[name] = "1"
            changed = lambda: os.environ.__setitem__(name, str(self.rng.randrange(9)))  # noqa: E731
            reads = [
                "float(os.environ[{}])",
                "float(os.environ.get({}, 3))",
                "int(os.getenv({}, '4'))",
            ]
            return Node(name, reads, [changed, lambda: os.environ.pop(name, None) and changed()])
        if kind == 3:
            tensor = lamella.tensor([1.0, float(self.rng.randrange(9))])
            return Node(tensor, ["{}", "{}.sum()", "{}.shape[0]", "{}[0]"],
                        [lambda: tensor.add_(1.0)])  # fmt: skip
        return Node(self.number(), ["{}"], [])

    def node(self, depth: int) -> Node:
        if depth == 0:
            return self.leaf()
        kinds = [name for name in dir(self) if name.startswith("in_")]
        inner = self.node(depth - 1)
        holder, ways, put = getattr(self, self.rng.choice(kinds))(inner.value)
        # A replacement must be read by the same expressions.
        changes = [*inner.changes]

        def replaced() -> None:
            put(self.copied(inner))

        changes += [replaced, *getattr(holder, "more_changes", [])]
        if isinstance(holder, tuple) and len(holder) == 2 and holder[0] is _WITH:
            holder, more = holder[1]
            changes = [*inner.changes, replaced, *more]
        return Node(
            holder, [inside.replace("{}", way) for inside in inner.reads for way in ways], changes
        )

    def copied(self, node: Node) -> Any:
        value = node.value
        if isinstance(value, (bool, int, float)):
            return self.number()
        if isinstance(value, lamella.Tensor):
            return value + 1
        if type(value) in (set, bytearray, list, dict, collections.deque, collections.OrderedDict):
            return value.copy()
        return value

    # ---- Kinds of holders: (object, ways to read what it holds, a function that replaces that). An
    # object with more ways to change is (_WITH, (object, changes)).

    def in_dict(self, k: Any) -> Any:
        own = {"other": 1, "k": k}
        ways = ["{}['k']", "{}.get('k')", "operator.getitem({}, 'k')", "through({})",
                "dict({})['k']",
                "{{**{}}}['k']", "[v for n, v in {}.items() if n == 'k'][0]",
                "next(v for n, v in {}.items() if n == 'k')", "list({}.values())[-1]",
                "operator.itemgetter('k')({})", "({}['k'] if 'k' in {} else 0)"]  # fmt: skip
        more = [lambda: own.update({self.rng.randrange(9): 1}) or own.update(k=own.pop("k"))]
        return (
            (_WITH, (own, more)),
            [w.replace("{{", "{").replace("}}", "}") if "{{" in w else w for w in ways],
            lambda v: own.update(k=v),
        )

    def in_list(self, k: Any) -> Any:
        own = [0, k]
        ways = ["{}[1]", "{}[-1]", "list({})[1]", "[*{}][1]", "second({})", "{}[1:][0]",
                "next(itertools.islice({}, 1, None))", "tuple({})[1]", "[v for v in {}][-1]",
                "list(reversed({}))[0]", "functools.reduce(lambda a, b: b, {})"]  # fmt: skip
        return own, ways, lambda v: own.__setitem__(1, v)

    def in_tuple(self, k: Any) -> Any:
        own = [(0, k)]
        return (
            own,
            ["{}[0][1]", "second({}[0])", "second(*{})"],
            lambda v: own.__setitem__(0, (0, v)),
        )

    def in_deque(self, k: Any) -> Any:
        own = collections.deque([0, k])
        return own, ["{}[1]", "second({})", "list({})[1]"], lambda v: own.__setitem__(1, v)

    def in_ordered(self, k: Any) -> Any:
        own = collections.OrderedDict(other=1, k=k)
        return own, ["{}['k']", "{}.get('k')", "dict({})['k']"], lambda v: own.update(k=v)

    def in_default(self, k: Any) -> Any:
        own: Any = collections.defaultdict(int, k=k)
        return own, ["{}['k']", "{}.get('k')", "through({})"], lambda v: own.update(k=v)

    def in_chain(self, k: Any) -> Any:
        own = collections.ChainMap({}, {"k": k})
        puts = [own.maps[0], own.maps[1]]
        return (
            own,
            ["{}['k']", "{}.get('k')", "through({})"],
            lambda v: self.rng.choice(puts).update(k=v),
        )

    def in_proxy(self, k: Any) -> Any:
        inner = {"k": k}
        return (
            types.MappingProxyType(inner),
            ["{}['k']", "{}.get('k')"],
            lambda v: inner.update(k=v),
        )

    def in_attributes(self, k: Any) -> Any:
        kind = type("Attributes", (Attributes,), {})
        own = kind(k)
        ways = ["{}.k", "getattr({}, 'k')", "vars({})['k']", "{}.__dict__['k']", "{}.read()",
                "{}.shown",
                "operator.attrgetter('k')({})", "{}()", "through({}, read=getattr)",
                "operator.methodcaller('read')({})", "getattr({}, 'absent', {}.k)"]  # fmt: skip
        more = [
            lambda: setattr(own, "__dict__", dict(own.__dict__)),
            lambda: setattr(kind, "read", lambda self: self.other),
            lambda: setattr(kind, "shown", property(lambda self: self.other)),
            lambda: setattr(kind, "__call__", lambda self: 5),
            lambda: setattr(own, "other", self.number()),
        ]
        if isinstance(k, (bool, int, float)):
            more.append(lambda: setattr(own, "absent", self.number()))
            return (_WITH, (own, more)), ways, lambda v: setattr(own, "k", v)
        return own, ways, lambda v: setattr(own, "k", v)

    def in_slots(self, k: Any) -> Any:
        own = Slots(k)
        return own, ["{}.k", "getattr({}, 'k')", "{}.read()"], lambda v: setattr(own, "k", v)

    def in_data(self, k: Any) -> Any:
        own = Data(k)
        ways = ["{}.k", "dataclasses.replace({}).k", "getattr({}, 'k')", "vars({}).get('k')"]
        return own, ways, lambda v: setattr(own, "k", v)

    def in_space(self, k: Any) -> Any:
        own = types.SimpleNamespace(k=k)
        return own, ["{}.k", "vars({})['k']"], lambda v: setattr(own, "k", v)

    def in_module(self, k: Any) -> Any:
        own = types.ModuleType(f"lamella_reads_{self.rng.randrange(10**6)}")
        own.k = k  # type: ignore[attr-defined]
        sys.modules[own.__name__] = own
        ways = ["{}.k", "getattr({}, 'k')", "vars({})['k']", f"imported({own.__name__!r}, {{}}).k"]
        return own, ways, lambda v: setattr(own, "k", v)

    def in_class(self, k: Any) -> Any:
        own = type("Own", (), {"k": k, "read": classmethod(lambda cls: cls.k)})
        ways = ["{}.k", "{}().k", "vars({})['k']", "{}.read()", "{}().read()", "getattr({}, 'k')"]
        return own, ways, lambda v: setattr(own, "k", v)

    def in_base(self, k: Any) -> Any:
        base = type("Base", (), {"k": k, "read": lambda self: self.k})
        middle = type("Middle", (base,), {"read": lambda self: base.read(self)})
        own = type("Own", (middle,), {"__len__": lambda self: 1})()
        puts: list[Any] = [base, type(own), own, middle]
        ways = [
            "{}.k",
            "{}.read()",
            "getattr({}, 'k')",
            "super(type({}), {}).read()",
            "({}.k if {} else 0)",
        ]
        return own, ways, lambda v: setattr(self.rng.choice(puts), "k", v)

    def in_forwards(self, k: Any) -> Any:
        own = Forwards(k)
        ways = ["{}.k", "getattr({}, 'k')", "getattr({}, 'k', 1)"]
        return own, ways, lambda v: self.rng.choice([own.inner, own.__dict__]).update(k=v)

    def in_intercepts(self, k: Any) -> Any:
        own = Intercepts(k)
        return own, ["{}.k", "getattr({}, 'k')"], lambda v: object.__setattr__(own, "own_k", v)

    def in_descriptor(self, k: Any) -> Any:
        own = type("Described", (), {"k": Holder(k)})()
        return own, ["{}.k", "getattr({}, 'k')"], lambda v: setattr(own, "k", v)

    def in_items(self, k: Any) -> Any:
        own = Items(k)
        ways = ["{}[1]", "second({})", "list({})[1]", "({} + 1)", "{}[len({}) - 1]", "[*{}][1]"]
        return own, ways, lambda v: own.items.__setitem__(1, v)

    def in_function(self, k: Any) -> Any:
        def own() -> Any:
            return own.k  # type: ignore[attr-defined]

        own.k = k  # type: ignore[attr-defined]
        return own, ["{}.k", "{}()", "{}.__dict__['k']"], lambda v: setattr(own, "k", v)

    def in_cell(self, k: Any) -> Any:
        own = lambda: k  # noqa: E731
        cell = own.__closure__[0]  # type: ignore[index]
        ways = ["{}()", "{}.__closure__[0].cell_contents", "list(map(lambda f: f(), [{}]))[0]"]
        return own, ways, lambda v: setattr(cell, "cell_contents", v)

    def in_defaults(self, k: Any) -> Any:
        def own(a: Any = k) -> Any:
            return a

        return own, ["{}()", "{}.__defaults__[0]"], lambda v: setattr(own, "__defaults__", (v,))

    def in_keywords(self, k: Any) -> Any:
        def own(*, a: Any = k) -> Any:
            return a

        puts: Any = own.__kwdefaults__
        return own, ["{}()", "{}.__kwdefaults__['a']"], lambda v: puts.update(a=v)

    def in_code(self, k: Any) -> Any:
        own = eval("lambda: a", {"a": k})
        other = eval("lambda: b", own.__globals__)

        def put(v: Any) -> None:
            own.__globals__["b"] = v
            own.__code__ = other.__code__

        return own, ["{}()", "through(1, read=lambda *_: {}())"], put

    def in_partial(self, k: Any) -> Any:
        own = functools.partial(lambda a: a, a=k)
        return own, ["{}()", "{}.keywords['a']"], lambda v: own.keywords.update(a=v)

    def in_context(self, k: Any) -> Any:
        own: Any = contextvars.ContextVar("k", default=k)
        return own, ["{}.get()"], lambda v: own.set(v)

    def in_local(self, k: Any) -> Any:
        own = threading.local()
        own.k = k
        return own, ["{}.k", "getattr({}, 'k')"], lambda v: setattr(own, "k", v)

    def in_reference(self, k: Any) -> Any:
        kept = Slots(k)
        own = [weakref.ref(kept), kept]
        return own, ["{}[0]().k"], lambda v: setattr(kept, "k", v)

    def in_method(self, k: Any) -> Any:
        own = Attributes(k)
        return own.read, ["{}()", "{}.__self__.k"], lambda v: setattr(own, "k", v)


_WITH = object()


def imported(name: str, _: Any) -> Any:
    import importlib

    return importlib.import_module(name)


def program(rng: random.Random) -> tuple[str, Any, list[Change], Any]:
    """The text of a function, the function, and the changes of what it reads."""
    maker = Maker(rng)
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    nodes = {name: maker.node(rng.randint(0, 3)) for name in names}
    space: dict[str, Any] = {**globals(), **{name: node.value for name, node in nodes.items()}}

    def read() -> str:
        name = rng.choice(names)
        return rng.choice(nodes[name].reads).replace("{}", name)

    terms = [f"x * {read()} + {read()}", f"(x + 1) * {read()} - {read()}", f"x * {read()}"]
    body = [f"    y = {rng.choice(terms)}"]
    if rng.random() < 0.3:
        body.append(f"    y = [y + v for v in ({read()}, {read()})][1]")
    if rng.random() < 0.3:
        body.append(f"    def inner(z, w={read()}): return z + w * {read()}")
        body.append("    y = inner(y)")
    if rng.random() < 0.2:
        body.append(
            "    y = y * lamella.ones(2) if lamella.is_grad_enabled() else y + lamella.ones(2)"
        )
    if rng.random() < 0.2:
        body.append("    y = y.sum().to(lamella.get_default_dtype())")
    text = "\n".join(["def run(x):", *body, "    return y"])
    is_closure = rng.random() < 0.5
    if is_closure:
        lines = "\n".join("    " + line for line in text.splitlines())
        text = f"def make({', '.join(names)}):\n{lines}\n    return run"
    exec(text, space)
    run = space["make"](*(space[name] for name in names)) if is_closure else space["run"]
    changes = [change for node in nodes.values() for change in node.changes]

    def rebind() -> None:
        """Another number under a name that held one."""
        for name in names:
            if isinstance(nodes[name].value, (int, float)):
                if is_closure and name in run.__code__.co_freevars:
                    cell = run.__closure__[run.__code__.co_freevars.index(name)]
                    cell.cell_contents = maker.number()
                elif not is_closure:
                    space[name] = maker.number()

    changes.append(rebind)
    return text, run, changes, nodes


def outcome(run: Any, x: Any) -> Any:
    try:
        y = run(x)
    except Exception as error:
        return type(error).__name__
    if isinstance(y, lamella.Tensor):
        return str(y.dtype), tuple(y.shape), repr(y.detach().tolist())
    return repr(y)


def check(seed: int) -> str:
    """What is wrong with one program; empty if all is well."""
    rng = random.Random(seed)
    text, run, changes, _nodes = program(rng)
    compiled = lamella.compile(run)
    x = lamella.tensor([1.0, 2.0])
    try:
        for step in range(7):
            expected = outcome(run, x)
            for again in range(2):
                count = len(compiled._entries)
                got = outcome(compiled, x)
                if got != expected:
                    return f"seed {seed}, step {step}: expected {expected}, got {got}\n{text}"
                if (
                    again
                    and len(compiled._entries) != count
                    and " uncompiled" not in compiled.explanation()
                ):
                    log = compiled.explanation()
                    return f"seed {seed}, step {step}: made a program again\n{text}\n{log}"
            chance = rng.random()
            if chance < 0.1:
                lamella.set_default_dtype(rng.choice([lamella.float32, lamella.float64]))
            elif chance < 0.2:
                lamella.set_grad_enabled(rng.random() < 0.5)
            elif chance < 0.9:
                rng.choice(changes)()
        lines = compiled.explanation().splitlines()
        COUNTS["programs"] += 1
        COUNTS["not compiled"] += all(" uncompiled" in line for line in lines)
        for line in lines:
            if " uncompiled" in line:
                REASONS[line.rpartition(": ")[2][:60]] += 1
    finally:
        lamella.set_default_dtype(lamella.float32)
        lamella.set_grad_enabled(True)
    return ""


COUNTS: collections.Counter[str] = collections.Counter()
REASONS: collections.Counter[str] = collections.Counter()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    failed = 0
    for number in range(given.count):
        wrong = check(given.seed * 1_000_003 + number)
        if wrong:
            failed += 1
            print(wrong, flush=True)
    print(f"{given.count} programs, {failed} wrong, {COUNTS['not compiled']} not compiled")
    for reason, count in REASONS.most_common(15):
        print(f"  {count:4} runs uncompiled: {reason}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
