"""Random HLO programs with arguments, reproducible by seed."""

from __future__ import annotations

import math
from typing import Any

from hlo_random_steps import Steps
from hlo_random_writer import INTEGERS, TYPES, Module, Value

SHAPES = [(), (5,), (3, 4), (2, 3, 5), (37,), (4, 19), (0, 3), (1, 7), (2, 1, 3), (130,)]
# Of these, work is divided among threads.
LARGE = [(), (70_001,), (300, 417), (5, 160, 201), (4000, 19), (19, 4000), (33,), (3, 70_000)]


class _Writer(Steps):
    def computation(
        self, parameter: str, given: list[Value], wanted: list[Value]
    ) -> tuple[str, bool]:
        """The name of a computation of a tuple, which gives a tuple of values like those wanted;
        and whether all of them are exact."""
        inner = _Writer(self.module)
        state = inner.line(parameter, "parameter(0)")
        for n, v in enumerate(given):
            inner.add(v.type, v.sizes, f"get-tuple-element({state}), index={n}", v.exact)
        for _ in range(self.number(1, 5)):
            inner.step(nested=True)
        made = [inner.like(v.type, v.sizes) for v in wanted]
        return inner.finished(made), all(v.exact for v in made)

    def finished(self, results: list[Value]) -> str:
        name = f"computation{self.module.count}"
        self.module.count += 1
        shape = ", ".join(v.shape for v in results)
        root = (
            f"ROOT out{self.module.count} = ({shape}) tuple({', '.join(v.name for v in results)})"
        )
        self.module.computations[name] = (
            f"{name} {{\n  " + "\n  ".join([*self.lines, root]) + "\n}\n"
        )
        return name

    def taken(self) -> tuple[list[Value], str, str]:
        values = [self.pick(self.values) for _ in range(self.number(1, 3))]
        shape = f"({', '.join(v.shape for v in values)})"
        return values, shape, self.line(shape, f"tuple({', '.join(v.name for v in values)})")

    def results(self, call: str, values: list[Value], exact: bool) -> None:
        for n, v in enumerate(values):
            self.add(v.type, v.sizes, f"get-tuple-element({call}), index={n}", exact)

    def call(self) -> None:
        values, shape, state = self.taken()
        name, exact = self.computation(shape, values, values)
        kind = self.pick(["call", "fusion"])
        how = f"kind=kLoop, calls={name}" if kind == "fusion" else f"to_apply={name}"
        self.results(self.line(shape, f"{kind}({state}), {how}"), values, exact)

    def conditional(self) -> None:
        values, shape, state = self.taken()
        count = 2 if self.chance(0.5) else self.number(1, 3)
        branches = [self.computation(shape, values, values) for _ in range(count)]
        if count == 2 and self.chance(0.5):
            which = self.truth(())
            how = f"true_computation={branches[0][0]}, false_computation={branches[1][0]}"
        else:
            which = self.start("s32")
            how = f"branch_computations={{{', '.join(name for name, _ in branches)}}}"
        given = ", ".join([which.name] + [state] * count)
        made = self.line(shape, f"conditional({given}), {how}")
        self.results(made, values, all(exact for _, exact in branches))

    def loop(self) -> None:
        values = [self.pick(self.values) for _ in range(self.number(1, 3))]
        # What a step gives is what the next one gets.
        carried = [
            Value(v.name, v.type, v.sizes, v.type in (*INTEGERS, "pred") and v.exact)
            for v in values
        ]
        count = self.add("s32", (), "constant(0)")
        all_values = [count, *carried]
        shape = f"({', '.join(v.shape for v in all_values)})"
        state = self.line(shape, f"tuple({', '.join(v.name for v in all_values)})")
        inner = _Writer(self.module)
        inside = inner.line(shape, "parameter(0)")
        for n, v in enumerate(all_values):
            inner.add(v.type, v.sizes, f"get-tuple-element({inside}), index={n}", v.exact)
        one = inner.values[0]
        for _ in range(self.number(1, 4)):
            inner.step(nested=True)
        made = [inner.like(v.type, v.sizes, exact=v.exact) for v in carried]
        step = inner.add("s32", (), "constant(1)")
        following = inner.add("s32", (), f"add({one.name}, {step.name})")
        body = inner.finished([following, *made])
        name = f"condition{self.module.count}"
        self.module.computations[name] = (
            f"{name} {{\n  s = {shape} parameter(0)\n  n = s32[] get-tuple-element(s), index=0\n"
            f"  most = s32[] constant({self.number(0, 4)})\n"
            "  ROOT go = pred[] compare(n, most), direction=LT\n}\n"
        )
        call = self.line(shape, f"while({state}), condition={name}, body={body}")
        for n, v in enumerate(all_values):
            self.add(v.type, v.sizes, f"get-tuple-element({call}), index={n}", v.exact)

    NESTS = "call conditional loop".split()

    def step(self, nested: bool = False) -> None:
        kinds = self.STEPS if nested else self.STEPS + self.NESTS
        getattr(self, self.pick(kinds))()
        # What grew too large is no operand of more.
        kept = [v for v in self.values if math.prod(v.sizes) <= self.module.most]
        self.values = kept or [self.constant("f32")]


def program(seed: int, large: bool = False) -> tuple[str, list[Any]]:
    """The text of a program and arguments for it: some elements, or some hundred thousand."""
    module = Module(seed, 400_000 if large else 20_000)
    writer = _Writer(module)
    types = [*TYPES, "f32", "f32", "f32", "s32", "f64"]
    for _ in range(3):
        writer.parameter(writer.pick(types), writer.pick(LARGE if large else SHAPES))
    for _ in range(writer.number(3, 24)):
        writer.step()
    results = [writer.pick(writer.values) for _ in range(3)] + [writer.values[-1]]
    shape = ", ".join(v.shape for v in results)
    names = ", ".join(v.name for v in results)
    body = "\n  ".join([*writer.lines, f"ROOT result = ({shape}) tuple({names})"])
    called = "".join(module.computations.values())
    return f"HloModule m\n{called}ENTRY e {{\n  {body}\n}}\n", writer.arguments
