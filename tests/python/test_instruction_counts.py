"""The dispatch rows in instructions, which do not depend on the machine's load."""

from __future__ import annotations

import importlib.util
import shutil

import pytest
from build_tree import BUILD, ROOT

PROGRAM = BUILD / "bench" / "bench_dispatch"

# Instructions of one call over a direct call of the same function; g++ 12, -O2.
LIMITS = {"typed": 72, "boxed": 132, "into_boxed": 130}
LAYER_LIMIT = 62  # one more layer that redispatches, over a typed call


@pytest.fixture(scope="module")
def counts() -> dict[str, float]:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    spec = importlib.util.spec_from_file_location("count", ROOT / "tools" / "count_instructions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = ("direct", "typed", "boxed", "into_boxed", "layer")
    return {row: module.instructions_per_call(PROGRAM, row) for row in rows}


@pytest.mark.parametrize("row", sorted(LIMITS))
def test_a_call_stays_short(counts: dict[str, float], row: str) -> None:
    assert counts[row] - counts["direct"] <= LIMITS[row]


def test_a_layer_stays_thin(counts: dict[str, float]) -> None:
    assert counts["layer"] - counts["typed"] <= LAYER_LIMIT
