"""Ranks that start without mpirun, and the stores through which they connect."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from mpi_jobs import HERE, needs_mpi

import lamella.distributed as dist
from lamella.distributed import _meeting
from lamella.distributed._store import FileStore, HashStore, PrefixStore, TCPStore

try:
    import torch
except ImportError:
    torch = None

PROGRAM = str(HERE / "ranks_by_themselves.py")
OURS, THEIRS = ["-m", "lamella.compat"], []


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run(*arguments, **environment):
    ended = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1", "LAMELLA_NUM_THREADS": "1", **environment},
    )
    return ended.returncode, ended.stdout, ended.stderr


@needs_mpi
@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
def test_a_program_of_pytorch_trains_on_two_ranks(tmp_path):
    outputs = []
    for door in (OURS, THEIRS):
        status, out, err = run(*door, PROGRAM, f"file://{tmp_path}/{len(outputs)}", "train")
        assert status == 0, err
        outputs.append(out)
    assert outputs[0] == outputs[1] and outputs[0].count("\n") == 5


@needs_mpi
@pytest.mark.parametrize("place", ["tcp", "env"])
def test_other_places_to_meet(place):
    port = free_port()
    method = f"tcp://127.0.0.1:{port}" if place == "tcp" else "env://"
    status, out, err = run(
        *OURS, PROGRAM, method, "train", MASTER_ADDR="localhost", MASTER_PORT=str(port)
    )
    assert status == 0 and out.count("\n") == 5, err


@needs_mpi
@pytest.mark.parametrize(
    "how, said",
    [
        ("raise", "ProcessRaisedException 1 ValueError: rank 1 does not want to\n"),
        ("exit", "ProcessExitedException 1 spawn: process 1 ended with the exit status 3\n"),
        ("kill", "ProcessExitedException 1 spawn: process 1 ended by the signal SIGKILL\n"),
    ],
)
def test_a_rank_that_fails_ends_the_others(tmp_path, how, said):
    status, out, err = run(*OURS, PROGRAM, f"file://{tmp_path}/meet", how)
    assert (status, out) == (0, said), err
    # Rank 1 may be gone before rank 0 has come to its all_reduce.
    assert re.search(
        "lamella.distributed: rank 0 ends (in all_reduce|outside of any operator): rank 1 ", err
    )


@needs_mpi
def test_torchrun():
    start = [*OURS, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    status, out, err = run(*start, "--standalone", PROGRAM, "env://", "train")
    assert status == 0 and out.count("\n") == 5, err
    status, out, err = run(*start, PROGRAM, "env://", "raise")
    assert status == 1 and "torch.distributed.run: rank " in err
    for wrong, text in [
        (["--nnodes=2"], "expected one machine; start ranks on several with mpirun"),
        (["--max-restarts=3"], "expected --max-restarts to be 0"),
        (["--nproc_per_node", "some"], "expected --nproc-per-node to be a number, cpu or auto"),
    ]:
        status, out, err = run(*start, *wrong, PROGRAM)
        assert status == 1 and text in err


ALONE = """
import lamella, lamella.distributed as dist, sys
dist.init_process_group("gloo", "env://", rank=0, world_size=1)
x = lamella.ones(2)
dist.all_reduce(x)
print(dist.get_rank(), dist.get_world_size(), x.tolist())
dist.destroy_process_group()
"""


@needs_mpi
def test_a_job_of_one_needs_no_place():
    assert run("-c", ALONE)[:2] == (0, "0 1 [1.0, 1.0]\n")


@needs_mpi
@pytest.mark.parametrize(
    "arguments, kind, text",
    [
        (
            {"backend": "tpu"},
            ValueError,
            "init_process_group: expected 'backend' to be 'mpi', 'gloo', 'nccl', "
            "'cpu:mpi,cuda:nccl', 'cpu:gloo,cuda:nccl' or None, got 'tpu'",
        ),
        (
            {"rank": 2, "world_size": 2},
            ValueError,
            "init_process_group: expected 'rank' from 0 to 1, got 2",
        ),
        (
            {"rank": 0},
            ValueError,
            "init_process_group: expected the environment to have WORLD_SIZE, as 'init_method' is "
            "env://",
        ),
        (
            {"rank": 0, "world_size": 2},
            ValueError,
            "init_process_group: expected the environment to have MASTER_ADDR, as 'init_method' "
            "is env://",
        ),
        (
            {"rank": 0, "world_size": 2, "init_method": "smoke://x"},
            ValueError,
            "init_process_group: expected 'init_method' to begin with env://, tcp:// or file://, "
            "got 'smoke://x'",
        ),
        (
            {"rank": 0, "world_size": 2, "init_method": "tcp://here:port"},
            ValueError,
            "init_process_group: expected a number for the port, got 'port'",
        ),
    ],
)
def test_errors(monkeypatch, arguments, kind, text):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind) as error:
        dist.init_process_group(**arguments)
    assert str(error.value) == text
    assert not dist.is_initialized()


@needs_mpi
def test_what_mpirun_says_is_the_error(tmp_path, monkeypatch):
    starter = tmp_path / "mpirun"
    starter.write_text("#!/bin/sh\necho no slots here; exit 3\n")
    starter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    store, errors = HashStore(), []

    def other():
        with pytest.raises(RuntimeError) as error:
            _meeting.meet(store, 1, 2, timedelta(seconds=60))
        errors.append(str(error.value))

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(RuntimeError) as error:
        _meeting.meet(store, 0, 2, timedelta(seconds=60))
    thread.join()
    told = str(error.value)
    assert told.endswith("mpirun of Open MPI to start 2 processes, got: no slots here")
    assert told.startswith("init_process_group: expected ") and errors == [told]


def test_ranks_of_another_machine_are_told():
    store = HashStore()
    store.set("lamella/machine/1", "elsewhere")
    with pytest.raises(RuntimeError) as error:
        _meeting.meet(store, 0, 2, timedelta(seconds=5))
    assert str(error.value) == (
        f"init_process_group: expected all ranks on one machine, got rank 0 on "
        f"{socket.gethostname()} and rank 1 on elsewhere; start ranks on several machines with "
        "mpirun"
    )


def stores(tmp_path):
    master = TCPStore("localhost", 0, 1, True)
    return [
        HashStore(),
        FileStore(str(tmp_path / "store"), 1),
        master,
        TCPStore("localhost", master.port, 2, False),
        PrefixStore("part", HashStore()),
    ]


def test_stores(tmp_path):
    for store in stores(tmp_path):
        for key in ("a", "n", "new", "late"):  # the two over TCP are one
            store.delete_key(key)
        store.set("a", "one")
        store.set("b", b"\x00\xff\n")
        assert (store.get("a"), store.get("b")) == (b"one", b"\x00\xff\n")
        assert [store.add("n", 2), store.add("n", -5)] == [2, -3]
        assert store.compare_set("a", "other", "two") == b"one"
        assert store.compare_set("a", "one", "two") == b"two" == store.get("a")
        assert store.compare_set("new", "", "set") == b"set"
        assert store.compare_set("newer", "old", "set") == b"old" and not store.check(["newer"])
        assert store.delete_key("b") and not store.delete_key("b") and store.check(["a", "n"])
        assert store.num_keys() >= 3
        threading.Timer(0.05, store.set, ("late", "here")).start()
        assert store.get("late") == b"here"
        store.set_timeout(timedelta(seconds=0.02))
        with pytest.raises(RuntimeError) as error:
            store.get("nowhere")
        assert str(error.value) == (
            f"{type(store).__name__}: expected the keys nowhere within 0.02 s, "
            "but they were not set"
        )


def test_stores_of_many_processes(tmp_path):
    count = "import sys; from lamella.distributed._store import FileStore, TCPStore; "
    master = TCPStore("127.0.0.1", 0, is_master=True)
    for made, store in (
        (f"FileStore({str(tmp_path / 'all')!r})", FileStore(str(tmp_path / "all"))),
        (f"TCPStore('127.0.0.1', {master.port})", master),
    ):
        program = f"{count}s = {made}; [s.add('n', 1) for _ in range(50)]"
        running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
        assert [process.wait(120) for process in running] == [0, 0, 0]
        assert store.add("n", 0) == 150


def test_a_store_whose_master_is_absent_or_ends():
    port = free_port()
    begin = time.monotonic()
    with pytest.raises(RuntimeError) as error:
        TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.2))
    assert str(error.value).startswith(
        f"TCPStore: expected a master at 127.0.0.1:{port} within 0.2 s: "
    )
    assert time.monotonic() - begin < 20
    with pytest.raises(RuntimeError) as error:
        TCPStore("127.0.0.1", 0, 3, True, timedelta(seconds=0.05))
    assert str(error.value) == "TCPStore: expected 3 processes within 0.05 s, got 1"
