"""Machine code gives the reference evaluator's results: JAX's functions, and random programs."""

from __future__ import annotations

import os
import subprocess
import sys

import hlo_random_programs
import numpy as np
import pytest
from jax_programs import TABLES, programs

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
from hlo_difference import (  # noqa: E402
    between,
    difference,
    for_numbers_of_threads,
    is_steep,
    same_bits,
)


@pytest.mark.parametrize("table", TABLES)
def test_functions_of_jax(table):
    """Also the same bits for any number of threads."""
    pytest.importorskip("jax", reason="JAX writes the programs")
    found = []
    for name, program in programs(table).items():
        text, given = program.text, program.given
        one, *others = for_numbers_of_threads(hlo.compile(text), given)
        wrong = between(one, hlo.evaluate(text, *given), text)
        if not all(same_bits(one, other) for other in others):
            wrong = "other bits for other numbers of threads"
        if wrong is not None:
            found.append(f"{name}: {wrong}")
    assert "\n".join(found) == ""


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    found = []
    for n in range(25):
        text, arguments = hlo_random_programs.program(1000 * seed + n)
        wrong = difference(text, arguments)
        if wrong is not None and not is_steep(text, arguments):
            found.append(f"{wrong}\n{text}")
    assert "\n".join(found[:1]) == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"LAMELLA_CPU_CAPABILITY": "default"},
        {"LAMELLA_CPU_CAPABILITY": "avx2"},
        {"LAMELLA_COMPILER": "0"},
    ],
)
def test_other_machines(settings):
    if "LAMELLA_SANITIZED" in os.environ and "LAMELLA_CPU_CAPABILITY" in settings:
        pytest.skip("the sanitizers' build has this machine's capability alone")
    # They are read when the library is first used.
    wanted = "test_random_programs and (0 or 1)"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__,
         "-k", wanted],
        env={**os.environ, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


def chain(n: int) -> str:
    return f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{n},100] parameter(0)
  t = f32[{n},100] tanh(x)
  zero = f32[] constant(0)
  rows = f32[{n}] reduce(t, zero), dimensions={{1}}, to_apply=add
  columns = f32[100] reduce(t, zero), dimensions={{0}}, to_apply=add
  all = f32[] reduce(t, zero), dimensions={{0,1}}, to_apply=add
  spread = f32[{n},100] broadcast(rows), dimensions={{0}}
  y = f32[{n},100] divide(t, spread)
  ROOT r = (f32[{n},100], f32[{n}], f32[100], f32[]) tuple(y, rows, columns, all)
}}
"""


@pytest.mark.parametrize("sizes", [(20000,), (7, 300), (3, 50, 5), (4, 1), (1, 9)])
@pytest.mark.parametrize("from_last", [False, True])
def test_sums_from_one_end(sizes, from_last):
    # Windows as long as their dimension: what a sum reaches after each element.
    x = np.random.default_rng(2).integers(-9, 9, size=sizes).astype(np.int32)
    for d, size in enumerate(sizes):
        pads = ["0_0"] * len(sizes)
        pads[d] = f"0_{size - 1}" if from_last else f"{size - 1}_0"
        window = "x".join(str(size if n == d else 1) for n in range(len(sizes)))
        spread = f"size={window} pad={'x'.join(pads)}"
        shape = f"s32[{','.join(map(str, sizes))}]"
        text = f"""HloModule m
add {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}}
ENTRY e {{
  x = {shape} parameter(0)
  one = s32[] constant(1)
  ROOT r = {shape} reduce-window(x, one), window={{{spread}}}, to_apply=add
}}
"""
        expected = 1 + np.flip(np.cumsum(np.flip(x, d), d), d) if from_last else 1 + x.cumsum(d)
        np.testing.assert_array_equal(hlo.compile(text)(x)[0].numpy(), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "float32"])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_sorts(dtype, direction):
    x = np.random.default_rng(3).integers(0, 120, size=(3, 70, 2)).astype(dtype)
    element = {"i": "s", "u": "u", "f": "f"}[x.dtype.kind] + str(8 * x.dtype.itemsize)
    for d in range(3):
        text = f"""HloModule m
