"""Runs Python programs in processes that have the stand-in for CUDA's driver."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

BUILT = pathlib.Path(__file__).parents[2] / "build" / "tests" / "cuda"
STANDIN = BUILT / "libcuda_standin.so"
DEFAULTS = {
    "LAMELLA_CUDA_DRIVER": str(STANDIN),
    "LAMELLA_CUDA_LIBRARIES": str(BUILT / "libcuda_standin_libraries.so"),
}


def run(
    arguments: list[str], timeout: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Python with arguments, on the stand-in, with environment variables."""
    environment = {**os.environ, **DEFAULTS, **variables}
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
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
