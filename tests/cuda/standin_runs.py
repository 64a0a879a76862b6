"""Runs Python programs in processes that have the stand-in for CUDA's driver."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

STANDIN = pathlib.Path(__file__).parents[2] / "build" / "tests" / "cuda" / "libcuda_standin.so"


def run(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Python with arguments, on the stand-in, with environment variables."""
    environment = {**os.environ, "LAMELLA_CUDA_DRIVER": str(STANDIN), **variables}
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=180
    )


def printed(program: str, **variables: str) -> str:
    """What a program printed; it must succeed."""
    done = run(["-c", program], **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def error(program: str, **variables: str) -> str:
    """The last line of the error that ended a program."""
    done = run(["-c", program], **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.strip().splitlines()[-1]