before {{
  a = {element}[] parameter(0)
  b = {element}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={direction}
}}
ENTRY e {{
  x = {element}[3,70,2] parameter(0)
  ROOT r = {element}[3,70,2] sort(x), dimensions={{{d}}}, is_stable=true, to_apply=before
}}
"""
        expected = np.sort(x, d)
        if direction == "GT":
            expected = np.flip(expected, d)
        np.testing.assert_array_equal(hlo.compile(text)(x)[0].numpy(), expected)


@pytest.mark.parametrize("size", [1 << 17, 131077, 700001])
def test_reductions_to_one_number(size):
    # They are done in blocks that threads share.
    text = f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{size}] parameter(0)
  zero = f32[] constant(0)
  sum = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add
  spread = f32[{size}] broadcast(sum), dimensions={{}}
  difference = f32[{size}] subtract(x, spread)
  y = f32[{size}] multiply(difference, difference)
  squares = f32[] reduce(y, zero), dimensions={{0}}, to_apply=add
  root = f32[] sqrt(squares)
  ROOT r = (f32[], f32[], f32[{size}]) tuple(sum, root, y)
}}
"""
    x = np.random.default_rng(1).normal(size=size).astype(np.float32)
    program = hlo.compile(text)
    before = lamella.get_num_threads()
    results = set()
    try:
        for threads in (1, 2, 3, 8):
            lamella.set_num_threads(threads)
            total, root, y = (t.numpy() for t in program(x))
            results.add(total.tobytes() + root.tobytes() + y.tobytes())
    finally:
        lamella.set_num_threads(before)
    assert len(results) == 1
    exact = x.astype(np.float64)
    np.testing.assert_allclose(total, exact.sum(), rtol=1e-5)
    difference = exact - float(total)
    np.testing.assert_allclose(root, np.sqrt((difference**2).sum()), rtol=1e-5)


def test_the_number_of_threads_changes_no_bit():
    program = hlo.compile(chain(3001))
    x = lamella.tensor(np.random.default_rng(0).normal(size=(3001, 100)).astype(np.float32))
    before = lamella.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3, 8):
            lamella.set_num_threads(threads)
            results.append([t.numpy().tobytes() for t in program(x)])
    finally:
        lamella.set_num_threads(before)
    assert all(one == results[0] for one in results)


LOOPS = {
    "two values exchanged": (
        "(s32[], f32[3], f32[3])",
        ["i1 = s32[] add(i, one)", "ROOT t = (s32[], f32[3], f32[3]) tuple(i1, b, a)"],
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]],
    ),
    "each from the other": (
        "(s32[], f32[3], f32[3])",
        [
            "i1 = s32[] add(i, one)",
            "c = f32[3] add(b, b)",
            "d = f32[3] negate(a)",
            "ROOT t = (s32[], f32[3], f32[3]) tuple(i1, c, d)",
        ],
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        [[-16.0, -20.0, -24.0], [2.0, 4.0, 6.0]],
    ),
}


@pytest.mark.parametrize("row", LOOPS)
def test_loops_read_before_they_write(row):
    state, body, start, expected = LOOPS[row]
    lines = "\n  ".join(body)
    text = f"""HloModule m
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[3] get-tuple-element(p), index=1
  b = f32[3] get-tuple-element(p), index=2
  one = s32[] constant(1)
  {lines}
}}
condition {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  zero = s32[] constant(0)
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  s = {state} tuple(zero, x, y)
  ROOT w = {state} while(s), condition=condition, body=body
}}
"""
    arguments = [np.array(a, np.float32) for a in start]
    result = [t.tolist() for t in hlo.compile(text)(*arguments)]
    assert result == [3, *expected]
    assert difference(text, arguments) is None


def test_arguments_are_not_written():
    text = """HloModule m
ENTRY e {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
"""
    x = lamella.ones(64)
    program = hlo.compile(text)
    program(x)
    assert x.tolist() == [1.0] * 64


