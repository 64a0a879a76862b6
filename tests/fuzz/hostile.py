"""Spoils valid calls: replaces arguments by invalid or extreme ones."""

from __future__ import annotations

import math
import random
from typing import Any

import operands
from calls import Other
from operands import COMMON, COMPLEX, DTYPES, Operand, contiguous_strides, extent

INTS = (
    0, -1, 1, 2, 7, -2, 63, 64, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**32 + 1,
    2**53 + 1, 2**61, 2**61 + 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1,
)  # fmt: skip
NOT_INTS = (2**63, -(2**63) - 1, 2**64, 10**30, True, 1.0, 1.5, math.nan, None, "1", 1j)
FLOATS = (
    0.0, -0.0, -1.0, 1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-310, 1.7e308, -1.7e308, 1e18,
    2.0**63, -(2.0**64), 3.5e38, 1e-40, 0.5,
)  # fmt: skip
SCALARS = (
    *INTS, *FLOATS, True, False, 1j, complex(math.nan, math.inf), complex(1e300, -1e300), 2**63,
    10**30, None, "x",
)  # fmt: skip
TEXTS = ("", "none", "mean", "x" * 5000, "\0", "é", "sum", "reflect", "L", "{}%s%n", "ij,jk->il",
         "...", "->", "ij->ijij", "a" * 60 + "->", None, 3)  # fmt: skip
DEVICES = ("meta", "cuda", "cpu:0", "cpu:1", "cpu:-1", "cuda:99", "xla", "", "mps", None, 3)
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "jagged")
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
# Sizes of tensors that take (almost) no memory, whatever their number of elements is.
GIANT = (2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1)


class Loop:
    """A list that contains itself; a tuple in a list, and the like."""

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def __repr__(self) -> str:
        return f"a list in itself, or {self.depth} lists deep"

    def make(self, inside: Any) -> list[Any]:
        if self.depth == 0:
            made: list[Any] = [inside]
            made.append(made)
            return made
        made = [inside]
        for _ in range(self.depth):
            made = [made]
        return made


