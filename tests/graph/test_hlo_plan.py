"""Compiled programs: the effect of the passes, and the plan as a module."""

from __future__ import annotations

import re

import hlo_difference
import hlo_random_programs
import numpy as np
import pytest

import lamella
from lamella import hlo

SUM = "add_f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"

CHAIN = f"""HloModule chain
{SUM}
ENTRY main {{
  x = f32[64,32] parameter(0)
  w = f32[32,16] parameter(1)
  one = f32[] constant(1)
  ones = f32[64,32] broadcast(one), dimensions={{}}
  same = f32[64,32] multiply(x, ones)
  e = f32[64,32] exponential(same)
  again = f32[64,32] exponential(x)
  zero = f32[] constant(0)
  rows = f32[64] reduce(e, zero), dimensions={{1}}, to_apply=add_f
  wide = f32[64,32] broadcast(rows), dimensions={{0}}
  soft = f32[64,32] divide(again, wide)
  y = f32[64,16] dot(soft, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT t = f32[64,16] tanh(y)
}}
"""
STEPS = """HloModule steps
ENTRY main {
  x = f32[1000] parameter(0)
  a = f32[1000] multiply(x, x)
  p = f32[1000] custom-call(a), custom_call_target="aten::special_i1"
  b = f32[1000] add(p, x)
  q = f32[1000] custom-call(b), custom_call_target="aten::special_i1"
  ROOT c = f32[1000] tanh(q)
}
"""


def has_code(program) -> bool:
    return "machine code for" in program.explain()


def test_explain_counts_what_passes_changed():
    explained = hlo.compile(CHAIN).explain()
    assert re.match(r"passes, \d+ instructions became \d+:\n  \w+: \d+ ", explained)
    assert "  simplify_elementwise: 1 elementwise instruction simplified\n" in explained
    assert "  join_common_subexpressions: 1 instruction replaced by an equal one\n" in explained


def test_explain_says_nothing_of_passes_that_changed_nothing():
    explained = hlo.compile(STEPS).explain()
    assert "passes" not in explained and explained.startswith("main:\n")


def test_explain_counts_calls_that_were_replaced():
    text = """HloModule m
twice { a = f32[8] parameter(0) ROOT s = f32[8] add(a, a) }
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] call(x), to_apply=twice
  ROOT z = f32[8] call(y), to_apply=twice
}
"""
    program = hlo.compile(text)
    if has_code(program):
        assert "  inline_calls: 2 calls inlined\n" in program.explain()


def test_plan_has_a_fusion_for_each_loop():
    program = hlo.compile(CHAIN)
    plan = program.plan
    assert plan.name == "chain" and "is_scheduled=true" in str(plan)
    if not has_code(program):
        assert [i.opcode for i in plan.entry.instructions if i.opcode == "fusion"] == []
        return
    (whole,) = (i for i in plan.entry.instructions if i.opcode == "fusion")
    assert whole.attributes["kind"] == "kCustom"
    assert "temporary_bytes=" in whole.attributes["frontend_attributes"]
    inner = whole.attributes["calls"]
    loops = [i for i in inner.instructions if i.opcode == "fusion"]
    assert [i.attributes["kind"] for i in loops] == ["kLoop"] * len(loops)
    assert [i.opcode for i in inner.instructions if i.opcode == "dot"] == ["dot"]


def test_plan_names_memory_that_is_reused():
    program = hlo.compile(STEPS)
    text = str(program.plan)
    if has_code(program):
        # The result replaces the last step's operand in memory; arguments are never overwritten.
        assert text.count("output_to_operand_aliasing={{}: (0, {})}") >= 1
        entry = text[text.index("ENTRY") :]
        first = next(line for line in entry.splitlines() if "fusion(" in line)
        assert "output_to_operand_aliasing" not in first
    order = re.findall(r"= \S+ ([\w-]+)\(", text[text.index("ENTRY") :])
    assert order.count("custom-call") == 2


