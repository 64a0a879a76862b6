"""Compiled programs give the same bits for any number of threads."""

from __future__ import annotations

import hlo_random_programs
import numpy as np
import pytest
from jax_programs import TABLES, programs

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
from hlo_difference import same_bits  # noqa: E402


@pytest.fixture(autouse=True)
def threads():
    before = lamella.get_num_threads()
    yield
    lamella.set_num_threads(before)


def is_the_same(text, arguments) -> bool:
    program = hlo.compile(text)
    results = []
    for count in (1, 2, 3, 8):
        lamella.set_num_threads(count)
        results.append(program(*arguments))
    return all(same_bits(results[0], one) for one in results[1:])


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_random_programs(first):
    for seed in range(first, first + 8):
        text, arguments = hlo_random_programs.program(seed, large=True)
        assert is_the_same(text, arguments), f"seed {seed}\n{text}"


@pytest.mark.parametrize("table", TABLES)
def test_functions_of_jax(table):
    pytest.importorskip("jax", reason="JAX writes the programs")
    for name, program in programs(table).items():
        assert is_the_same(program.text, program.given), name


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
