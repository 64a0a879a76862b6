"""What compiled programs say of themselves."""

from __future__ import annotations

import re

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
  p = f32[1000] reduce-precision(a), exponent_bits=5, mantissa_bits=10
  b = f32[1000] add(p, x)
  q = f32[1000] reduce-precision(b), exponent_bits=5, mantissa_bits=10
  ROOT c = f32[1000] tanh(q)
}
"""


def has_code(program) -> bool:
    return "machine code for" in program.explain()


def test_explain_counts_what_passes_changed():
    explained = hlo.compile(CHAIN).explain()
    assert re.match(r"passes, \d+ instructions became \d+:\n  \w+: \d+ ", explained)
    assert "  simplify_elementwise: 1 elementwise instruction made simpler\n" in explained
    assert (
        "  join_common_subexpressions: 1 instruction left out, as an equal one is there\n"
        in explained
    )


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
        assert "  inline_calls: 2 calls replaced by what is called\n" in program.explain()
