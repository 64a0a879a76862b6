"""Units that differ only in their arrays share a function: the results are those of the evaluator,
and the number of functions does not grow with the program. See Note [Shared units] in program.h."""

from __future__ import annotations

import re

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
from hlo_difference import between, for_numbers_of_threads, same_bits  # noqa: E402

FUNCTIONS = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
above {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  x = f32[] abs(a)
  y = f32[] abs(b)
  ROOT c = pred[] compare(x, y), direction=GT
}
few {
  s = (s32[], f32[N]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(n, three), direction=LT
}
step {
  s = (s32[], f32[N]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v0 = f32[N] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
BODY
  ROOT t = (s32[], f32[N]) tuple(m, v20)
}
"""
# Each takes %x and the parameter %y to %z, of the same shape; K is the number of the step.
STEPS = {
    "elementwise": "%a = S multiply(%x, %y)\n%z = S add(%a, %y)",
    "function": "%a = S tanh(%x)\n%b = S reshape(%a)\n%z = S subtract(%b, %y)",
    "constant": "%c = f32[] constant(K.5)\n%a = S broadcast(%c), dimensions={}\n"
    "%z = S subtract(%a, %x)",
    "roll": "%a = f32[1] slice(%x), slice={[0:1]}\n%b = f32[M] slice(%x), slice={[1:N]}\n"
    "%z = S concatenate(%b, %a), dimensions={0}",
    "rows": "%t = f32[8,R] reshape(%x)\n%zero = f32[] constant(0)\n"
    "%a = f32[8] reduce(%t, %zero), dimensions={1}, to_apply=max\n"
    "%b = f32[8,R] broadcast(%a), dimensions={0}\n%c = f32[8,R] subtract(%t, %b)\n"
    "%d = f32[8,R] exponential(%c)\n%f = f32[8] reduce(%d, %zero), dimensions={1}, to_apply=add\n"
    "%g = f32[8,R] broadcast(%f), dimensions={0}\n%h = f32[8,R] divide(%d, %g)\n"
    "%z = S reshape(%h)",
    "columns": "%t = f32[8,R] reshape(%x)\n%zero = f32[] constant(0)\n"
    "%a = f32[R] reduce(%t, %zero), dimensions={0}, to_apply=max\n"
    "%b = f32[8,R] broadcast(%a), dimensions={1}\n%c = f32[8,R] subtract(%t, %b)\n"
    "%z = S reshape(%c)",
    "all": "%zero = f32[] constant(0)\n%a = f32[] reduce(%x, %zero), dimensions={0}, to_apply=max\n"
    "%b = S broadcast(%a), dimensions={}\n%z = S subtract(%x, %b)",
    "update": "%i = s32[] constant(K)\n%u = f32[5] slice(%y), slice={[0:5]}\n"
    "%z = S dynamic-update-slice(%x, %u, %i)",
    "gather": "%i = s32[N] iota(), iota_dimension=0\n%r = s32[N] reverse(%i), dimensions={0}\n"
    "%a = S gather(%x, %r), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1}\n%z = S add(%a, %y)",
    "scatter": "%i = s32[4] constant({1, 7, 3, 7})\n%u = f32[4] slice(%y), slice={[K:L]}\n"
    "%z = S scatter(%x, %i, %u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "sort": "%a = S sort(%x), dimensions={0}, to_apply=above\n%z = S subtract(%y, %a)",
    "scan": "%a = S reduce-window(%x, %zero), window={size=N pad=M_0}, to_apply=max\n"
    "%z = S subtract(%y, %a)",
    "window": "%a = S reduce-window(%x, %zero), window={size=3 pad=1_1}, to_apply=max\n"
    "%z = S subtract(%y, %a)",
    "transpose": "%t = f32[8,R] reshape(%x)\n%a = f32[R,8] transpose(%t), dimensions={1,0}\n"
    "%b = S reshape(%a)\n%z = S add(%b, %y)",
    "table": "%c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, K})\n"
    "%t = f32[8,R] broadcast(%c), dimensions={0}\n%a = S reshape(%t)\n%z = S subtract(%a, %x)",
    "outside": "%c = f64[8,R] convert(%t)\n%f = f64[R] slice(%w), slice={[0:R]}\n"
    "%g = f64[8,R] broadcast(%f), dimensions={1}\n%a = f64[8,R] add(%c, %g)\n"
    "%b = f32[8,R] convert(%a)\n%z = S reshape(%b)",
    "branches": "%p = pred[] compare(%first, %zero), direction=GT\n%z = S select(%q, %x, %y)",
    "loop": "%n = s32[] constant(0)\n%s = (s32[], S) tuple(%n, %x)\n"
    "%w = (s32[], S) while(%s), condition=few, body=step\n"
    "%z = S get-tuple-element(%w), index=1",
}
# The steps that need more instructions before them.
BEFORE = {
    "scan": "%zero = f32[] constant(-3)",
    "window": "%zero = f32[] constant(-3)",
    "outside": "%t = f32[8,R] reshape(%x)\n%w = f64[N] convert(%y)",
    "branches": "%f = f32[1] slice(%x), slice={[K:O]}\n%first = f32[] reshape(%f)\n"
    "%zero = f32[] constant(0)\n%q = pred[N] broadcast(%p), dimensions={}",
}


def program(kind: str, size: int, steps: int) -> str:
    lines = ["x0 = S parameter(0)", "y = S parameter(1)"]
    for k in range(steps):
        step = STEPS[kind]
        if kind == "branches":
            f, one, zero, spread = BEFORE[kind].split("\n")
            compare, select = step.split("\n")
            step = "\n".join([f, one, zero, compare, spread, select])
        elif kind in BEFORE:
            step = BEFORE[kind] + "\n" + step
        names = {"x": f"x{k}", "y": "y", "z": f"x{k + 1}"}
        step = re.sub(r"%(\w+)", lambda m, k=k, names=names: names.get(m[1], f"{m[1]}_{k}"), step)
        step = re.sub(r"\bK\b", str(k % 7), step)
        step = re.sub(r"\bL\b", str(k % 7 + 4), step)
        lines += re.sub(r"\bO\b", str(k % 7 + 1), step).split("\n")
    body = [
        f"  {'' if k % 3 else 'w'}v{k + 1} = f32[N] {'multiply' if k % 2 else 'add'}(v{k}, v0)"
        for k in range(20)
    ]
    text = FUNCTIONS.replace("BODY", "\n".join(body).replace("wv", "v"))
    text = f"HloModule m\n{text}\nENTRY e {{\n  " + "\n  ".join(lines)
    text += f"\n  ROOT r = (S, S) tuple(x{steps // 3}, x{steps})\n}}\n"
    text = re.sub(r"\bS\b", f"f32[{size}]", text)
    sizes = {"N": size, "M": size - 1, "R": size // 8}
    return re.sub(r"\b([NR])\b|\b(M)(?=\b|_)", lambda m: str(sizes[m[0]]), text)


def given(size: int) -> list[np.ndarray]:
    random = np.random.default_rng(size)
    return [random.standard_normal(size).astype(np.float32) * 0.5 for _ in range(2)]


def check(kind: str, size: int, steps: int) -> None:
    text = program(kind, size, steps)
    expected = hlo.evaluate(text, *given(size))
    one, *others = for_numbers_of_threads(hlo.compile(text), given(size))
    assert between(one, expected, text) is None
    if kind not in ("function", "rows"):
        assert all(same_bits(a, b) for a, b in zip(one, expected))
    assert all(same_bits(one, other) for other in others)


# Arrays on the stack, arrays in memory, and arrays that threads share.
@pytest.mark.parametrize("size", [40, 1000, 70000])
@pytest.mark.parametrize("kind", [*STEPS])
def test_bits(kind, size):
    check(kind, size, 30 if size < 70000 else 6)


@pytest.mark.parametrize("kind", ["elementwise", "roll", "all"])
def test_bits_in_several_regions(kind):
    check(kind, 1000, 1100)


def test_sums_in_blocks():
    """Their partial results are in memory of the region that made the function."""
    check("all", 1 << 18, 5)


def test_sums_in_blocks_in_several_regions():
    """Each region has other temporary memory."""
    lines = [f"w{k + 1} = f32[8] add(w{k}, w0)" for k in range(2100)]

    def sums(first: str, name: str) -> list[str]:
        made = [f"{name}0 = f32[] reduce({first}, zero), dimensions={{0}}, to_apply=max"]
        for k in range(5):
            made += [
                f"{name}b{k} = f32[262144] broadcast({name}{k}), dimensions={{}}",
                f"{name}x{k} = f32[262144] subtract(x, {name}b{k})",
                f"{name}{k + 1} = f32[] reduce({name}x{k}, zero), dimensions={{0}}, to_apply=max",
            ]
        return made

    text = "\n".join(
        [
            "HloModule m",
            FUNCTIONS[FUNCTIONS.index("max {") : FUNCTIONS.index("above {")],
            "ENTRY e {",
            "x = f32[262144] parameter(0)",
            "zero = f32[] constant(0)",
            *sums("x", "a"),
            "w0 = f32[8] broadcast(a5), dimensions={}",
            *lines,
            "one = f32[1] slice(w2100), slice={[0:1]}",
            "last = f32[] reshape(one)",
            "spread = f32[262144] broadcast(last), dimensions={}",
            "large = f32[262144] multiply(x, spread)",
            *sums("large", "c"),
            "ROOT r = (f32[], f32[], f32[8]) tuple(a5, c5, w2100)",
            "}",
        ]
    )
    x = given(1 << 18)[0]
    assert same_bits(hlo.compile(text)(x), hlo.evaluate(text, x))


GROWING = ("elementwise", "constant", "rows", "columns", "all", "sort", "table", "outside")


@pytest.mark.parametrize("kind", [k for k in STEPS if k not in GROWING])
def test_functions_do_not_grow(kind, tmp_path, monkeypatch):
    """Of the other kinds some parts are in other units from step to step, for a while."""
    counts = []
    for n in (192, 384):
        folder = tmp_path / str(n)
        folder.mkdir()
        monkeypatch.setenv("LAMELLA_DUMP_LLVM", str(folder))
        hlo.compile(program(kind, 1000, n))
        code = "".join(f.read_text() for f in folder.glob("*.emitted.ll"))
        counts.append(code.count("define "))
    assert counts[0] == counts[1]
