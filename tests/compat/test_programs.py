"""Unmodified programs for PyTorch, run with `python -m lamella.compat`: their output equals that
with PyTorch, numbers within a tolerance."""

import math
import os
import pathlib
import re
import subprocess
import sys

import pytest
from torch_programs import printed_by_torch

pytest.importorskip("torch")

PROGRAMS = pathlib.Path(__file__).parent / "programs"
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)(?![\w])")


def printed_by_lamella(program, *arguments, folder):
    command = [sys.executable, "-W", "ignore", "-m", "lamella.compat"]
    done = subprocess.run(
        [*command, str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env=dict(os.environ, OMP_NUM_THREADS="1", LAMELLA_NUM_THREADS="1"),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def near(ours, theirs, tolerance):
    """Whether two texts of numbers are the same within a relative tolerance."""
    a, b = float(ours), float(theirs)
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * (1 + abs(b))


def same(ours, theirs, tolerance=2e-5):
    """Fails at the first line that differs by more than the last digits of its numbers."""
    # The digits tell PyTorch's overloads apart: MeanBackward1.
    ours, theirs = (re.sub(r"Backward\d", "Backward", text) for text in (ours, theirs))
    ours, theirs = ours.splitlines(), theirs.splitlines()
    for number, (left, right) in enumerate(zip(ours, theirs), 1):
        found, wanted = NUMBER.findall(left), NUMBER.findall(right)
        alike = NUMBER.sub("#", left) == NUMBER.sub("#", right) and len(found) == len(wanted)
        if not alike or not all(near(a, b, tolerance) for a, b in zip(found, wanted)):
            raise AssertionError(f"line {number}: expected\n  {right}\ngot\n  {left}")
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.stem)
def test_program(program, tmp_path):
    theirs = printed_by_torch(program, folder=tmp_path)
    assert theirs.count("\n") > 3
    same(printed_by_lamella(program, folder=tmp_path), theirs)


def test_programs_that_fail_or_hang_are_reported(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('first')\nsys.exit('so it ends')\n")
    with pytest.raises(AssertionError) as error:
        printed_by_torch(program, folder=tmp_path)
    assert "first\nso it ends" in str(error.value)
    program.write_text("import time\ntime.sleep(100)\n")
    with pytest.raises(AssertionError, match="program.py did not end within 0.1 s"):
        printed_by_torch(program, folder=tmp_path, seconds=0.1)
    program.write_text("import torch\nprint(torch.ones(2))\n")
    assert printed_by_torch(program, folder=tmp_path) == "tensor([1., 1.])\n"


def test_comparison_sees_differences():
    same("a 1.0000001 [2]", "a 1.0 [2]")
    for ours in ("a 1.01 [2]", "b 1.0 [2]", "a 1.0 [2, 3]", "a nan [2]"):
        with pytest.raises(AssertionError):
            same(ours, "a 1.0 [2]")
