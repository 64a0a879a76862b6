"""HLO text that JAX exports is read, verified, printed unchanged, and reads back."""

from __future__ import annotations

import subprocess

import pytest
from build_tree import BUILD
from jax_programs import programs

pytest.importorskip("jax", reason="JAX exports the texts")


def test_texts_of_jax_are_read_and_printed_as_they_were(tmp_path):
    reader = BUILD / "tests" / "graph" / "hlo_text"
    assert reader.exists(), f"{reader} is not built"
    files = []
    for name, program in programs("functions").items():
        files.append(tmp_path / f"{name}.hlo")
        files[-1].write_text(program.text)
    assert len(files) >= 150
    done = subprocess.run(
        [str(reader), *map(str, files)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(files)
    assert [line for line in lines if not line.endswith(" same")] == []
