"""JAX functions as HLO programs with arguments, lowered once for all tests of a process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax_function_families
import jax_functions
import numpy as np

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
