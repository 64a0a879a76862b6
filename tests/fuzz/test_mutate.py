"""A bounded run of the mutated files, with a fixed seed."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutate.py")


TARGETS = ["SafeTensors", "TracedGraph", "Array", "Bundle", "Program", "Text"]


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_files_are_read_or_refused(target, tmp_path):
    command = [sys.executable, str(SCRIPT), "--seed", "7", "--runs", "2000", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{target}: 2000 inputs of seed 7, no findings\n"
