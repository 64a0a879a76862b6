"""Random trees of selects and logic of bits: compiled code against the reference evaluator, and
choices by the bits of a constant against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

INTEGERS = {f"{sign}{bits}": np.dtype(f"{'u' if sign == 'u' else ''}int{bits}")
            for sign in "su" for bits in (8, 16, 32, 64)}  # fmt: skip


class Tree:
    """A program of three operands whose later instructions read mostly recent values."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.element = str(self.random.choice(list(INTEGERS)))
        self.bits = int(self.element[1:])
        self.count = int(self.random.integers(1, 71))
        self.lines: list[str] = []
        self.values = [self.add(f"parameter({p})") for p in range(3)]
        self.constants = [self.constant() for _ in range(2)]
        self.conditions = [self.compare()]
        for _ in range(int(self.random.integers(3, 12))):
            kind = self.random.integers(4)
            if kind == 0:
                self.conditions.append(self.compare())
            elif kind == 1:
                self.values.append(self.select(self.value(), self.value()))
            elif kind == 2:
                self.values.append(self.merge())
            else:
                other = self.value() if self.random.random() < 0.5 else self.constants[0][1]
                self.values.append(
                    self.add(f"{self.one('and', 'or', 'xor')}({self.value()}, {other})")
                )
        shape = f"{self.element}[{self.count}]"
        self.lines.append(
            f"ROOT r = ({', '.join([shape] * 3)}) tuple({', '.join(self.values[-3:])})"
        )

    def one(self, *of):
        return of[int(self.random.integers(len(of)))]

    def add(self, text: str, element: str = "", dimensions: str = "") -> str:
        name = f"v{len(self.lines)}"
        shape = dimensions or f"[{self.count}]"
        self.lines.append(f"{name} = {element or self.element}{shape} {text}")
        return name

    def value(self) -> str:
        return self.one(*self.values[-6:], *self.values[:3])

    def constant(self) -> tuple[str, str]:
        """Bits, and their complement."""
        top = 1 << (self.bits - 1)
        some = self.one(top, top - 1, (1 << self.bits // 2) - 1, int(self.random.integers(top)))
        made = []
        for bits in (some, some ^ (2 * top - 1)):
            number = bits - 2 * top if self.element[0] == "s" and bits >= top else bits
            scalar = self.add(f"constant({number})", dimensions="[]")
            made.append(self.add(f"broadcast({scalar}), dimensions={{}}"))
        return made[0], made[1]

    def compare(self) -> str:
        direction = self.one("LT", "EQ", "GE")
        return self.add(f"compare({self.value()}, {self.value()}), direction={direction}", "pred")

    def select(self, x: str, y: str) -> str:
        condition = self.one(*self.conditions)
        floats = {32: "f32", 64: "f64"}.get(self.bits)
        if floats is None or self.random.random() < 0.6:
            return self.add(f"select({condition}, {x}, {y})")
        x, y = (self.add(f"bitcast-convert({one})", floats) for one in (x, y))
        return self.add(f"bitcast-convert({self.add(f'select({condition}, {x}, {y})', floats)})")

    def merge(self) -> str:
        """The bits of one value where a constant has ones, and another's where it has none."""
        bits, complement = self.one(*self.constants)
        x, y = self.value(), self.value()
        parts = self.add(f"and({x}, {bits})"), self.add(f"and({y}, {complement})")
        merged = self.add(f"{self.one('or', 'xor', 'add')}({parts[0]}, {parts[1]})")
        beside = self.one(x, y)
        return self.select(*self.one((merged, beside), (beside, merged)))

    def arguments(self) -> list[np.ndarray]:
        info = np.iinfo(INTEGERS[self.element])
        draw = self.random.integers
        return [draw(info.min, info.max, self.count, info.dtype, endpoint=True) for _ in range(3)]


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_random_trees(first):
    for seed in range(first, first + 250):
        tree = Tree(seed)
        text = "HloModule m\nENTRY e {\n" + "\n".join(tree.lines) + "\n}"
        arguments = tree.arguments()
        for got, expected in zip(hlo.compile(text)(*arguments), hlo.evaluate(text, *arguments)):
            np.testing.assert_array_equal(got.numpy(), expected.numpy(), f"seed {seed}: {text}")


@pytest.mark.parametrize("element", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("count", [9, 33])
def test_sign_of_another_where_not_greater(element, count):
    tree = Tree(0)
    dtype = INTEGERS[element]
    bits = dtype.itemsize * 8
    sign = np.array(1 << (bits - 1), f"uint{bits}").astype(dtype)
    rest = np.array((1 << (bits - 1)) - 1, dtype)
    info = np.iinfo(dtype)
    x, y, z = (tree.random.integers(info.min, info.max, count, dtype) for _ in range(3))
    shape = f"{element}[{count}]"
    text = f"""HloModule m
ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  z = {shape} parameter(2)
  s = {element}[] constant({sign})
  signs = {shape} broadcast(s), dimensions={{}}
  r = {element}[] constant({rest})
  rests = {shape} broadcast(r), dimensions={{}}
  c = pred[{count}] compare(z, y), direction=GT
  a = {shape} and(x, signs)
  b = {shape} and(y, rests)
  o = {shape} or(a, b)
  ROOT chosen = {shape} select(c, x, o)
}}"""
    expected = np.where(z > y, x, (x & sign) | (y & rest))
    np.testing.assert_array_equal(hlo.compile(text)(x, y, z)[0].numpy(), expected)