def test_explain_says_what_is_no_machine_code():
    text = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] tanh(x)
  s = (f32[8], s32[8]) topk(y), k=8, largest=true
  v = f32[8] get-tuple-element(s), index=0
  ROOT r = f32[8] negate(v)
}
"""
    explained = hlo.compile(text).explain()
    assert "rule of topk: s (" in explained
    if "there is no compiler" not in explained:
        assert "loop over [8]: y" in explained
        assert "rule of topk: s (opcode topk)" in explained


# Window, dimensions, groups: f32 [2,6,7,8] by kernels [4, 6/groups, 3, 2] in the order b f 0 1.
CONVOLUTIONS = {
    "plain": ("size=3x2", "bf01_oi01->bf01", 1),
    "strides": ("size=3x2 stride=2x3", "bf01_oi01->bf01", 1),
    "padding": ("size=3x2 pad=1_1x1_1", "bf01_oi01->bf01", 1),
    "padding of one side": ("size=3x2 pad=0_2x3_0", "bf01_oi01->bf01", 1),
    "padding below 0": ("size=3x2 pad=-1_0x0_-2", "bf01_oi01->bf01", 1),
    "holes in the kernel": ("size=3x2 rhs_dilate=2x3", "bf01_oi01->bf01", 1),
    "holes in the input": ("size=3x2 pad=2_2x1_1 lhs_dilate=2x3", "bf01_oi01->bf01", 1),
    "kernel turned around": ("size=3x2 pad=1_1x0_0 rhs_reversal=1x1", "bf01_oi01->bf01", 1),
    "groups": ("size=3x2", "bf01_oi01->bf01", 2),
    "other orders": ("size=3x2 stride=1x2", "b01f_01io->b01f", 1),
    "batch last": ("size=3x2 pad=1_0x0_1", "f01b_i01o->01bf", 1),
}


# Those that machine code leaves to the operator.
LEFT = {"padding of one side", "padding below 0", "holes in the input"}


@pytest.mark.parametrize("row", CONVOLUTIONS)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_convolutions(row, element):
    window, labels, groups = CONVOLUTIONS[row]
    given, kernel, result = labels.replace("->", "_").split("_")
    sizes = {"b": 2, "f": 6, "0": 7, "1": 8}
    taps = {"o": 4, "i": 6 // groups, "0": 3, "1": 2}
    words = dict(word.split("=") for word in window.split())
    out = {"b": 2, "f": 4}
    for n, at in enumerate("01"):
        low, high = (int(p) for p in words.get("pad", "0_0x0_0").split("x")[n].split("_"))
        base = int(words.get("lhs_dilate", "1x1").split("x")[n])
        holes = int(words.get("rhs_dilate", "1x1").split("x")[n])
        stride = int(words.get("stride", "1x1").split("x")[n])
        whole = low + high + (sizes[at] - 1) * base + 1
        out[at] = (whole - (taps[at] - 1) * holes - 1) // stride + 1

    def shape(order, numbers):
        return f"{element}[{','.join(str(numbers[c]) for c in order)}]"

    text = f"""HloModule m
ENTRY e {{
  x = {shape(given, sizes)} parameter(0)
  w = {shape(kernel, taps)} parameter(1)
  ROOT y = {shape(result, out)} convolution(x, w), window={{{window}}}, dim_labels={labels},
      feature_group_count={groups}
}}
"""
    random = np.random.default_rng(0)
    kind = np.float32 if element == "f32" else np.float64
    arguments = [
        random.normal(size=[numbers[c] for c in order]).astype(kind)
        for order, numbers in ((given, sizes), (kernel, taps))
    ]
    assert difference(text, arguments) is None
    explained = hlo.compile(text).explain()
    is_left = element == "f64" or row in LEFT
    by = "custom call of aten::convolution" if is_left else "convolution: y"
    assert "there is no compiler" in explained or by in explained


def test_modules_are_written_after_each_pass(tmp_path, monkeypatch):
    text = """HloModule outer
inner {
  a = f32[4] parameter(0)
  ROOT b = f32[4] tanh(a)
}
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] call(x), to_apply=inner
}
"""
    monkeypatch.setenv("LAMELLA_DUMP_HLO", str(tmp_path))
    if "there is no compiler" in hlo.compile(text).explain():
        pytest.skip("passes are the compiler's")
    stages = {path.name.split(".", 1)[1]: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(stages) == [
        "outer.0.given.hlo",
        "outer.1.inline_calls.hlo",
        "outer.7.remove_dead_code.hlo",
    ]
    assert "call(" in stages["outer.0.given.hlo"]
    assert "call(" not in stages["outer.1.inline_calls.hlo"]
    assert "inner {" in stages["outer.1.inline_calls.hlo"]
    assert "inner {" not in stages["outer.7.remove_dead_code.hlo"]
    x = lamella.ones(4)
    for stage in stages.values():
        assert hlo.compile(stage)(x)[0].tolist() == hlo.evaluate(text, x)[0].tolist()
