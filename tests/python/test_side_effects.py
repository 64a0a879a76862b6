"""The tag side_effect: calls with effects beyond their results are kept, in order."""

from __future__ import annotations

import pytest

import lamella


@pytest.fixture
def said():
    """The numbers that calls of the operator effects::say(x, n) said."""
    words: list[int] = []

    def say(x, n):
        words.append(n)
        return x * 2

    library = lamella.library.Library("effects", "DEF")
    library.define("say(Tensor x, int n) -> Tensor", tags="side_effect")
    library.impl("say", say, "CPU")
    library.impl("say", lambda x, n: lamella.empty_like(x), "Meta")

    yield words
    library._destroy()


def test_a_trace_keeps_calls_that_nobody_reads(said):
    def f(x):
        lamella.ops.effects.say(x, 1)
        lamella.ops.effects.say(lamella.ones(2), 2)
        lamella.exp(x)
        return x + 1

    graph = lamella.trace(f, lamella.ones(2))
    graph.eliminate_dead_code()
    assert graph.operators() == {"effects::say": 2, "aten::ones": 1, "aten::add.Scalar": 1}
    said.clear()
    assert graph(lamella.ones(2)).tolist() == [2.0, 2.0]
    assert said == [1, 2]


def test_a_program_keeps_calls_and_their_order(said):
    def f(x):
        lamella.ops.effects.say(x, 3)
        y = lamella.ops.effects.say(x, 1)
        lamella.ops.effects.say(x, 3)
        return y + lamella.ops.effects.say(x, 1)

    compiled = lamella.compile(f, fullgraph=True)
    compiled(lamella.ones(2))
    said.clear()
    assert compiled(lamella.ones(2)).tolist() == [4.0, 4.0]
    assert said == [3, 1, 3, 1]


def test_hlo_says_that_a_call_has_effects(said):
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] custom-call(x), custom_call_target="effects::say", backend_config="(1)"
}"""
    expected = "expected custom_call_has_side_effect=true, because effects::say has the tag"
    with pytest.raises(RuntimeError, match=expected):
        lamella.hlo.compile(text)(lamella.ones(2))
