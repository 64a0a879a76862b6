"""A bounded run of reads.py with a fixed seed; `make fuzz` runs it with new ones."""

import subprocess
import sys
from pathlib import Path


def test_programs_that_read_random_state():
    command = [sys.executable, str(Path(__file__).with_name("reads.py")), "--count", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    count, _, uncompiled = done.stdout.partition(" programs, 0 wrong, ")
    assert count == "300" and int(uncompiled.split()[0]) < 30, done.stdout
