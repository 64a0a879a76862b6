"""The texts of errors of operators, word for word: the rows of operator_errors.txt."""

import re
from pathlib import Path

import pytest
from operator_cases import error_of, lamella, make, torch

NAMES = {"inf": float("inf"), "nan": float("nan"), "lamella": lamella, "make": make, "torch": torch}
LINES = (Path(__file__).parent / "operator_errors.txt").read_text().splitlines()
ROWS = [
    pytest.param(call, text.strip(), id=call)
    for call, text in zip(LINES, LINES[1:])
    if text.startswith("    ")
]


@pytest.mark.parametrize("call, text", ROWS)
def test_text(call, text):
    if not call.startswith("lamella."):
        call = re.sub(r"([\w.]+)\(", r"error_of('\1', ", call, count=1)
        assert eval(call, {**NAMES, "error_of": error_of}) == text
        return
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as caught:
        eval(call, NAMES)
    assert str(caught.value) == text
