"""Passes over modules: the effect of each on small programs, and unchanged results."""

from __future__ import annotations

import os
import re
from pathlib import Path

import hlo_random_programs
import numpy as np
import pytest

import lamella
from lamella import hlo

SUM = "add_f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
MOST = "max_f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }\n"


def module(body: str, functions: str = "") -> str:
    return f"HloModule m\n{functions}ENTRY main {{\n{body}\n}}\n"


def after_passes(text: str, folder: Path, monkeypatch) -> str:
    """The last module that the passes wrote."""
    monkeypatch.setenv("LAMELLA_DUMP_HLO", str(folder))
    hlo.compile(text)
    monkeypatch.delenv("LAMELLA_DUMP_HLO")
    numbered = []
    for name in os.listdir(folder):
        run, _, number, _ = name.split(".", 3)
        numbered.append((int(run), int(number), name))
    return (folder / max(numbered)[2]).read_text()


def opcodes(text: str) -> str:
    """The opcodes of the entry but parameters, in their order."""
    entry = text[text.index("ENTRY") :]
    found = re.findall(r"= (?:\([^)]*\)|\S+) ([\w-]+)\(", entry)
    return " ".join(o for o in found if o != "parameter")


P = "x = f32[2,3] parameter(0)\n"
ONE = P + "c = f32[] constant({})\nb = f32[2,3] broadcast(c), dimensions={{}}\n"
INT = ONE.replace("f32", "s32")

