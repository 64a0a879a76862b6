"""lamella.hlo: modules read and run from Python, with arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lamella

IDENTITY = """HloModule m
ENTRY main {
  p0 = f32[2,3] parameter(0)
  p1 = s32[] parameter(1)
  ROOT t = (f32[2,3], s32[], f32[2,3]) tuple(p0, p1, p0)
}
"""


def one(element, dimensions="3"):
    return f"HloModule m\nENTRY main {{\n  ROOT p = {element}[{dimensions}] parameter(0)\n}}\n"


def test_the_package_loads_hlo_only_when_it_is_asked_for():
    code = (
        "import sys, lamella\n"
        "assert 'lamella._hlo' not in sys.modules\n"
        "lamella.hlo.parse\n"
        "assert 'lamella._hlo' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_runs_and_gives_a_list_of_tensors():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = lamella.hlo.evaluate(IDENTITY, x, 3)
    assert [type(r) for r in results] == [lamella.Tensor] * 3
    np.testing.assert_array_equal(results[0].numpy(), x)
    assert results[1].dtype == lamella.int32 and results[1].item() == 3


def test_results_are_memory_of_their_own():
    x = lamella.ones(2, 3)
    first, _, second = lamella.hlo.evaluate(IDENTITY, x, 3)
    first.zero_()
    assert x.sum().item() == 6 and second.sum().item() == 6


@pytest.mark.parametrize(
    "arguments, text",
    [
        (lambda x: (x,), "evaluate: expected 2 arguments for 'main', got 1"),
        (
            lambda x: (x.astype(np.float64), 3),
            "evaluate: expected argument 0 ('p0') to be f32[2,3], got f64[2,3]",
        ),
        (
            lambda x: (x.T, 3),
            "evaluate: expected argument 0 ('p0') to be f32[2,3], got f32[3,2]",
        ),
        (
            lambda x: (x, 3.5),
            "evaluate: expected argument 1 ('p1') to be s32[], got a number (float)",
        ),
        (lambda x: (x, "a"), "evaluate: expected argument 1 ('p1') to be s32[], got str"),
        (
            lambda x: (lamella.ones(2, 3, requires_grad=True), 3),
            "evaluate: expected a tensor that does not require grad, got one that does, whose "
            "gradient would be lost; use detach() or no_grad()",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, text):
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.evaluate(IDENTITY, *arguments(np.ones((2, 3), np.float32)))
    assert str(error.value) == text
