"""A bounded run of objects.py with a fixed seed; `make fuzz` runs it with new ones."""

import subprocess
import sys
from pathlib import Path


def test_objects_that_lie():
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("objects.py")),
            "--calls",
            "12",
            "--seed",
            "1",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    functions, _, rest = done.stdout.splitlines()[-1].partition(
        " functions, 12 calls each, seed 1, "
    )
    assert int(functions) >= 1300 and rest.endswith(" 0 findings")