# Instructions of an entry, and the opcodes that are left.
ROWS = {
    "x * 1": (ONE.format(1) + "m = f32[2,3] multiply(x, b)\nROOT r = f32[2,3] tanh(m)", "tanh"),
    "1 * x": (ONE.format(1) + "m = f32[2,3] multiply(b, x)\nROOT r = f32[2,3] tanh(m)", "tanh"),
    "x * 0 stays": (
        ONE.format(0) + "ROOT m = f32[2,3] multiply(x, b)",
        "constant broadcast multiply",
    ),
    "x + 0 stays": (ONE.format(0) + "ROOT m = f32[2,3] add(x, b)", "constant broadcast add"),
    "x + -0": (ONE.format("-0") + "m = f32[2,3] add(x, b)\nROOT r = f32[2,3] tanh(m)", "tanh"),
    "x - 0": (ONE.format(0) + "m = f32[2,3] subtract(x, b)\nROOT r = f32[2,3] tanh(m)", "tanh"),
    "x - -0 stays": (
        ONE.format("-0") + "ROOT m = f32[2,3] subtract(x, b)",
        "constant broadcast subtract",
    ),
    "x / 4": (
        ONE.format(4) + "ROOT m = f32[2,3] divide(x, b)",
        "constant broadcast multiply",
    ),
    "x / 3 stays": (ONE.format(3) + "ROOT m = f32[2,3] divide(x, b)", "constant broadcast divide"),
    "x / 2^127 stays": (
        ONE.format("1.7014118346046923e38") + "ROOT m = f32[2,3] divide(x, b)",
        "constant broadcast divide",
    ),
    "x ** 2": (ONE.format(2) + "ROOT m = f32[2,3] power(x, b)", "multiply"),
    "x ** 0": (ONE.format(0) + "ROOT m = f32[2,3] power(x, b)", "constant broadcast"),
    "whole x * 0": (INT.format(0) + "ROOT m = s32[2,3] multiply(x, b)", "constant broadcast"),
    "whole x + 0": (INT.format(0) + "m = s32[2,3] add(x, b)\nROOT n = s32[2,3] not(m)", "not"),
    "whole x & -1": (INT.format(-1) + "m = s32[2,3] and(x, b)\nROOT n = s32[2,3] not(m)", "not"),
    "x - x stays": (P + "ROOT m = f32[2,3] subtract(x, x)", "subtract"),
    "- - x": (
        P + "a = f32[2,3] negate(x)\nb = f32[2,3] negate(a)\nROOT r = f32[2,3] tanh(b)",
        "tanh",
    ),
    "select of equals": (
        P + "p = pred[2,3] parameter(1)\ns = f32[2,3] select(p, x, x)\nROOT r = f32[2,3] tanh(s)",
        "tanh",
    ),
    "widened and back": (
        "x = bf16[4] parameter(0)\nw = f32[4] convert(x)\nb = bf16[4] convert(w)\n"
        "ROOT r = bf16[4] tanh(b)",
        "tanh",
    ),
    "narrowed and back stays": (
        "x = f32[4] parameter(0)\nw = bf16[4] convert(x)\nROOT b = f32[4] convert(w)",
        "convert convert",
    ),
    "constants": (
        "a = f32[2] constant({1, 2})\nb = f32[2] constant({3, 4})\nROOT c = f32[2] add(a, b)",
        "constant",
    ),
    "a reduced constant": (
        "a = f32[3] constant({1, 2, 3})\nz = f32[] constant(0)\n"
        "ROOT c = f32[] reduce(a, z), dimensions={0}, to_apply=add_f",
        "constant",
    ),
    "a repeated constant stays small": (
        "c = f32[] constant(2)\nROOT b = f32[100,100] broadcast(c), dimensions={}",
        "constant broadcast",
    ),
    "functions of repeated numbers": (
        ONE.format(2) + "e = f32[2,3] exponential(b)\nROOT m = f32[2,3] multiply(x, e)",
        "constant broadcast multiply",
    ),
    "the same twice": (
        P + "a = f32[2,3] tanh(x)\nb = f32[2,3] tanh(x)\nROOT s = f32[2,3] add(a, b)",
        "tanh add",
    ),
    "what nobody reads": (P + "a = f32[2,3] tanh(x)\nROOT s = f32[2,3] add(x, x)", "add"),
    "transposed and back": (
        P + "t = f32[3,2] transpose(x), dimensions={1,0}\n"
        "u = f32[2,3] transpose(t), dimensions={1,0}\nROOT r = f32[2,3] tanh(u)",
        "tanh",
    ),
    "reshaped twice": (
        P + "t = f32[6] reshape(x)\nROOT u = f32[3,2] reshape(t)",
        "reshape",
    ),
    "a transpose of ones": (
        "x = f32[1,5,1] parameter(0)\nROOT t = f32[5,1,1] transpose(x), dimensions={1,2,0}",
        "reshape",
    ),
    "broadcasts of broadcasts": (
        "x = f32[3] parameter(0)\nr = f32[1,3] reshape(x)\n"
        "b = f32[1,3] broadcast(r), dimensions={0,1}\nc = f32[3] reshape(b)\n"
        "ROOT d = f32[2,3] broadcast(c), dimensions={1}",
        "broadcast",
    ),
    "nothing cut off": (
        P + "s = f32[2,3] slice(x), slice={[0:2], [0:3]}\nROOT r = f32[2,3] tanh(s)",
        "tanh",
    ),
    "a product of a transposed weight": (
        "x = f32[4,3] parameter(0)\nw = f32[5,3] parameter(1)\n"
        "t = f32[3,5] transpose(w), dimensions={1,0}\n"
        "ROOT d = f32[4,5] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "dot",
    ),
    "an order that counts stays": (
        "x = f32[2,3,4] parameter(0)\nw = f32[4,5] parameter(1)\n"
        "t = f32[3,2,4] transpose(x), dimensions={1,0,2}\n"
        "ROOT d = f32[3,2,5] dot(t, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        "transpose dot",
    ),
}


def equal_to_evaluated(text: str, arguments: list[np.ndarray], tolerance: float = 2e-6) -> None:
    got, expected = hlo.compile(text)(*arguments), hlo.evaluate(text, *arguments)
    for mine, theirs in zip(got, expected):
        a, b = mine.to(lamella.float64).numpy(), theirs.to(lamella.float64).numpy()
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        if tolerance == 0:
            assert (np.signbit(a) == np.signbit(b)).all()


