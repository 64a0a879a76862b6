"""JAX functions, exported as HLO text and run by the evaluator, give JAX's results."""

from __future__ import annotations

import jax_function_families
import pytest
from jax_programs import TABLES, Program, differences, programs

jax = pytest.importorskip("jax", reason="JAX is the oracle")


@pytest.mark.parametrize("table", TABLES)
def test_functions_give_what_jax_gives(table):
    assert differences(programs(table)) == ""


def test_functions_of_64_bits_give_what_jax_gives():
    with jax.enable_x64(True):
        rows = jax_function_families.typed().items()
        table = {name: Program(*row) for name, row in rows if "64" in name}
        assert len(table) > 100
        assert differences(table) == ""
