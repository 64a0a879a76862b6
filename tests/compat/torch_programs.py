"""Runs programs with PyTorch, each in a fork of a process that has imported PyTorch, because the
import takes longer than most programs."""

from __future__ import annotations

import atexit
import functools
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

# Reads a job a line, and answers with the status that its process ended with. A child leaves the
# loop as a program ends, with what it registered for its end.
SERVER = """
import json, os, runpy, sys
import torch
for line in sys.stdin:
    arguments, folder, path, output, errors = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate([os.devnull, output, errors]):
            os.dup2(os.open(name, os.O_RDWR), number)
        sys.stdin = open(os.devnull)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = path
        sys.path[:1] = [os.path.dirname(arguments[0]), *filter(None, path.split(os.pathsep))]
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        sys.exit()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@functools.cache
def server() -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=""),
        start_new_session=True,
    )
    atexit.register(started.communicate)  # closes its input, which ends it
    return started


def printed_by_torch(
    program: pathlib.Path, *arguments: object, folder: pathlib.Path, seconds: float = 300
) -> str:
    """The output of a program, which must succeed; `folder` is its working directory."""
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
        path = os.environ.get("PYTHONPATH", "")
        words = [str(program), *map(str, arguments)]
        job = [words, str(folder), path, output.name, errors.name]
        assert server().stdin is not None and server().stdout is not None
        server().stdin.write(json.dumps(job) + "\n")
        server().stdin.flush()
        if not select.select([server().stdout], [], [], seconds)[0]:
            os.killpg(server().pid, signal.SIGKILL)
            server.cache_clear()
            raise AssertionError(f"{program.name} did not end within {seconds} s")
        status = server().stdout.readline().strip()
        text = output.read()
        assert status == "0", text[-2000:] + errors.read()[-4000:]
        return text
