"""The building blocks of random HLO programs: types, values, and lines of text.

Each value knows whether it is exact: computed only by operations that are right to the last bit.
Operations with jumps (floor, compare, convert, ...) or large slopes (divide, log, ...) only take
exact values, because they would magnify small errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("s32", "s8", "s16", "s64", "u8", "u16", "u32", "u64")
COMPLEX = ("c64", "c128")
TYPES = (*FLOATS, *INTEGERS, "pred", *COMPLEX)
NUMPY = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "s8": np.int8, "s16": np.int16,
    "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64, "pred": np.bool_, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128}
BITS |= {name: int(name[1:]) for name in (*FLOATS, *INTEGERS) if name != "bf16"}

Sizes = tuple[int, ...]


@dataclass
class Value:
    name: str
    type: str
    sizes: Sizes
    exact: bool

    @property
    def shape(self) -> str:
        return f"{self.type}[{listed(self.sizes)}]"


def listed(numbers: Any) -> str:
    return ",".join(map(str, numbers))


class Module:
    """The state that all computations of a program share."""

    def __init__(self, seed: int, most: int) -> None:
        self.random = np.random.default_rng(seed)
        self.most = most  # elements of an operand
        self.computations: dict[str, str] = {}
        self.count = 0

    def combiner(self, kind: str, element: str) -> str:
        """The name of a computation of two scalars."""
        name = f"{kind}_{element}"
        body = {
            "odd": f"n = {element}[] negate(a)\n  h = {element}[] constant(2)\n"
            f"  q = {element}[] divide(n, h)\n  ROOT r = {element}[] add(q, b)",
            "less": "ROOT r = pred[] compare(a, b), direction=LT",
            "more": "ROOT r = pred[] compare(a, b), direction=GE",
            "last": f"ROOT r = {element}[] copy(b)",
        }.get(kind, f"ROOT r = {element}[] {kind}(a, b)")
        self.computations.setdefault(
            name,
            f"{name} {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n"
            f"  {body}\n}}\n",
        )
        return name

    def pair_order(self, keys: str, others: str) -> str:
        """The name of an order of pairs by their first."""
        name = f"pairs_{keys}_{others}"
        self.computations[name] = (
            f"{name} {{\n  a = {keys}[] parameter(0)\n  b = {keys}[] parameter(1)\n"
            f"  c = {others}[] parameter(2)\n  d = {others}[] parameter(3)\n"
            "  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
        )
        return name


class Writer:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.random = module.random
        self.lines: list[str] = []
        self.arguments: list[Any] = []
        self.values: list[Value] = []

    # ---- Small pieces ----

    def pick(self, items: Any) -> Any:
        return items[int(self.random.integers(len(items)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def number(self, low: int, high: int) -> int:
        """In [low, high]."""
        return int(self.random.integers(low, high + 1))

    def line(self, shape: str, text: str) -> str:
        name = f"v{self.module.count}"
        self.module.count += 1
        self.lines.append(f"{name} = {shape} {text}")
        return name

    def add(self, element: str, sizes: Sizes, text: str, exact: bool = True) -> Value:
        made = Value("", element, tuple(sizes), exact)
        made.name = self.line(made.shape, text)
        self.values.append(made)
        return made

    def constant(self, element: str, low: int = -3, high: int = 3) -> Value:
        number = self.number(max(low, 0) if element[0] == "u" else low, high)
        text = str(number)
        if element == "pred":
            text = self.pick(["true", "false"])
        elif element in COMPLEX:
            text = f"({number}, {self.number(-2, 2)})"
        return self.add(element, (), f"constant({text})")

    def like(self, element: str, sizes: Sizes, exact: bool = False) -> Value:
        """A value of the type and sizes: one there is, or a broadcast scalar."""
        found = [
            v for v in self.values if v.type == element and v.sizes == sizes and v.exact >= exact
        ]
        if found and self.chance(0.9):
            return self.pick(found)
        scalar = self.constant(element)
        if not sizes:
            return scalar
        return self.add(element, sizes, f"broadcast({scalar.name}), dimensions={{}}")

    def chosen(self, types: Any = TYPES, exact: bool = False, rank: Any = None) -> Value | None:
        found = [
            v
            for v in self.values
            if v.type in types and v.exact >= exact and (rank is None or len(v.sizes) in rank)
        ]
        return self.pick(found) if found else None

    def parameter(self, element: str, sizes: Sizes) -> None:
        if element in FLOATS or element in COMPLEX:
            data = self.random.normal(size=sizes)
            if element in COMPLEX:
                data = data + 1j * self.random.normal(size=sizes)
            elif self.chance(0.1) and data.size:
                data = np.asarray(data)
                for special in (np.nan, np.inf, -np.inf, -0.0):
                    data.flat[self.number(0, data.size - 1)] = special
        elif element == "pred":
            data = self.random.integers(0, 2, size=sizes)
        else:
            data = self.random.integers(0 if element[0] == "u" else -9, 10, size=sizes)
        self.add(element, sizes, f"parameter({len(self.arguments)})")
        if element == "bf16":
            import lamella

            self.arguments.append(lamella.from_numpy(np.array(data, np.float32)).bfloat16())
        else:
            self.arguments.append(np.asarray(data).astype(NUMPY[element]))
