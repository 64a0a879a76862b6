"""Collectives under mpirun, with 2 and 4 ranks."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from mpi_jobs import BUILD, Job, needs_mpi, run_ranks, seconds_to_end

from lamella.distributed import _job, checkpoint

pytestmark = needs_mpi
# How long a job may take to end once a rank has failed. It is to be 5 seconds where processors are
# free, which LAMELLA_TEST_SECONDS=5 asks for; other tests run beside these here.
SECONDS = float(os.environ.get("LAMELLA_TEST_SECONDS", "20"))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_operators(ranks):
    output = run_ranks(ranks, "ranks_operators.py")
    assert output.count("done") == ranks, output


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_sums_in_shared_memory(ranks):
    output = run_ranks(ranks, "ranks_shared_sums.py")
    assert output.count("done") == ranks, output


@pytest.mark.parametrize("ranks", [1, 2])
def test_opcheck_of_every_form(ranks):
    output = run_ranks(ranks, "ranks_opcheck.py")
    assert output.count("done") == ranks, output


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_gradients_of_messages(ranks):
    output = run_ranks(ranks, "ranks_messages.py")
    assert output.count("done") == ranks, output


@pytest.mark.parametrize("ranks, count", [(2, 400), (4, 600)])
def test_random_sequences(ranks, count):
    run_ranks(ranks, "ranks_sequences.py", count, 2026)


def test_debug_mode_runs_the_same():
    run_ranks(3, "ranks_sequences.py", 100, 7, LAMELLA_DISTRIBUTED_DEBUG="1")


def nccl_with_a_stand_in():
    folder = BUILD / "tests" / "distributed"
    return folder / "libfake_nccl.so", str(folder / "libfake_lamella_nccl.so")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_cuda_tensors(ranks):
    stand_in, library = nccl_with_a_stand_in()
    output = run_ranks(ranks, "ranks_nccl.py", stand_in, LAMELLA_NCCL=library)
    assert output.count("done") == ranks, output


def obstacle_of_cuda(**environment):
    """Why CUDA tensors have no collectives here, or ""."""
    command = "import lamella.distributed._job as job; print(job.ops().obstacle('cuda'))"
    environment = {**os.environ, **environment}
    run = subprocess.run(
        [sys.executable, "-c", command], env=environment, capture_output=True, check=True
    )
    return run.stdout.decode().strip()


def test_cuda_tensors_on_gpus():
    memory = BUILD / "tests" / "distributed" / "libcuda_memory.so"
    if not memory.exists():
        pytest.skip("NCCL is not installed")
    if obstacle := obstacle_of_cuda():
        pytest.skip(obstacle)
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    ranks = len(gpus.splitlines())
    output = run_ranks(ranks, "ranks_nccl.py", memory)
    assert output.count("done") == ranks, output


def test_why_there_is_no_nccl():
    there = os.path.exists(os.path.join(os.path.dirname(_job._library()), "liblamella_nccl.so"))
    found = obstacle_of_cuda()
    if not there:
        assert found == ("liblamella_nccl.so was not found; it is built where NCCL's headers are")
    elif found:
        assert found.startswith("no GPU is here"), found
    assert obstacle_of_cuda(LAMELLA_NCCL="/nowhere/lib.so").startswith(
        "/nowhere/lib.so: cannot open"
    )


def test_a_job_ends_with_the_process_that_began_it():
    program = (
        "import mpi_jobs\n"
        "job = mpi_jobs.Job(2, 'ranks_failing.py', 'sleep')\n"
        "print(job.read_line('pids'), flush=True)\n"
        "job.finish(100)\n"
    )
    begun = subprocess.Popen(
        [sys.executable, "-c", program], cwd=os.path.dirname(__file__), stdout=subprocess.PIPE
    )
    pids = [int(word) for word in begun.stdout.readline().split()[1:]]
    begun.kill()
    begun.communicate()
    end = time.monotonic() + SECONDS
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < end, pids
        time.sleep(0.1)


@pytest.mark.parametrize("run", range(int(os.environ.get("LAMELLA_KILLED_RUNS", "6"))))
def test_a_killed_rank_ends_the_job(run):
    draw = random.Random(run)
    job = Job(3, "ranks_failing.py", "die")
    pids = [int(word) for word in job.read_line("pids").split()[1:]]
    time.sleep(draw.random() * 0.3)
    victim = draw.randrange(3)
    os.kill(pids[victim], signal.SIGKILL)
    seconds, output = seconds_to_end(job)
    assert seconds < SECONDS, output
    for rank in {0, 1, 2} - {victim}:
        assert f"rank {rank} ends" in output, output
    assert f": rank {victim} died" in output, output
    assert "ranks_failing.py" in output, output  # the line that a rank was in


def test_a_raised_error_ends_the_job():
    job = Job(3, "ranks_failing.py", "raise")
    seconds, output = seconds_to_end(job)
    for rank in (0, 2):
        named = (
            rf"rank {rank} ends .*: rank 1 failed outside of any operator: KeyError.*failing.py:\d"
        )
        assert re.search(named, output), output
    assert "the data of rank 1" in output
    assert seconds < SECONDS, output


def test_a_rank_that_leaves_ends_the_job():
    _, output = seconds_to_end(Job(3, "ranks_failing.py", "exit"))
    assert (
        "rank 1 failed outside of any operator: it came to its end, while rank " in output
    ), output


def test_interrupt_inside_of_a_blocking_call():
    job = Job(2, "ranks_failing.py", "sleep")
    pids = [int(word) for word in job.read_line("pids").split()[1:]]
    time.sleep(1)
    os.kill(pids[1], signal.SIGINT)
    seconds, output = seconds_to_end(job)
    assert seconds < SECONDS and "rank 1 is interrupted in all_reduce" in output, output
    assert "rank 0 ends outside of any operator: rank 1 was interrupted in all_reduce" in output


def test_interrupt_of_mpirun():
    job = Job(2, "ranks_failing.py", "sleep")
    job.read_line("pids")
    time.sleep(0.5)
    os.killpg(job.process.pid, signal.SIGINT)
    seconds, output = seconds_to_end(job)
    assert seconds < SECONDS, output


def told(what, ranks=2, **environment):
    _, output = Job(
        ranks, "ranks_failing.py", what, LAMELLA_DISTRIBUTED_DEBUG="1", **environment
    ).finish(60)
    return output


def test_debug_mode_names_other_shapes():
    assert (
        "was told: all_reduce: expected all ranks of group 0 to call the same; rank 0 calls "
        "all_reduce(float32[2, 3], op=sum), rank 1 calls all_reduce(float32[3, 3], op=sum)\n"
    ) in told("shapes")


def test_debug_mode_names_other_operators():
    output = told("operators")
    assert (
        ": expected all ranks of group 0 to call the same; rank 0 calls "
        "all_reduce(float32[1000], op=sum), rank 1 calls broadcast(float32[1000], root=0)\n"
    ) in output


def test_debug_mode_names_who_is_absent():
    output = told("absent", LAMELLA_DISTRIBUTED_TIMEOUT="1")
    assert (
        "rank 0 was told: all_reduce: expected all 2 ranks of group 0 to call it within 1 s; this "
        "is rank 0 with all_reduce(float32[1000], op=sum); rank 1 is in no operator\n"
    ) in output


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_training(ranks, tmp_path):
    run_ranks(ranks, "ranks_training.py", tmp_path)
    # Another number of ranks, here one process without a job, reads what they wrote.
    assert checkpoint.load(str(tmp_path / "checkpoint"))["a"].tolist() == list(range(7))
    assert sorted(os.listdir(tmp_path)) == ["checkpoint"]


def test_a_checkpoint_without_an_index_is_none(tmp_path):
    (tmp_path / "half").mkdir()
    with pytest.raises(FileNotFoundError):
        checkpoint.load(str(tmp_path / "half"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="JAX is not there for this Python")
def test_programs_of_jax_on_four_ranks(tmp_path):
    here = os.path.dirname(__file__)
    command = [sys.executable, os.path.join(here, "jax_shard_map.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    run_ranks(4, "ranks_hlo.py", tmp_path)