def special_arguments(text: str) -> list:
    """NaN, infinities, -0 and the ends of integers, in the shapes of the parameters."""
    made = []
    for parameter in hlo.parse(text).entry.parameters:
        kind, sizes = re.match(r"(\w+)\[([\d,]*)\]", str(parameter.shape)).groups()
        shape = [int(n) for n in sizes.split(",") if n]
        count = int(np.prod(shape))
        if kind == "pred":
            made.append(np.resize(np.array([True, False]), count).reshape(shape))
        elif kind == "s32":
            values = np.array([0, -1, 1, 2**31 - 1, -(2**31), 7], dtype=np.int32)
            made.append(np.resize(values, count).reshape(shape))
        else:
            values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3.5], dtype=np.float32)
            tensor = lamella.tensor(np.resize(values, count).reshape(shape))
            made.append(tensor.to(lamella.bfloat16) if kind == "bf16" else tensor)
    return made


@pytest.mark.parametrize("name", ROWS)
def test_what_is_left(name, tmp_path, monkeypatch):
    body, expected = ROWS[name]
    text = module(body, SUM)
    assert opcodes(after_passes(text, tmp_path, monkeypatch)) == expected
    if "product" not in name and "order" not in name:
        equal_to_evaluated(text, special_arguments(text))


def test_each_pass_is_written_once_it_changes_something(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMELLA_DUMP_HLO", str(tmp_path))
    hlo.compile(module(ONE.format(1) + "m = f32[2,3] multiply(x, b)\nROOT r = f32[2,3] tanh(m)"))
    names = sorted(name.split(".", 1)[1] for name in os.listdir(tmp_path))
    assert names == [
        "m.0.given.hlo",
        "m.3.simplify_elementwise.hlo",
        "m.7.remove_dead_code.hlo",
    ]
    for name in os.listdir(tmp_path):
        hlo.parse((tmp_path / name).read_text())


LOOP = """HloModule m
condition {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  w = f32[8] get-tuple-element(s), index=2
  e = f32[8] exponential(w)
  t = f32[8] tanh(e)
  sum = f32[8] add(x, t)
  ROOT r = (s32[], f32[8], f32[8]) tuple(next, sum, w)
}
ENTRY main {
  zero = s32[] constant(0)
  x = f32[8] parameter(0)
  w = f32[8] parameter(1)
  s = (s32[], f32[8], f32[8]) tuple(zero, x, w)
  l = (s32[], f32[8], f32[8]) while(s), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(l), index=1
}
"""


def test_loop_invariants(tmp_path, monkeypatch):
    text = after_passes(LOOP, tmp_path, monkeypatch)
    assert "tanh" in opcodes(text) and "tanh" not in text[: text.index("ENTRY")]
    random = np.random.default_rng(0)
    x, w = (random.normal(size=8).astype(np.float32) for _ in range(2))
    equal_to_evaluated(LOOP, [x, w])


def attention(batch, heads, queries, keys, width, value_width, mask="", scale=True) -> str:
    """As JAX writes it."""
    s = f"f32[{batch},{heads},{queries},{keys}]"
    r = f"f32[{batch},{heads},{queries}]"
    lines = [
        f"q = f32[{batch},{queries},{heads},{width}] parameter(0)",
        f"k = f32[{batch},{keys},{heads},{width}] parameter(1)",
        f"v = f32[{batch},{keys},{heads},{value_width}] parameter(2)",
        f"d = {s} dot(q, k), lhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, "
        "rhs_batch_dims={0,2}, rhs_contracting_dims={3}",
    ]
    scores = "d"
    if scale:
        lines += [
            "c = f32[] constant(0.25)",
            f"cs = {s} broadcast(c), dimensions={{}}",
            f"ds = {s} multiply(d, cs)",
        ]
        scores = "ds"
    if mask == "rows":
        lines += [
            f"m = f32[{queries},{keys}] parameter(3)",
            f"ms = {s} broadcast(m), dimensions={{2,3}}",
            f"dm = {s} add({scores}, ms)",
        ]
        scores = "dm"
    elif mask == "keys":
        lines += [
            f"m = f32[{batch},{keys}] parameter(3)",
            f"ms = {s} broadcast(m), dimensions={{0,3}}",
            f"dm = {s} add({scores}, ms)",
        ]
        scores = "dm"
    lines += [
        "least = f32[] constant(-inf)",
        f"most = {r} reduce({scores}, least), dimensions={{3}}, to_apply=max_f",
        f"mb = {s} broadcast(most), dimensions={{0,1,2}}",
        f"gap = {s} subtract({scores}, mb)",
        f"e = {s} exponential(gap)",
        "zero = f32[] constant(0)",
        f"total = {r} reduce(e, zero), dimensions={{3}}, to_apply=add_f",
        f"tb = {s} broadcast(total), dimensions={{0,1,2}}",
        f"w = {s} divide(e, tb)",
        f"ROOT o = f32[{batch},{heads},{value_width},{queries}] dot(v, w), lhs_batch_dims={{0,2}}, "
        "lhs_contracting_dims={1}, rhs_batch_dims={0,1}, rhs_contracting_dims={3}",
    ]
    return module("\n".join(lines), SUM + MOST)


@pytest.mark.parametrize("mask", ["", "rows", "keys"])
@pytest.mark.parametrize(
    "sizes", [(2, 3, 4, 5, 8, 6), (1, 2, 7, 9, 4, 4), (1, 1, 3, 4, 2, 2), (2, 2, 1, 6, 3, 3)]
)
def test_attention(sizes, mask, tmp_path, monkeypatch):
    text = attention(*sizes, mask=mask, scale=sizes[0] == 2)
    left = opcodes(after_passes(text, tmp_path, monkeypatch))
    assert "custom-call" in left and "exponential" not in left
    batch, heads, queries, keys, width, value_width = sizes
    random = np.random.default_rng(1)

    def numbers(*shape):
        return random.normal(size=shape).astype(np.float32)

    given = [
        numbers(batch, queries, heads, width),
        numbers(batch, keys, heads, width),
        numbers(batch, keys, heads, value_width),
    ]
    if mask:
        given.append(numbers(queries, keys) if mask == "rows" else numbers(batch, keys))
        given[3].flat[::3] = -np.inf
        if mask == "rows" and queries > 1:
            given[3][1] = -np.inf  # a query that sees no key
    equal_to_evaluated(text, given, 5e-6)


def test_attention_whose_weights_are_read_stays(tmp_path, monkeypatch):
    text = attention(2, 3, 4, 5, 8, 6)
    text = text.replace("ROOT o = ", "o = ")
    o = "f32[2,3,6,4]"
    text = text.rstrip("}\n") + f"\nROOT both = ({o}, f32[2,3,4,5]) tuple(o, w)\n}}\n"
    text = text.replace("rhs_contracting_dims={3\nROOT", "rhs_contracting_dims={3}\nROOT")
    assert "custom-call" not in opcodes(after_passes(text, tmp_path, monkeypatch))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_after_passes(seed, tmp_path, monkeypatch):
    """The passes preserve a program's results, with the evaluator alone."""
    for number in range(40):
        text, arguments = hlo_random_programs.program(1000 * seed + number)
        folder = tmp_path / str(number)
        folder.mkdir()
        changed = after_passes(text, folder, monkeypatch)
        got, expected = hlo.evaluate(changed, *arguments), hlo.evaluate(text, *arguments)
        for mine, theirs in zip(got, expected):
            a, b = mine.to(lamella.float64).numpy(), theirs.to(lamella.float64).numpy()
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=text)
