"""Runs a program on several ranks under mpirun, for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lamella.distributed

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("LAMELLA_BUILD", HERE.parents[1] / "build")).resolve()

needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or not lamella.distributed.is_available(),
    reason="MPI is not installed",
)


class Job:
    """mpirun with its ranks, in a session of its own. It ends with the process that began it."""

    def __init__(self, ranks: int, program: str, *args: object, **environment: str) -> None:
        command = [
            "setpriv",
            "--pdeathsig",
            "TERM",
            "mpirun",
            "-n",
            str(ranks),
            "--oversubscribe",
            "--mca",
            "mpi_yield_when_idle",
            "1",
        ]
        # Ranks that are told to end have 2 s for their last words, on a machine that is busy.
        command += ["--mca", "odls_base_sigkill_timeout", "2"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--allow-run-as-root")
        self.process = subprocess.Popen(
            [*command, sys.executable, str(HERE / program), *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "LAMELLA_NUM_THREADS": "1", **environment},
            start_new_session=True,
        )

    def read_line(self, begins: str) -> str:
        """The next line that begins so."""
        for line in self.process.stdout:
            if line.startswith(begins):
                return line
        raise AssertionError(f"the job ended without a line {begins!r}")

    def end(self) -> None:
        """Has mpirun end its ranks, which are not in its process group."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)

    def __del__(self) -> None:
        if self.process.poll() is None:
            self.end()

    def finish(self, timeout: float = 240) -> tuple[int, str]:
        """The exit status and the output since the last call."""
        try:
            output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.end()
            output, _ = self.process.communicate()
            raise AssertionError(f"the job did not end:\n{output[-4000:]}") from None
        return self.process.returncode, output


def run_ranks(ranks: int, program: str, *args: object, **environment: str) -> str:
    """The output of a program, which must succeed."""
    status, output = Job(ranks, program, *args, **environment).finish()
    assert status == 0, output[-6000:]
    return output


def seconds_to_end(job: Job) -> tuple[float, str]:
    """How long a job takes to end from now on."""
    begin = time.monotonic()
    status, output = job.finish(60)
    assert status != 0, output
    return time.monotonic() - begin, output
