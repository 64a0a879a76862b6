"""torch.distributed.run: starts a program in several processes, which init_process_group() joins.

python -m lamella.compat -m torch.distributed.run --nproc-per-node 2 program.py ARGUMENT...

It is torchrun on one machine, without restarts: if a process fails, the others are terminated.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

# Options for several machines and for restarts, each with a value; they are ignored.
_TAKEN = (
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "role",
    "monitor-interval",
    "start-method",
    "log-dir",
    "redirects",
    "tee",
    "local-addr",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torch.distributed.run", description=__doc__, allow_abbrev=False
    )

    def option(name: str, **more: object) -> None:
        both = dict.fromkeys(["--" + name, "--" + name.replace("-", "_")])
        parser.add_argument(*both, **more)  # type: ignore[arg-type]

    option("nproc-per-node", default="1", help="processes, or cpu or auto: one for each core")
    option("nnodes", default="1", help="machines; 1 or 1:1")
    option("node-rank", type=int, default=0, help="this machine's number; 0")
    option("master-addr", default="127.0.0.1", help="where the processes meet")
    option("master-port", type=int, default=0, help="at which port; a free one without it")
    option("max-restarts", type=int, default=0, help="0")
    option("standalone", action="store_true", help="as without it")
    option("use-env", action="store_true", help="as without it")
    option("module", action="store_true", help="the program is a module's name")
    parser.add_argument("-m", action="store_true", dest="module", help="--module")
    option("no-python", action="store_true", help="the program is started as it is")
    for name in _TAKEN:
        option(name, help="taken, without effect")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _count(text: str) -> int:
    if text in ("cpu", "auto"):
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) == 0:
        raise SystemExit(
            "torch.distributed.run: expected --nproc-per-node to be a number, cpu or auto, got "
            + text
        )
    return int(text)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main(args: Sequence[str] | None = None) -> None:
    """Runs the program; ends with exit status 1 if a process failed."""
    given = _parser().parse_args(args)
    if given.nnodes not in ("1", "1:1") or given.node_rank != 0:
        raise SystemExit(
            "torch.distributed.run: expected one machine; start ranks on several with mpirun"
        )
    if given.max_restarts != 0:
        raise SystemExit("torch.distributed.run: expected --max-restarts to be 0")
    count = _count(given.nproc_per_node)
    command = [given.program, *given.arguments]
    if not given.no_python:
        command = [sys.executable, "-u", "-m", "lamella.compat", *["-m"] * given.module, *command]
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": given.master_addr,
        "MASTER_PORT": str(given.master_port or _free_port()),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_WORLD_SIZE": str(count),
        "ROLE_NAME": given.role or "default",
        "TORCHELASTIC_RUN_ID": given.rdzv_id or uuid.uuid4().hex,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    }
    if count > 1:
        shared.setdefault("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    processes = []
    for rank in range(count):
        own = {name: str(rank) for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")}
        processes.append(subprocess.Popen(command, env={**os.environ, **shared, **own}))
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(_watch(processes))
    finally:
        _end(processes)


def _watch(processes: list[subprocess.Popen[bytes]]) -> int:
    """Waits until all processes have succeeded or one has failed."""
    while True:
        states = [process.poll() for process in processes]
        for rank, state in enumerate(states):
            if state:
                print(
                    f"torch.distributed.run: rank {rank} ended with the exit status {state}",
                    file=sys.stderr,
                )
                return 1
        if None not in states:
            return 0
        time.sleep(0.05)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    main()
