"""Gradients of every differentiable operator against finite differences, without PyTorch."""

import re
from pathlib import Path

import pytest
from operator_rows import ROWS, WITHOUT_ROW

import lamella
from lamella.autograd import gradcheck, gradgradcheck

CASES = [(row, dtype) for row in ROWS for dtype in row.dtypes]
IDS = [f"{i}-{row.path}-{dtype}" for i, (row, dtype) in enumerate(CASES)]


@pytest.mark.parametrize("row, dtype", CASES, ids=IDS)
def test_row(row, dtype):
    function, inputs = row.call(dtype)
    assert inputs
    assert gradcheck(function, inputs, check_forward_ad=row.forward)
    if row.second:
        assert gradgradcheck(function, inputs, fast_mode=True)


def test_in_place():
    x = lamella.tensor([[0.5, -1.5], [2.5, 0.25]], dtype=lamella.float64, requires_grad=True)
    value = lamella.tensor(1.5, dtype=lamella.float64, requires_grad=True)

    def written(x, value):
        y = x * 1
        y[0].mul_(value)
        y.t_().transpose_(0, 1)
        y[1, 1].fill_(value)
        y[0, 0].zero_()
        return y.exp_() * y.sigmoid()

    assert gradcheck(written, (x, value))


def entries():
    """The names of ops/derivatives.yaml, and whether an entry gives any gradient."""
    path = Path(__file__).resolve().parents[2] / "ops" / "derivatives.yaml"
    for block in re.split(r"^- name: ", path.read_text(), flags=re.MULTILINE)[1:]:
        name = re.match(r"\w+", block).group(0)
        body = [line.strip() for line in block.splitlines()[1:] if line.startswith("  ")]
        formulas = [
            line for line in body if line and not line.startswith(("#", "result", "output_"))
        ]
        values = [line.partition(":")[2].strip() for line in formulas]
        nothing = re.compile(r"non_differentiable|zeros_like\(\w+\)")
        yield name, not all(nothing.fullmatch(value) for value in values)


def test_every_differentiable_operator_has_a_row():
    covered = set(WITHOUT_ROW)
    for row in ROWS:
        for name in row.covers:
            covered |= {name, f"special_{name}", f"linalg_{name}"}
    missing = {
        name
        for name, has_gradient in entries()
        if has_gradient and not name.endswith(("_backward", "_backward_data"))
    } - covered
    assert not missing, f"add a row to operator_rows.py: {sorted(missing)}"
