"""Arguments that an operator is likely to take, made from its schema, its names and shapes.txt."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

from operands import COMMON, COMPLEX, FLOATS, WHOLE, Operand, contiguous_strides

_WEIGHTS = {
    "float32": 40,
    "float64": 10,
    "int64": 10,
    "bool": 5,
    "int32": 4,
    "uint8": 4,
    "int8": 2,
    "int16": 2,
    "float16": 5,
    "bfloat16": 5,
    "complex64": 7,
    "complex128": 6,
}
_CLASSES = {
    "f": FLOATS,
    "d": FLOATS[:2],
    "i": ("int64", "int64", "int64", "int32"),
    "c": COMPLEX,
    "b": ("bool",),
}


# Those that stand in no parentheses.
_COMMAS = re.compile(r",(?![^(]*\))")


class Other:
    """A value that is no tensor and no plain Python value, by name: Other("dtype", "float32")."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}"


# ---- shapes.txt ----------------------------------------------------------------------------------


def _read_shapes() -> dict[str, list[dict[str, str]]]:
    """From names of operators to the lines that are for them, each from argument to its text."""
    found: dict[str, list[dict[str, str]]] = {}
    for line in (Path(__file__).parent / "shapes.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        names, _, rest = line.partition(": ")
        specs = dict(word.split("=", 1) for word in rest.split())
        for name in names.split(","):
            found.setdefault(name, []).append(specs)
    return found


SHAPES = _read_shapes()


class _Letters(dict):
    """Sizes by letter, drawn on first use; and the functions that expressions may call."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.dtype = ""

    def __missing__(self, name: str) -> Any:
        rng = self.rng
        if name == "r":
            return lambda low, high: rng.randint(low, high)
        if name == "pick":
            return lambda *values: rng.choice(values)
        if name == "maybe":
            return lambda value: rng.choice((None, value))
        if name in ("min", "max"):
            return {"min": min, "max": max}[name]
        if name == "same":
            return Other("dtype", self.dtype)
        if name == "batch":
            value: Any = [rng.randint(1, 3) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        elif len(name) == 1:
            value = rng.randint(1, 4)
        else:
            raise KeyError(name)
        self[name] = value
        return value


# ---- One call ------------------------------------------------------------------------------------


class Valid:
    """Draws the arguments of one call."""

    def __init__(self, op: Any, rng: random.Random, tame: bool) -> None:
        self.op = op
        self.rng = rng
        self.values: dict[str, Any] = {}
        self.letters = _Letters(rng)
        self.dtype = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        sizes = [rng.randint(1, 4) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))]
        if sizes and rng.random() < 0.05:
            sizes[rng.randrange(len(sizes))] = 0
        self.shape = sizes
        # The order decides a sum with infinities in it: only functions of one element get them.
        self.special = rng.random() < 0.1 and not (tame and "pointwise" not in op.tags)
        self.tame = tame
        self.hints = self._hints()
        # Which of the shapes `M,N|N` each argument takes; the same one for all.
        self.alternative = rng.randrange(12)

    def draw(self) -> dict[str, Any]:
        kinds = [spec.rpartition(":")[2][:1] for spec in self.hints.values() if ":" in spec]
        if "d" in kinds or "f" in kinds:
            all_of_them = "f" in kinds and self.rng.random() < 0.6
            self.dtype = self.rng.choice(FLOATS if all_of_them else FLOATS[:2])
        self.letters.dtype = self.dtype
        for argument in self.op.arguments:
            if argument.default is not None and self._leave_out(argument):
                continue
            self.values[argument.name] = self._value(argument)
        return self.values

    def _hints(self) -> dict[str, str]:
        name = self.op.short_name
        own = re.sub(r"_$", "", name)
        overload = re.sub(r"_?out$", "", self.op.overload)
        for key in (f"{name}.{overload}", f"{own}.{overload}", name, own):
            if key in SHAPES:
                return self.rng.choice(SHAPES[key])
        return {}

    def _leave_out(self, argument: Any) -> bool:
        if argument.name in self.hints:
            return self.rng.random() < 0.1
        if argument.name in ("layout", "device", "pin_memory"):
            return self.rng.random() < 0.9
        return self.rng.random() < 0.5

    def _value(self, argument: Any) -> Any:
        rng = self.rng
        spec = self.hints.get(argument.name)
        if argument.is_tensor:
            if argument.is_optional and not argument.is_list and rng.random() < 0.3:
                return None
            if argument.is_list:
                return self._tensors(argument, spec)
            return self._tensor(argument, spec)
        if spec is not None:
            return eval(spec, {"__builtins__": {}, "self": self.values}, self.letters)
        if argument.is_optional and rng.random() < 0.4:
            return None
        if argument.is_list:
            return self._list(argument)
        return self._plain(argument)

    # ---- Tensors ----

    def first(self) -> Operand | None:
        for value in self.values.values():
            if isinstance(value, Operand):
                return value
            if isinstance(value, list) and value and isinstance(value[0], Operand):
                return value[0]
        return None

    def rank(self) -> int:
        first = self.first()
        return len(self.shape if first is None else first.shape)

    def _tensor(self, argument: Any, spec: str | None) -> Operand:
        rng = self.rng
        name = argument.name
        values, bound, kind = "plain", 1, ""
        if spec is not None:
            shapes, _, kind = spec.partition(":")
            texts = shapes.split("|")
            shape = self._shape(texts[self.alternative % len(texts)])
        elif argument.is_out:
            shape = [0] if rng.random() < 0.7 else list(self.shape)
        else:
            shape = list(self.shape)
            if not argument.write and self.first() is not None:
                shape = self._broadcast(shape)
        dtype = self.dtype
        if not kind:
            kind = self._kind_by_name(name)
        if kind:
            kind, _, limit = kind.partition("<")
            if kind[0] in _CLASSES:
                choices = _CLASSES[kind[0]]
                if not (kind[0] in "fdc" and dtype in choices):
                    dtype = choices[0] if rng.random() < 0.9 else rng.choice(choices)
            if limit:
                values = "index"
                bound = int(eval(limit, {"__builtins__": {}, "self": self.values}, self.letters))
            elif kind.endswith("+"):
                values = "positive"
            elif kind.endswith("^"):
                values = "ascending"
            elif kind[0] == "i":
                values, bound = "index", self._index_bound()
        elif rng.random() < 0.12 and not argument.is_out:
            dtype = rng.choice(COMMON)
        if values == "plain" and self.special and not argument.is_out:
            values = "plain" if self.tame and dtype == "bool" else "special"
        made = Operand(dtype, shape, values=values, bound=bound, seed=rng.getrandbits(32))
        made.placement = rng.randrange(3)
        if not (argument.is_out and shape == [0]):
            self._lay_out(made, argument.write)
        return made

    def _shape(self, text: str) -> list[int]:
        shape: list[int] = []
        for part in _COMMAS.split(text):
            if not part:
                continue
            if part.startswith("*"):
                shape += self.letters[part[1:] or "batch"]
            else:
                shape.append(
                    int(eval(part, {"__builtins__": {}, "self": self.values}, self.letters))
                )
        return shape

    def _broadcast(self, shape: list[int]) -> list[int]:
        rng = self.rng
        if rng.random() < 0.75:
            return shape
        shape = [1 if rng.random() < 0.4 else size for size in shape]
        return shape[rng.randrange(len(shape) + 1) :] if rng.random() < 0.5 else shape

    def _kind_by_name(self, name: str) -> str:
        if name in ("index", "indices") and not self.op.short_name.startswith("unique"):
            return "i"
        if name in ("mask", "condition"):
            return "b"
        if name in ("pivots", "LU_pivots"):
            return "i"
        return ""

    def _index_bound(self) -> int:
        """How large an index may be: less than the size of `dim`, or of all."""
        first = self.first()
        if first is None:
            return 1
        dim = self.values.get("dim")
        if isinstance(dim, int) and first.shape and -len(first.shape) <= dim < len(first.shape):
            return first.shape[dim]
        if "dim" in self.values or "indices" in {a.name for a in self.op.arguments}:
            return min(first.shape, default=1)
        return math.prod(first.shape)

    def _tensors(self, argument: Any, spec: str | None) -> list[Any]:
        rng = self.rng
        if argument.is_optional or "?" in argument.type:  # indices of an advanced index
            return self._indices()
        known = [v for v in self.values.values() if isinstance(v, list) and v]
        count = argument.length or (len(known[0]) if known else rng.choice((1, 1, 2, 2, 3)))
        if spec is not None and ";" in spec:
            parts = spec.split(";")
            return [self._tensor(argument, part) for part in parts[: argument.length or 9]]
        made = [self._tensor(argument, spec) for _ in range(count)]
        if self.tame and argument.write:  # PyTorch's fallback refuses bits in lists that it writes
            for operand in made:
                operand.conj = operand.neg = False
        if known and isinstance(known[0][0], Operand):
            for mine, theirs in zip(made, known[0]):
                mine.shape, mine.strides = list(theirs.shape), None
        return made

    def _indices(self) -> list[Any]:
        rng = self.rng
        first = self.first()
        shape = first.shape if first is not None else []
        common = [rng.randint(1, 3) for _ in range(rng.randrange(3))]
        indices: list[Any] = []
        for size in shape[: rng.randint(min(1, len(shape)), max(1, len(shape)))]:
            kind = rng.random()
            if kind < 0.25:
                indices.append(None)
            elif kind < 0.35:
                indices.append(Operand("bool", [size], seed=rng.getrandbits(32)))
            else:
                dtype = "int64" if rng.random() < 0.9 else rng.choice(("int32", "uint8"))
                indices.append(
                    Operand(
                        dtype,
                        self._broadcast(common),
                        values="index",
                        bound=size,
                        seed=rng.getrandbits(32),
                        placement=rng.randrange(3),
                    )
                )
        return indices

    def _lay_out(self, made: Operand, written: bool) -> None:
        """Other strides than the contiguous ones, for a part of all tensors."""
        rng = self.rng
        lot = rng.random()
        rank = len(made.shape)
        if lot < 0.55 or rank == 0:
            if lot > 0.45:
                made.offset, made.after = rng.randrange(3), rng.randrange(3)
        elif lot < 0.72:
            order = list(range(rank))
            rng.shuffle(order)
            if rank == 4 and rng.random() < 0.4:
                order = [0, 2, 3, 1]
            steps = contiguous_strides([made.shape[d] for d in order])
            made.strides = [steps[order.index(d)] for d in range(rank)]
        elif lot < 0.85:
            times = rng.choice((2, 3))
            made.strides = [times * s for s in contiguous_strides(made.shape)]
            made.offset = rng.randrange(3)
        elif lot < 0.92 and not written:
            made.strides = [0 if rng.random() < 0.5 else s for s in contiguous_strides(made.shape)]
        elif lot < 0.95 and made.dtype in COMPLEX:
            made.conj = True
        elif lot < 0.97 and made.dtype in FLOATS + COMPLEX:
            made.neg = True

    # ---- Everything else ----

    def _dim(self) -> int:
        rank = max(self.rank(), 1)
        return self.rng.randint(-rank, rank - 1)

    def _plain(self, argument: Any) -> Any:
        rng = self.rng
        base, name = argument.base, argument.name
        if base in ("int", "SymInt"):
            if name.startswith(("dim", "axis")) or name in ("source", "destination"):
                return self._dim()
            if name in ("start_dim", "end_dim"):
                return self._dim()
            if name in ("reduction",):
                return rng.randrange(3)
            if name in ("index", "start", "offset", "diagonal"):
                return rng.randint(-1, 2)
            if name == "ignore_index":
                return rng.choice((-100, 0))
            if name == "edge_order":
                return 1
            return rng.randint(1, 3)
        if base == "float":
            if name in ("p", "momentum", "beta1", "beta2", "dropout_p", "q", "eps", "sigma"):
                return rng.uniform(0.05, 0.95)
            return rng.choice((0.5, 1.0, 2.0, 0.1, rng.uniform(0.1, 2)))
        if base == "bool":
            return rng.random() < 0.5
        if base == "Scalar":
            return self._scalar()
        if base == "str":
            return rng.choice(_STRINGS.get(name, ("mean",)))
        if base == "ScalarType":
            likely = self.dtype if rng.random() < 0.5 else rng.choice(FLOATS[:2] + COMPLEX[:1])
            return Other("dtype", likely if rng.random() < 0.85 else rng.choice(COMMON))
        if base == "Layout":
            return Other("layout", "strided")
        if base == "Device":
            return "cpu"
        if base == "MemoryFormat":
            formats = ["contiguous_format", "preserve_format"]
            formats += {4: ["channels_last"], 5: ["channels_last_3d"]}.get(self.rank(), [])
            return Other("memory_format", rng.choice(formats))
        if base == "Generator":
            return Other("generator", "cpu")
        raise NotImplementedError(argument.type)

    def _scalar(self) -> Any:
        rng = self.rng
        whole = self.dtype == "bool" or self.dtype in WHOLE
        kind = rng.random()
        if whole and kind < 0.8 or kind < 0.4:
            return rng.randint(-2, 4)
        if kind < 0.9:
            return rng.choice((0.5, 1.0, -1.5, 2.0, rng.uniform(-2, 2)))
        if kind < 0.95:
            return rng.random() < 0.5
        return complex(rng.uniform(-2, 2), 1.0) if self.dtype in COMPLEX else 1.5

    def _list(self, argument: Any) -> list[Any]:
        rng = self.rng
        base, name = argument.base, argument.name
        first = self.first()
        shape = list(first.shape) if first is not None else list(self.shape)
        if base in ("int", "SymInt"):
            length = argument.length
            if name in ("dim", "dims", "source", "destination", "dims_self", "dims_other"):
                rank = len(shape)
                chosen = rng.sample(range(rank), rng.randint(min(1, rank), rank))
                if self.op.short_name.startswith("permute"):
                    chosen = rng.sample(range(rank), rank)
                elif name in ("source", "destination") or length == 2:
                    known = self.values.get("source")
                    count = len(known) if isinstance(known, list) else min(length or 1, rank)
                    chosen = rng.sample(range(rank), min(count, rank))
                return [d - rank if rng.random() < 0.3 else d for d in chosen]
            if name in ("size", "sizes", "shape", "self_sizes", "input_sizes"):
                if first is not None and rng.random() < 0.6:
                    return self._same_count(shape)
                return shape
            if name in ("stride", "strides") and length is None:
                sizes = self.values.get("size")
                return contiguous_strides(sizes if isinstance(sizes, list) else shape)
            if name == "normalized_shape":
                return shape[rng.randrange(len(shape)) :] if shape else []
            return [rng.randint(1, 2) for _ in range(length or rng.randint(1, 3))]
        if base == "bool":
            return [rng.random() < 0.7 for _ in range(argument.length or 2)]
        if base == "float":
            return [rng.choice((0.5, 1.0, 2.0)) for _ in range(argument.length or 2)]
        if base == "Scalar":
            return [self._scalar() for _ in range(max(len(shape), 1))]
        raise NotImplementedError(argument.type)

    def _same_count(self, shape: list[int]) -> list[int]:
        """Another shape with equally many elements."""
        rng = self.rng
        count = math.prod(shape)
        lot = rng.random()
        if lot < 0.3:
            return [count]
        if lot < 0.5 and count:
            divisors = [d for d in range(1, count + 1) if count % d == 0]
            d = rng.choice(divisors)
            return [d, count // d] if rng.random() < 0.6 else [d, -1]
        return [1, *shape] if lot < 0.7 else shape


_STRINGS = {
    "rounding_mode": ("floor", "trunc"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "UPLO": ("L", "U"),
    "approximate": ("none", "tanh"),
    "mode": ("constant", "reflect", "replicate", "circular", "reduced", "complete", "r"),
    "ord": ("fro", "nuc"),
    "indexing": ("ij", "xy"),
    "p": ("fro", "nuc"),
    "driver": ("gelsd", "gesvd", "gelsy", "gels", "gelss"),
    "side": ("left", "right"),
    "padding": ("valid", "same"),
    "equation": ("ij,jk->ik", "i,i->", "ij->ji", "...i,...i->...", "ii->i"),
}
