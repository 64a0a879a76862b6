"""Compiled programs give the same bits for any number of threads; test_hlo_executor.py has those of
JAX."""

from __future__ import annotations

import hlo_random_programs
import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
from hlo_difference import for_numbers_of_threads, same_bits  # noqa: E402


def is_the_same(text, arguments) -> bool:
    first, *others = for_numbers_of_threads(hlo.compile(text), arguments)
    return all(same_bits(first, one) for one in others)


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_random_programs(first):
    for seed in range(first, first + 8):
        text, arguments = hlo_random_programs.program(seed, large=True)
        assert is_the_same(text, arguments), f"seed {seed}\n{text}"


def test_sums_of_many_elements():
    text = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[1000,1037] parameter(0)
  t = f32[1000,1037] exponential(x)
  zero = f32[] constant(0)
  all = f32[] reduce(t, zero), dimensions={0,1}, to_apply=add
  rows = f32[1000] reduce(t, zero), dimensions={1}, to_apply=add
  columns = f32[1037] reduce(t, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[], f32[1000], f32[1037]) tuple(all, rows, columns)
}
"""
    assert is_the_same(
        text, [np.random.default_rng(0).normal(size=(1000, 1037)).astype(np.float32)]
    )


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_subnormals_are_zeros_on_every_thread_where_asked(element):
    n = 300_000
    text = f"""HloModule m
ENTRY e {{
  x = {element}[{n}] parameter(0)
  y = {element}[{n}] parameter(1)
  ROOT r = {element}[{n}] multiply(x, y)
}}
"""
    kind = np.float32 if element == "f32" else np.float64
    tiny = np.finfo(kind).tiny
    ones = np.ones(n, kind)
    for x, y, exact in ((tiny / 4, 1, tiny / 4), (tiny, 0.25, tiny / 4), (tiny / 4, 8, 2 * tiny)):
        for flush, want in ((True, 0), (False, exact)):
            program = hlo.compile(text, flush_subnormals=flush)
            for got in for_numbers_of_threads(program, [ones * kind(x), ones * kind(y)]):
                assert np.unique(got[0].numpy()).tolist() == [want]
    assert kind(tiny) * kind(0.25) != 0  # the caller's mode is as before
