"""Random programs of HLO, each with arguments: the same ones for a seed."""

from __future__ import annotations

import numpy as np

UNARY = "abs negate exponential tanh sine cosine floor ceil logistic sqrt erf sign log".split()
BINARY = "add subtract multiply divide maximum minimum atan2".split()
INTEGER = "add subtract multiply divide remainder maximum minimum and or xor".split()


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.computations: list[str] = []
        self.arguments: list[np.ndarray] = []
        self.values: list[tuple[str, str, tuple[int, ...]]] = []  # name, type, sizes

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def add(self, element: str, sizes: tuple[int, ...], text: str) -> str:
        name = f"v{len(self.lines)}"
        shape = f"{element}[{','.join(map(str, sizes))}]"
        self.lines.append(f"{name} = {shape} {text}")
        self.values.append((name, element, sizes))
        return name

    def parameter(self, element: str, sizes: tuple[int, ...]) -> None:
        if element == "f32":
            data = self.random.normal(size=sizes).astype(np.float32)
        else:
            data = self.random.integers(-9, 10, size=sizes).astype(np.int32)
        self.add(element, sizes, f"parameter({len(self.arguments)})")
        self.arguments.append(data)

    def like(self, element: str, sizes: tuple[int, ...]) -> str:
        """A value of the type and sizes: one there is, or a broadcast scalar."""
        found = [name for name, e, s in self.values if e == element and s == sizes]
        if found and self.random.random() < 0.9:
            return self.pick(found)
        scalar = self.add(element, (), f"constant({int(self.random.integers(-3, 4))})")
        return self.add(element, sizes, f"broadcast({scalar}), dimensions={{}}")

    def step(self) -> None:
        name, element, sizes = self.pick(self.values)
        rank = len(sizes)
        kind = self.pick(
            "unary binary binary select transpose reverse slice pad reduce reduce broadcast "
            "reshape concatenate convert update dot index loop window sort".split()
        )
        numbers = list(range(rank))
        listed = ",".join(map(str, numbers))
        if kind == "unary":
            opcode = self.pick(UNARY) if element == "f32" else self.pick(["abs", "negate", "sign"])
            self.add(element, sizes, f"{opcode}({name})")
        elif kind == "binary":
            opcode = self.pick(BINARY if element == "f32" else INTEGER)
            self.add(element, sizes, f"{opcode}({name}, {self.like(element, sizes)})")
        elif kind == "select":
            other = self.like(element, sizes)
            direction = self.pick("LT GE EQ NE".split())
            which = f"c{len(self.lines)}"
            self.lines.append(
                f"{which} = pred[{','.join(map(str, sizes))}] compare({name}, {other}), "
                f"direction={direction}"
            )
            self.add(element, sizes, f"select({which}, {other}, {name})")
        elif kind == "transpose":
            order = [int(n) for n in self.random.permutation(rank)]
            made = tuple(sizes[n] for n in order)
            self.add(
                element, made, f"transpose({name}), dimensions={{{','.join(map(str, order))}}}"
            )
        elif kind == "reverse" and rank:
            self.add(element, sizes, f"reverse({name}), dimensions={{{self.pick(numbers)}}}")
        elif kind == "slice" and rank:
            parts, made = [], []
            for size in sizes:
                start = int(self.random.integers(0, max(1, size)))
                stop = int(self.random.integers(start, size + 1))
                stride = int(self.random.integers(1, 3))
                stop = max(stop, min(start + 1, size))
                parts.append(f"[{start}:{stop}:{stride}]")
                made.append((stop - start + stride - 1) // stride)
            self.add(element, tuple(made), f"slice({name}), slice={{{', '.join(parts)}}}")
        elif kind == "pad" and rank:
            parts, made = [], []
            for size in sizes:
                low, high = (int(n) for n in self.random.integers(-1, 3, size=2))
                inner = int(self.random.integers(0, 2))
                whole = size + low + high + max(0, size - 1) * inner
                if whole < 0:
                    low, high, inner, whole = 0, 0, 0, size
                parts.append(f"{low}_{high}_{inner}")
                made.append(whole)
            value = self.add(element, (), "constant(2)")
            self.add(element, tuple(made), f"pad({name}, {value}), padding={'x'.join(parts)}")
        elif kind == "reduce" and rank:
            chosen = [n for n in numbers if self.random.random() < 0.6] or [self.pick(numbers)]
            made = tuple(s for n, s in enumerate(sizes) if n not in chosen)
            start = self.add(element, (), "constant(1)")
            opcode = self.pick(["sum", "max", "odd"])
            dimensions = ",".join(map(str, chosen))
            self.add(
                element, made,
                f"reduce({name}, {start}), dimensions={{{dimensions}}}, "
                f"to_apply={opcode}_{element}",
            )  # fmt: skip
        elif kind == "broadcast" and rank < 4:
            at = int(self.random.integers(0, rank + 1))
            extra = int(self.random.integers(1, 5))
            made = (*sizes[:at], extra, *sizes[at:])
            kept = ",".join(str(n if n < at else n + 1) for n in numbers)
            self.add(element, made, f"broadcast({name}), dimensions={{{kept}}}")
        elif kind == "reshape" and rank:
            whole = int(np.prod(sizes))
            made = self.pick([(whole,), (1, whole), (*sizes, 1), (*sizes[1:], sizes[0])])
            self.add(element, made, f"reshape({name})")
        elif kind == "concatenate" and rank:
            along = self.pick(numbers)
            other = self.like(element, sizes)
            made = tuple(2 * s if n == along else s for n, s in enumerate(sizes))
            self.add(element, made, f"concatenate({name}, {other}), dimensions={{{along}}}")
        elif kind == "convert":
            # Numbers that no integer holds would be different ones for the least error.
            if element == "s32":
                self.add("f32", sizes, f"convert({name})")
        elif kind == "update" and rank:
            made = tuple(int(self.random.integers(0, s + 1)) for s in sizes)
            zeros = ", ".join(
                self.add("s32", (), f"constant({int(self.random.integers(-1, 4))})") for _ in sizes
            )
            if self.random.random() < 0.5:
                listed = ",".join(map(str, made))
                self.add(
                    element,
                    made,
                    f"dynamic-slice({name}, {zeros}), dynamic_slice_sizes={{{listed}}}",
                )
            else:
                update = self.like(element, made)
                self.add(element, sizes, f"dynamic-update-slice({name}, {update}, {zeros})")
        elif kind == "dot" and rank == 2 and element == "f32":
            other = self.like(element, (sizes[1], 3))
            self.add(
                element, (sizes[0], 3),
                f"dot({name}, {other}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            )  # fmt: skip
        elif kind == "index" and rank:
            self.add("s32", sizes, f"iota(), iota_dimension={self.pick(numbers)}")
        elif kind == "window" and rank:
            self.window(name, element, sizes)
        elif kind == "sort" and rank and element == "s32":
            # Of integers, as the sign of what is not a number may be another one.
            along, shape = self.pick(numbers), f"[{','.join(map(str, sizes))}]"
            if self.random.random() < 0.5:
                self.add(
                    element, sizes,
                    f"sort({name}), dimensions={{{along}}}, is_stable=true, to_apply=less",
                )  # fmt: skip
                return
            places = self.add("f32", sizes, f"iota(), iota_dimension={self.pick(numbers)}")
            pair = f"p{len(self.lines)}"
            self.lines.append(
                f"{pair} = (s32{shape}, f32{shape}) sort({name}, {places}), "
                f"dimensions={{{along}}}, is_stable=true, to_apply=less_pair"
            )
            self.add("f32", sizes, f"get-tuple-element({pair}), index=1")
        elif kind == "loop" and rank < 3:
            self.loop(element, sizes)

    def window(self, name: str, element: str, sizes: tuple[int, ...]) -> None:
        """A reduction of windows with padding, steps and holes."""
        made, parts = [], []
        for size in sizes:
            taken, stride, base, apart = (int(n) for n in self.random.integers(1, 4, size=4))
            low, high = (int(n) for n in self.random.integers(0, 3, size=2))
            whole = max(0, (size - 1) * base + 1) + low + high - ((taken - 1) * apart + 1)
            made.append(whole // stride + 1 if whole >= 0 else 0)
            parts.append((taken, stride, f"{low}_{high}", base, apart))
        names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate")
        listed = " ".join(
            f"{key}={'x'.join(str(part[n]) for part in parts)}" for n, key in enumerate(names)
        )
        start = self.add(element, (), "constant(1)")
        opcode = self.pick(["sum", "max", "odd"])
        self.add(
            element, tuple(made),
            f"reduce-window({name}, {start}), window={{{listed}}}, to_apply={opcode}_{element}",
        )  # fmt: skip

    def loop(self, element: str, sizes: tuple[int, ...]) -> None:
        """A few steps on two values, one that stays, and an array that keeps a value of each."""
        n, count = len(self.lines), int(self.random.integers(0, 5))
        listed = "".join(f",{s}" for s in sizes)
        one, all_ = f"{element}[{listed[1:]}]", f"{element}[{count + 1}{listed}]"
        zeros = "".join(", zero" for _ in sizes)
        values = ["x", "y", "k"]
        body = []
        for k in range(int(self.random.integers(1, 4))):
            opcode = self.pick(["add", "subtract", "maximum", "minimum"])
            body.append(f"v{k} = {one} {opcode}({self.pick(values)}, {self.pick(values)})")
            values.append(f"v{k}")
        state = f"(s32[], {one}, {one}, {one}, {all_})"
        parts = "\n".join(
            f"  {name} = {shape} get-tuple-element(p), index={at}"
            for at, (name, shape) in enumerate(
                [("i", "s32[]"), ("x", one), ("y", one), ("k", one), ("h", all_)]
            )
        )
        kept = "k" if self.random.random() < 0.8 else self.pick(values)
        steps = "".join(f"  {line}\n" for line in body)
        self.computations.append(
            f"until{n} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
            f"  m = s32[] constant({count})\n"
            f"  ROOT r = pred[] compare(i, m), direction=LT\n}}\n"
            f"body{n} {{\n  p = {state} parameter(0)\n{parts}\n{steps}"
            f"  zero = s32[] constant(0)\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
            f"  row = {element}[1{listed}] reshape({self.pick(values)})\n"
            f"  g = {all_} dynamic-update-slice(h, row, i{zeros})\n"
            f"  ROOT r = {state} tuple(j, {values[-1]}, {self.pick(values)}, {kept}, g)\n}}\n"
        )
        first = self.add("s32", (), "constant(0)")
        x, y, k = (self.like(element, sizes) for _ in range(3))
        start = self.add(element, (), f"constant({int(self.random.integers(-3, 4))})")
        history = (count + 1, *sizes)
        h = self.add(element, history, f"broadcast({start}), dimensions={{}}")
        name = f"w{n}"
        self.lines.append(f"t{name} = {state} tuple({first}, {x}, {y}, {k}, {h})")
        self.lines.append(f"{name} = {state} while(t{name}), condition=until{n}, body=body{n}")
        for at, shape in ((1, sizes), (2, sizes), (3, sizes), (4, history)):
            if self.random.random() < 0.7:
                self.add(element, shape, f"get-tuple-element({name}), index={at}")


def _combiner(element: str) -> str:
    text = ""
    for name, opcode in (("sum", "add"), ("max", "maximum")):
        text += (
            f"{name}_{element} {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n"
            f"  ROOT r = {element}[] {opcode}(a, b)\n}}\n"
        )
    return text + (
        f"odd_{element} {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n"
        f"  n = {element}[] negate(a)\n  h = {element}[] constant(2)\n"
        f"  q = {element}[] divide(n, h)\n  ROOT r = {element}[] add(q, b)\n}}\n"
    )


LESS = """less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
less_pair {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  x = f32[] parameter(2)
  y = f32[] parameter(3)
  l = pred[] compare(a, b), direction=GT
  e = pred[] compare(a, b), direction=EQ
  m = pred[] compare(x, y), direction=GT
  n = pred[] and(e, m)
  ROOT r = pred[] or(l, n)
}
"""


def program(seed: int) -> tuple[str, list[np.ndarray]]:
    """The text of a program and arguments for it."""
    writer = _Writer(seed)
    shapes = [(), (5,), (3, 4), (2, 3, 5), (37,), (4, 19), (0, 3)]
    for _ in range(3):
        writer.parameter(writer.pick(["f32", "f32", "s32"]), writer.pick(shapes))
    for _ in range(int(writer.random.integers(3, 25))):
        writer.step()
        if max((int(np.prod(s)) for _, _, s in writer.values)) > 20000:
            break
    chosen = [writer.pick(writer.values) for _ in range(3)] + [writer.values[-1]]
    names = ", ".join(name for name, _, _ in chosen)
    shapes_text = ", ".join(f"{e}[{','.join(map(str, s))}]" for _, e, s in chosen)
    body = "\n  ".join([*writer.lines, f"ROOT result = ({shapes_text}) tuple({names})"])
    called = "".join(writer.computations)
    text = (
        f"HloModule m\n{_combiner('f32')}{_combiner('s32')}{LESS}{called}ENTRY e {{\n  {body}\n}}\n"
    )
    return text, writer.arguments
