"""Eager, compiled and evaluated results are one answer, at special values: see one_answer.py."""

from __future__ import annotations

import pathlib
import sys

import pytest

pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

one_answer = pytest.importorskip("one_answer")


@pytest.mark.parametrize("dtype", one_answer.FLOATS)
def test_operators(dtype):
    assert list(one_answer.operators(1, (dtype,))) == []


@pytest.mark.parametrize("seed", range(6))
def test_opcodes(seed):
    assert list(one_answer.opcodes(seed)) == []
