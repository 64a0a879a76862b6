"""JAX functions as HLO programs with arguments, lowered once for all tests of a process."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax_function_families
import jax_functions
import numpy as np

import lamella

TABLES = {
    "functions": jax_functions.functions,
    "structured": jax_function_families.structured,
    "moved": jax_function_families.moved,
    "typed": jax_function_families.typed,
}
# The programs are small: compiling them is what takes time.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def raw(value: Any) -> np.ndarray:
    """An array of JAX's for NumPy; keys of random numbers as the integers that they are."""
    import jax

    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


class Program:
    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        import jax

        self.function, self.arguments = function, arguments
        self.lowered = jax.jit(function).lower(*arguments)

    @functools.cached_property
    def text(self) -> str:
        return self.lowered.as_text("hlo")

    @property
    def given(self) -> list[np.ndarray]:
        """The arguments of the program: those that the function does not read are not passed."""
        import jax

        leaves = jax.tree.leaves(self.arguments)
        return [raw(leaves[n]) for n in sorted(self.lowered._lowering.compile_args["kept_var_idx"])]


@functools.cache
def programs(table: str) -> dict[str, Program]:
    """By name, the programs of one of TABLES."""
    return {name: Program(*row) for name, row in TABLES[table]().items()}


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


def difference(program: Any, expected: list[np.ndarray]) -> str | None:
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


def results_of_jax(rows: list[Any]) -> list[list[np.ndarray]]:
    """The results of all functions, compiled as one program because compilation dominates the
    time."""
    import jax

    def run(arguments: list[tuple]) -> list:
        return [row.function(*given) for row, given in zip(rows, arguments)]

    arguments = [row.arguments for row in rows]
    results = jax.jit(run).lower(arguments).compile(compiler_options=QUICKLY)(arguments)
    return [[raw(leaf) for leaf in jax.tree.leaves(one)] for one in results]


def differences(table: dict[str, Any]) -> str:
    found = []
    rest = iter(table)
    while names := list(itertools.islice(rest, 25)):
        expected = results_of_jax([table[name] for name in names])
        for name, wanted in zip(names, expected):
            wrong = difference(table[name], wanted)
            if wrong is not None:
                found.append(f"{name}: {wrong}")
    return "\n".join(found)
