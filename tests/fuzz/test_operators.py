"""A bounded run of the fuzzer with a fixed seed, which is reproducible."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "operators.py"


def fuzz(*arguments):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--jobs", "1", *arguments],
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_hostile_arguments():
    fuzz("--seed", "0", "--calls", "2", "--no-leaks")


def test_dtypes_devices_and_extremes():
    fuzz("--seed", "0", "--calls", "32", "--no-leaks", "--sweep")


@pytest.mark.parametrize("layer", ["autograd", "vmap", "functionalize", "trace"])
def test_hostile_arguments_in_layers(layer):
    fuzz("--seed", "0", "--calls", "1", "--no-leaks", "--layer", layer)


def test_leaks():
    fuzz("--seed", "0", "--calls", "8", "--match", "aten::(add|conv2d|cat|index|sort|mm)")


def test_valid_calls_beside_pytorch():
    pytest.importorskip("torch")
    fuzz("--seed", "0", "--calls", "2", "--compare")


def test_known_differences_are_needed():
    pytest.importorskip("torch")
    fuzz("--known")


def test_the_same_twice():
    arguments = ["--seed", "1", "--calls", "6", "--match", "aten::(div|sum|bernoulli)", "--digest"]
    assert fuzz(*arguments) == fuzz(*arguments)
