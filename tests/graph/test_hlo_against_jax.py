"""JAX functions, exported as HLO text and run by the evaluator, give JAX's results."""

from __future__ import annotations

import itertools

import jax_function_families
import numpy as np
import pytest
from jax_programs import QUICKLY, TABLES, Program, programs, raw

lamella = pytest.importorskip("lamella")
jax = pytest.importorskip("jax", reason="JAX is the oracle")

# How far a number may lie from JAX's: in parts of the largest of its array, or of 1. XLA's own
# approximations of functions of f32 are a few units in the last place away from the true value, and
# a chain of them more. Integers and booleans are equal.
TOLERANCES = {
    "bfloat16": 2e-2,
    "float16": 4e-3,
    "float32": 5e-5,
    "complex64": 5e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}


def as_array(value: object) -> np.ndarray:
    """In a type that NumPy can calculate with."""
    if isinstance(value, lamella.Tensor):
        return (value.float() if value.dtype == lamella.bfloat16 else value).numpy()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def difference(program: Program, expected: list[np.ndarray]) -> str | None:
    """The difference between results; None if all are equal."""
    try:
        module = lamella.hlo.parse(program.text)
        printed = str(module)
        if str(lamella.hlo.parse(printed)) != printed:
            return "expected the printed module to read back as it was"
        got = lamella.hlo.evaluate(module, *program.given)
    except RuntimeError as error:
        return str(error)
    if len(got) != len(expected):
        return f"expected {len(expected)} results, got {len(got)}"
    for n, (tensor, wanted) in enumerate(zip(got, expected)):
        kind = wanted.dtype.name
        mine, theirs = as_array(tensor), as_array(wanted)
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"result {n}: expected {wanted.dtype}{theirs.shape}, got {mine.dtype}"
        if kind not in TOLERANCES:
            if not np.array_equal(mine, theirs):
                return f"result {n}: expected {theirs}, got {mine}"
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        size = max(1.0, float(finite.max())) if finite.size else 1.0
        bound = TOLERANCES[kind] * size
        if not np.allclose(mine, theirs, rtol=0, atol=bound, equal_nan=True):
            return f"result {n}: expected {theirs}, got {mine}"
    return None


def results_of_jax(rows: list[Program]) -> list[list[np.ndarray]]:
    """The results of all functions, compiled as one program because compilation dominates the
    time."""

    def run(arguments: list[tuple]) -> list:
        return [row.function(*given) for row, given in zip(rows, arguments)]

    arguments = [row.arguments for row in rows]
    results = jax.jit(run).lower(arguments).compile(compiler_options=QUICKLY)(arguments)
    return [[raw(leaf) for leaf in jax.tree.leaves(one)] for one in results]


def differences(table: dict[str, Program]) -> str:
    found = []
    rest = iter(table)
    while names := list(itertools.islice(rest, 25)):
        expected = results_of_jax([table[name] for name in names])
        for name, wanted in zip(names, expected):
            wrong = difference(table[name], wanted)
            if wrong is not None:
                found.append(f"{name}: {wrong}")
    return "\n".join(found)


@pytest.mark.parametrize("table", TABLES)
def test_functions_give_what_jax_gives(table):
    assert differences(programs(table)) == ""


def test_functions_of_64_bits_give_what_jax_gives():
    with jax.enable_x64(True):
        rows = jax_function_families.typed().items()
        table = {name: Program(*row) for name, row in rows if "64" in name}
        assert len(table) > 100
        assert differences(table) == ""
