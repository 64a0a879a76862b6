"""Instructions of one dispatched call, counted by valgrind's callgrind.

Usage: count_instructions.py PROGRAM ROW...    where `PROGRAM count ROW N` makes N calls.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def _total(program: Path, row: str, calls: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={folder}/out",
                str(program.resolve()),
                "count",
                row,
                str(calls),
            ],  # fmt: skip
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"callgrind printed no count:\n{done.stderr[-1000:]}")
    return int(found.group(1))


def instructions_per_call(program: Path, row: str) -> float | None:
    """The difference of two runs, so that start-up does not count. None without valgrind."""
    if shutil.which("valgrind") is None:
        return None
    few, many = 1_000, 11_000
    return (_total(program, row, many) - _total(program, row, few)) / (many - few)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(name, instructions_per_call(Path(sys.argv[1]), name))