class Spoiler:
    """Changes the arguments of a call. `giant`: whether a tensor says it has very many elements."""

    def __init__(self, op: Any, rng: random.Random, values: dict[str, Any]) -> None:
        self.op = op
        self.rng = rng
        self.values = values
        self.giant = False

    def spoil(self, count: int) -> None:
        arguments = [a for a in self.op.arguments]
        for _ in range(count):
            if not arguments:
                return
            tensors = [a for a in arguments if a.is_tensor]
            pool = tensors if tensors and self.rng.random() < 0.5 else arguments
            argument = self.rng.choice(pool)
            self.values[argument.name] = self._value(argument, self.values.get(argument.name))

    def replace_all(self) -> None:
        """Each argument by something of its type, or near it."""
        for argument in self.op.arguments:
            if self.rng.random() < 0.6:
                old = self.values.get(argument.name)
                self.values[argument.name] = self._value(argument, old)

    def _value(self, argument: Any, old: Any) -> Any:
        rng = self.rng
        if rng.random() < 0.03:
            return rng.choice((None, [], (), "", 0, Loop(0), Loop(300), {}, object, 1.5, [None]))
        if argument.is_tensor:
            if argument.is_list:
                return self._tensors(old if isinstance(old, list) else [])
            return self._tensor(old if isinstance(old, Operand) else self._any_tensor())
        if argument.is_list:
            return self._list(argument, old if isinstance(old, list) else [])
        return self._plain(argument.base)

    # ---- All tensors at once ----

    def recast(self, dtype: str) -> None:
        """The tensors of the call's dtype get another one, all the same."""
        found = [o for o in self._others() if o.values not in ("index", "ascending")]
        first = next((o.dtype for o in found if o.dtype != "bool"), "bool")
        for operand in found:
            if operand.dtype == first:
                self._give(operand, dtype)
        for name, value in self.values.items():
            if isinstance(value, Other) and value.kind == "dtype" and value.name == first:
                self.values[name] = Other("dtype", dtype)

    def mix(self) -> None:
        """Each tensor gets a dtype of its own."""
        for operand in self._others():
            self._give(operand, self.rng.choice(list(DTYPES)))

    def _give(self, operand: Operand, dtype: str) -> None:
        operand.dtype = dtype
        operand.conj = operand.conj and dtype in COMPLEX
        operand.neg = operand.neg and dtype in operands.FLOATS + COMPLEX

    def unplace(self) -> None:
        """Some tensors, or all, are on the meta device, with elements that nothing can read."""
        for operand in self._some(self._others()):
            operand.device = "meta"
            operand.conj = operand.neg = False

    def extreme(self) -> None:
        """Some tensors, or all, have NaN, infinities, huge and tiny numbers."""
        for operand in self._some([o for o in self._others() if o.values in ("plain", "positive")]):
            operand.values = "extreme"

    def _some(self, found: list[Operand]) -> list[Operand]:
        return self.rng.sample(found, self.rng.randint(min(1, len(found)), len(found)))

    # ---- Values that are no tensors ----

    def _plain(self, base: str) -> Any:
        rng = self.rng
        if base in ("int", "SymInt"):
            return rng.choice(INTS if rng.random() < 0.85 else NOT_INTS)
        if base == "float":
            return rng.choice(FLOATS if rng.random() < 0.85 else SCALARS)
        if base == "Scalar":
            return rng.choice(SCALARS)
        if base == "bool":
            return rng.choice((True, False, 2, None, 1.0, "x"))
        if base == "str":
            return rng.choice(TEXTS)
        if base == "ScalarType":
            return Other("dtype", rng.choice(list(DTYPES)))
        if base == "Layout":
            return Other("layout", rng.choice(LAYOUTS))
        if base == "Device":
            return rng.choice(DEVICES)
        if base == "MemoryFormat":
            return Other("memory_format", rng.choice(FORMATS))
        if base == "Generator":
            return rng.choice((None, Other("generator", "cpu"), Other("generator", "meta"), 3))
        return None

    def _list(self, argument: Any, old: list[Any]) -> Any:
        rng = self.rng
        base = argument.base
        lot = rng.random()
        if lot < 0.55 and old:
            new = list(old)
            new[rng.randrange(len(new))] = self._plain(base)
            if rng.random() < 0.3:
                new[rng.randrange(len(new))] = self._plain(base)
            return new
        if lot < 0.65:
            return []
        if lot < 0.75:
            return [*old, self._plain(base)] if rng.random() < 0.5 else old[:-1]
        if lot < 0.8:
            return [rng.choice((0, 1, 2)) for _ in range(rng.choice((8, 17, 64, 65, 1000)))]
        if lot < 0.84:
            return Loop(rng.choice((0, 0, 2, 1000)))
        if lot < 0.9:
            return self._plain(base)
        return [self._plain(base) for _ in range(argument.length or rng.randint(1, 4))]

    # ---- Tensors ----

    def _others(self) -> list[Operand]:
        found = []
        for value in self.values.values():
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, Operand) and item.device == "cpu":
                    found.append(item)
        return found

    def _any_tensor(self) -> Operand:
        rng = self.rng
        shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 1, 2, 3, 4, 5)))]
        dtype = rng.choice(list(DTYPES))
        return Operand(dtype, shape, values=rng.choice(("plain", "special")), placement=2)

    def _tensor(self, old: Operand) -> Any:
        rng = self.rng
        new = Operand(
            old.dtype, list(old.shape), old.strides and list(old.strides), old.offset, old.values,
            old.bound, old.device, old.seed, old.after, old.conj, old.neg, False, old.shares,
            rng.randrange(3),
        )  # fmt: skip
        kind = rng.choices(
            ("values", "dtype", "shape", "rank", "empty", "meta", "alias", "giant", "strides",
             "absent", "any", "same", "bits", "large"),
            (22, 12, 15, 8, 6, 5, 14, 1.5, 8, 2, 4, 4, 2, 0.5),
        )[0]  # fmt: skip
        if kind == "values":
            index = old.values == "index" or rng.random() < 0.2
            new.values = "index out of range" if index else rng.choice(("special", "zero", "one"))
            if index and old.values != "index":
                new.bound = max(old.shape, default=1)
        elif kind == "dtype":
            new.dtype = rng.choice(COMMON if rng.random() < 0.6 else list(DTYPES))
        elif kind == "shape" and new.shape:
            at = rng.randrange(len(new.shape))
            new.shape[at] = rng.choice((0, 1, new.shape[at] + 1, new.shape[at] * 2 + 1, 17))
            new.strides = None
        elif kind == "rank":
            if new.shape and rng.random() < 0.5:
                del new.shape[rng.randrange(len(new.shape))]
            else:
                sizes = [rng.choice((1, 1, 2, 0)) for _ in range(rng.choice((1, 1, 2, 5, 61)))]
                new.shape = sizes + new.shape if len(sizes) < 9 else [1] * len(sizes)
            new.strides = None
        elif kind == "empty":
            new.shape = rng.choice(([0], [0, *new.shape], [*new.shape, 0], []))
            new.strides = None
        elif kind == "meta":
            new.device = "meta"
            new.conj = new.neg = False
        elif kind == "alias":
            return self._alias(new)
        elif kind == "giant":
            return self._giant(new)
        elif kind == "strides":
            new.strides = [rng.choice((0, 1, 1, 2, 3)) for _ in new.shape]
            new.offset = rng.randrange(4)
        elif kind == "absent":
            return None
        elif kind == "any":
            return self._any_tensor()
        elif kind == "same":
            others = self._others()
            return rng.choice(others) if others else new
        elif kind == "bits" and new.dtype in COMPLEX:
            new.conj, new.neg = rng.random() < 0.7, rng.random() < 0.5
        elif kind == "large" and len(new.shape) > 0:
            new.shape[rng.randrange(len(new.shape))] = rng.choice((257, 1025, 5000))
            new.strides = None
            if math.prod(new.shape) > 20000:
                new.shape = [5000]
            if new.values == "plain":
                new.values = "one"
        if new.strides is not None and len(new.strides) != len(new.shape):
            new.strides = None
        return new

    def _alias(self, new: Operand) -> Operand:
        """In the memory of another argument: the whole of it, or a part that overlaps."""
        others = [o for o in self._others() if o.shares is None and o.storage_elements() > 0]
        if not others:
            return new
        root = self.rng.choice(others)
        room = root.storage_elements()
        new.shares, new.conj, new.neg = root, False, False
        lot = self.rng.random()
        if lot < 0.8:
            new.dtype = root.dtype
        else:
            room = room * DTYPES[root.dtype][0] // DTYPES[new.dtype][0]
        if lot < 0.3:
            new.shape, new.strides, new.offset = list(root.shape), root.strides, root.offset
            if lot < 0.1 and len(new.shape) > 1:
                new.shape = new.shape[::-1]
                new.strides = root.laid_out()[::-1]
        else:
            new.offset = self.rng.randrange(3)
            new.strides = None if self.rng.random() < 0.6 else [1] * len(new.shape)
        if new.offset + extent(new.shape, new.laid_out()) > room:
            new.offset = 0
            new.shape, new.strides = [min(room, math.prod(new.shape))], [1]
        return new

    def _giant(self, new: Operand) -> Operand:
        """An expanded tensor of very many elements in the memory of one, or an empty one."""
        rng = self.rng
        self.giant = True
        if not new.shape:
            new.shape = [1]
        size = rng.choice(GIANT)
        at = rng.randrange(len(new.shape))
        strides = contiguous_strides(new.shape)
        if rng.random() < 0.3:
            strides = [0] * len(strides)
        new.shape[at] = size
        strides[at] = 0
        if rng.random() < 0.3:
            new.shape.append(0)
            strides.append(rng.choice((0, 1, 2**62)))
        # Beyond int64 there is no tensor to make.
        while math.prod(s for s in new.shape) >= 2**63:
            new.shape[new.shape.index(max(new.shape))] = rng.choice((1, 2**31))
        new.strides = strides
        return new

    def _tensors(self, old: list[Any]) -> Any:
        rng = self.rng
        lot = rng.random()
        if lot < 0.5 and old:
            new = list(old)
            at = rng.randrange(len(new))
            mine = new[at]
            new[at] = self._tensor(mine if isinstance(mine, Operand) else self._any_tensor())
            return new
        if lot < 0.6:
            return []
        if lot < 0.7:
            return [*old, self._any_tensor()]
        if lot < 0.75 and old:
            return [rng.choice(old) for _ in range(rng.choice((2, 17, 65, 300)))]
        if lot < 0.8:
            return Loop(rng.choice((0, 2, 1000)))
        if lot < 0.9:
            return old[:-1]
        return [*old, rng.choice((None, 1, "x", 1.5, []))]
