"""What JAX exports as HLO text is read, verified, printed as it was, and reads back."""

from __future__ import annotations

import subprocess

import pytest
from build_tree import BUILD
from jax_functions import functions

jax = pytest.importorskip("jax", reason="JAX exports the texts")


def test_texts_of_jax_are_read_and_printed_as_they_were(tmp_path):
    program = BUILD / "tests" / "graph" / "hlo_text"
    assert program.exists(), f"{program} is not built"
    files = []
    for name, (function, arguments) in functions().items():
        text = jax.jit(function).lower(*arguments).as_text("hlo")
        files.append(tmp_path / f"{name}.hlo")
        files[-1].write_text(text)
    assert len(files) >= 150
    done = subprocess.run(
        [str(program), *map(str, files)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(files)
    assert [line for line in lines if not line.endswith(" same")] == []
