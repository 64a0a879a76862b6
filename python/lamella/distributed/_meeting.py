"""Makes processes that mpirun did not start the ranks of an MPI job.

Note [Ranks that start by themselves]
  PyTorch's programs start their processes themselves and tell each its rank, the number of ranks
  and a rendezvous: a file, or a host and a port. MPI requires ranks that mpirun started. So rank 0
  runs mpirun with a stand-in process for each rank, which writes its environment to a file and then
  waits; each rank adopts the environment of its stand-in, by which MPI finds the other ranks. This
  works on one machine, with Open MPI, which identifies ranks by their environment alone. The
  stand-ins end when rank 0 closes the pipe that they read.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from datetime import timedelta

from lamella.distributed._store import FileStore, Store, TCPStore

# Environment variables that mpirun, or another MPI launcher, sets for each rank.
_STARTED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE")
_STAND_IN = (
    'exec 3<"$0/hold"; env -0 >"$0/new.$PMIX_RANK"; mv "$0/new.$PMIX_RANK" "$0/rank.$PMIX_RANK"; '
    "exec cat <&3"
)


def was_started_by_mpi() -> bool:
    """Whether mpirun, or another MPI launcher, started this process."""
    return any(name in os.environ for name in _STARTED)


class StandIns:
    """mpirun and its stand-in processes for the ranks; close() ends them."""

    def __init__(self, world_size: int, timeout: timedelta) -> None:
        self.environments: list[dict[str, str]] = []
        starter = shutil.which("mpirun")
        if starter is None:
            raise RuntimeError(
                "init_process_group: expected mpirun on the path, got none (Debian: openmpi-bin)"
            )
        self._folder = tempfile.mkdtemp(prefix="lamella-ranks-")
        pipe = os.path.join(self._folder, "hold")
        os.mkfifo(pipe, 0o600)
        self._hold = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [starter, "-n", str(world_size), "--oversubscribe", "--bind-to", "none"]
        with open(os.path.join(self._folder, "said"), "wb") as said:
            self._process = subprocess.Popen(
                [*command, "sh", "-c", _STAND_IN, self._folder],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, **(root if os.geteuid() == 0 else {})},
                start_new_session=True,
            )
        try:
            self._read(world_size, timeout)
        except BaseException:
            self.close()
            raise
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, world_size: int, timeout: timedelta) -> None:
        end = time.monotonic() + timeout.total_seconds()
        for rank in range(world_size):
            path = os.path.join(self._folder, f"rank.{rank}")
            while not os.path.exists(path):
                if self._process.poll() is not None or time.monotonic() > end:
                    with open(os.path.join(self._folder, "said"), errors="replace") as said:
                        text = said.read().strip()[-600:]
                    raise RuntimeError(
                        "init_process_group: expected mpirun of Open MPI to start "
                        f"{world_size} processes, got: {text or 'no answer in time'}"
                    )
                time.sleep(0.005)
            with open(path, "rb") as file:
                entries = (entry.partition(b"=") for entry in file.read().split(b"\0"))
                self.environments.append(
                    {
                        os.fsdecode(name): os.fsdecode(value)
                        for name, _, value in entries
                        if name.startswith((b"OMPI_", b"PMIX_", b"ORTE_", b"PRTE_"))
                    }
                )

    def close(self) -> None:
        """Ends mpirun and its processes."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def store_of(init_method: str | None, rank: int, world_size: int, timeout: timedelta) -> Store:
    """The store by which the ranks meet, from the init_method."""
    method = init_method or "env://"
    if method.startswith("file://"):
        store: Store = FileStore(method[len("file://") :], world_size)
        store.set_timeout(timeout)
        return store
    if method.startswith("tcp://"):
        host, _, port = method[len("tcp://") :].partition("?")[0].rpartition(":")
    elif method.startswith("env://"):
        host, port = (_from_environment(name) for name in ("MASTER_ADDR", "MASTER_PORT"))
    else:
        raise ValueError(
            "init_process_group: expected 'init_method' to begin with env://, tcp:// or file://, "
            f"got {method!r}"
        )
    if not port.isdecimal():
        raise ValueError(f"init_process_group: expected a number for the port, got {port!r}")
    return TCPStore(host, int(port), world_size, rank == 0, timeout, wait_for_workers=False)


def _from_environment(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            f"init_process_group: expected the environment to have {name}, as 'init_method' is "
            "env://"
        )
    return os.environ[name]


def number_from(given: int, name: str) -> int:
    """A rank or a number of ranks: `given` if not negative, else from the environment."""
    number = given if given >= 0 else _from_environment(name)
    try:
        return int(number)
    except ValueError:
        raise ValueError(
            f"init_process_group: expected {name} to be a number, got {number!r}"
        ) from None


def meet(store: Store, rank: int, world_size: int, timeout: timedelta) -> StandIns | None:
    """Sets the environment by which MPI identifies this process as a rank. On rank 0 it returns the
    stand-ins, which the caller must close at the end of the job."""
    machine = socket.gethostname()
    store.set(f"lamella/machine/{rank}", machine)
    stand_ins = None
    if rank == 0:
        try:
            for other in range(world_size):
                place = store.get(f"lamella/machine/{other}").decode()
                if place != machine:
                    raise RuntimeError(
                        f"init_process_group: expected all ranks on one machine, got rank 0 on "
                        f"{machine} and rank {other} on {place}; start ranks on several machines "
                        "with mpirun"
                    )
            stand_ins = StandIns(world_size, timeout)
        except Exception as error:
            for other in range(1, world_size):
                store.set(f"lamella/rank/{other}", json.dumps(str(error)))
            raise
        for other in range(1, world_size):
            store.set(f"lamella/rank/{other}", json.dumps(stand_ins.environments[other]))
        mine = stand_ins.environments[0]
    else:
        mine = json.loads(store.get(f"lamella/rank/{rank}"))
        if isinstance(mine, str):
            raise RuntimeError(mine)
    os.environ.update(mine)
    return stand_ins