@pytest.mark.parametrize("text", [CHAIN, STEPS], ids=["chain", "steps"])
def test_plan_does_what_the_program_does(text):
    program = hlo.compile(text)
    shapes = [list(shape.dimensions) for shape in program.input_shapes]
    arrays = [np.random.default_rng(3).random(shape, np.float32) for shape in shapes]
    given = program(*arrays)
    for module in (program.plan, hlo.parse(str(program.plan))):
        for a, b in zip(given, hlo.evaluate(module, *arrays)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        for a, b in zip(given, hlo.compile(module)(*arrays)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_plan_lives_longer_than_its_program():
    plan = hlo.compile(CHAIN).plan
    assert "tanh" in str(plan) and plan.diff(plan) == ""


def test_plan_of_the_oracle_is_the_module():
    from lamella import _hlo

    assert str(_hlo.compile(hlo.parse(STEPS), interpreted=True).plan) == str(hlo.parse(STEPS))


def test_page_shows_memory_and_cost():
    program = hlo.compile(STEPS)
    page = program.plan.to_html()
    assert "<th>peak memory<td>" in page and '"p":' in page
    # Two arrays of 4,000 bytes at once: what a step reads and what it writes.
    peak = re.search(r"<th>peak memory<td>([^<\n]*)", page)[1]
    assert peak in ("4 kB", "8 kB"), peak
    assert "<th>peak memory" not in program.module.to_html()


LOOP = """HloModule loop, is_scheduled=true
body {
  s = (s32[], f32[100]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[100] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  a = f32[100] multiply(v, v)
  b = f32[100] add(a, v)
  ROOT t = (s32[], f32[100]) tuple(m, b)
}
condition {
  s = (s32[], f32[100]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  most = s32[] constant(3)
  ROOT c = pred[] compare(n, most), direction=LT
}
ENTRY main {
  v = f32[100] parameter(0)
  zero = s32[] constant(0)
  w = f32[100] negate(v)
  s = (s32[], f32[100]) tuple(zero, w)
  l = (s32[], f32[100]) while(s), condition=condition, body=body
  ROOT r = f32[100] get-tuple-element(l), index=1
}
"""


def test_peak_counts_what_a_loop_needs():
    # The state, which is w and a number, and in the body m, a and b.
    page = hlo.parse(LOOP).to_html()
    assert re.search(r"<th>peak memory<td>([^<\n]*)", page)[1] == "1.21 kB"


@pytest.mark.parametrize("seed", range(4))
def test_plans_of_random_programs_say_the_same(seed):
    for number in range(10):
        text, arguments = hlo_random_programs.program(1000 * seed + number)
        plan = hlo.compile(text).plan
        assert str(hlo.parse(str(plan))) == str(plan)
        wrong = hlo_difference.between(
            hlo.evaluate(plan, *arguments), hlo.evaluate(text, *arguments)
        )
        assert wrong is None, f"{wrong}\n{text}\n{plan}"


def test_compile_says_what_became_of_a_function(capsys):
    def function(x):
        return (x.reshape(3, 4).reshape(12) * 1.5).exp()

    compiled = lamella.compile(function, explain=True)
    compiled(lamella.ones(12))
    said = capsys.readouterr().err
    assert said.startswith("compile: ") and "function was compiled: forward of " in said
    assert "\nforward:\npasses, " in said and "  simplify_movement: " in said
    # The explanation has a line for each program, and all of that where it is asked for.
    assert compiled.explanation().count("\n") == 0
    assert "passes, " in compiled.explanation(steps=True)
    (plan,) = compiled.programs(planned=True)
    assert "is_scheduled=true" in str(plan) and "exponential" in str(plan)
    assert "is_scheduled" not in str(compiled.programs()[0])


def test_what_repeats_is_calculated_where_it_is_read():
    text = """HloModule repeats
ENTRY main {
  x = f32[40,50] parameter(0)
  row = f32[50] parameter(1)
  half = f32[50] negate(row)
  wide = f32[40,50] broadcast(half), dimensions={1}
  root = f32[40,50] sine(wide)
  a = f32[40,50] multiply(x, root)
  p = f32[40,50] custom-call(a), custom_call_target="aten::special_i1"
  b = f32[40,50] add(p, root)
  q = f32[40,50] custom-call(b), custom_call_target="aten::special_i1"
  ROOT c = (f32[40,50], f32[40,50]) tuple(q, root)
}
"""
    inside = text.replace(
        "ROOT c = (f32[40,50], f32[40,50]) tuple(q, root)", "ROOT c = f32[40,50] subtract(q, root)"
    )
    x = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    row = np.linspace(-2, 2, 50, dtype=np.float32)
    for one in (text, inside):
        program = hlo.compile(one)
        got = program(lamella.tensor(x), lamella.tensor(row))
        expected = hlo.evaluate(one, lamella.tensor(x), lamella.tensor(row))
        for mine, right in zip(got, expected):
            np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=2e-5, atol=1e-6)
    explained = hlo.compile(inside).explain()
    if "there is no compiler" not in explained:
        loops = [line for line in explained.splitlines() if "loop over" in line]
        assert not any("root" in line or "wide" in line for line in loops), explained
