"""Measures collectives and training on several ranks against MPI in C, mpi4py and PyTorch's gloo.

All peers run in the same ranks, in turns. Without arguments it starts the ranks itself.
Usage: distributed.py [--quick]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = [4, 64, 1024, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20]  # bytes


def start_ranks(ranks: int, *arguments: str) -> int:
    """Runs this file under mpirun."""
    command = ["mpirun", "-n", str(ranks)]
    if (os.cpu_count() or 1) < ranks:
        command += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LAMELLA_NUM_THREADS": "1"}
    environment.setdefault("MASTER_ADDR", "127.0.0.1")
    environment.setdefault("MASTER_PORT", str(20000 + os.getpid() % 20000))
    return subprocess.run(
        [*command, sys.executable, __file__, *arguments], env=environment
    ).returncode


def build_peer(folder: str) -> str | None:
    """The same call in C."""
    path = os.path.join(folder, "liballreduce.so")
    source = str(ROOT / "bench" / "allreduce.c")
    done = subprocess.run(["mpicc", "-O2", "-shared", "-fPIC", source, "-o", path], check=False)
    return path if done.returncode == 0 else None


class Ranks:
    """The state with which one rank measures, and the available peers."""

    def __init__(self, library: str, quick: bool) -> None:
        import lamella
        import lamella.distributed as dist

        dist.init_process_group("mpi")
        lamella.set_num_threads(1)
        self.lamella, self.dist, self.quick = lamella, dist, quick
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.c = ctypes.CDLL(library) if library else None
        if self.c is not None:
            self.c.time_allreduce.restype = ctypes.c_double
            self.c.time_allreduce.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        try:
            from mpi4py import MPI

            self.mpi4py = MPI
        except ImportError:
            self.mpi4py = None
        try:
            import torch
            import torch.distributed as gloo

            torch.set_num_threads(1)
            gloo.init_process_group("gloo", rank=self.rank, world_size=self.size)
            self.torch, self.gloo = torch, gloo
        except (ImportError, RuntimeError, ValueError):  # ValueError: no address to meet at
            self.torch = self.gloo = None

    def slowest(self, seconds: float) -> float:
        """A time of all ranks is that of the last."""
        x = self.lamella.tensor([seconds], dtype=self.lamella.float64)
        self.dist.all_reduce(x, "max")
        return x.item()

    def time_calls(self, call, calls: int) -> float:
        self.dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    def compare(self, runs: dict, rounds: int) -> dict[str, float]:
        """The best time of each, taken in turns."""
        best: dict[str, float] = {}
        for _ in range(rounds):
            for name, run in runs.items():
                seconds = self.slowest(run())
                best[name] = min(best.get(name, seconds), seconds)
        return best

    def say(self, *words: object) -> None:
        if self.rank == 0:
            print(*words, flush=True)

    def all_reduce(self) -> None:
        self.say(f"\n-- all_reduce of float32, in place, {self.size} ranks; µs")
        self.say(
            f"{'bytes':>10}{'lamella':>11}{'MPI in C':>11}{'mpi4py':>11}{'gloo':>11}"
            "   over C   / mpi4py   / gloo   required"
        )
        for size in SIZES[:-1] if self.quick else SIZES:
            self.all_reduce_row(size)

    def all_reduce_row(self, size: int) -> None:
        import numpy as np

        count = size // 4
        calls = max(1, min(2000, (4 << 20) // size))
        rounds = 3 if size >= 16 << 20 else 7
        x = self.lamella.zeros(count)
        all_reduce = self.dist.all_reduce
        runs = {"lamella": lambda: self.time_calls(lambda: all_reduce(x), calls)}
        if self.c is not None:
            data = np.zeros(count, np.float32)
            runs["c"] = lambda: self.c.time_allreduce(data.ctypes.data, count, calls)
        if self.mpi4py is not None:
            MPI, array = self.mpi4py, np.zeros(count, np.float32)
            world = MPI.COMM_WORLD
            runs["mpi4py"] = lambda: self.time_calls(
                lambda: world.Allreduce(MPI.IN_PLACE, array), calls
            )
        if self.gloo is not None:
            t = self.torch.zeros(count)
            runs["gloo"] = lambda: self.time_calls(lambda: self.gloo.all_reduce(t), calls)
        best = self.compare(runs, rounds)
        mine = best["lamella"]
        row = f"{size:>10}{mine * 1e6:>11.2f}"
        for peer in ("c", "mpi4py", "gloo"):
            row += f"{best[peer] * 1e6:>11.2f}" if peer in best else f"{'-':>11}"
        over = ""
        met = []
        if "c" in best:
            small = size < 1 << 20
            over = f"{(mine - best['c']) * 1e6:+.2f} µs" if small else f"{mine / best['c']:.3f} x"
            # Between small and 1 MB either will do.
            near, close = mine - best["c"] <= 1.5e-6, mine <= 1.03 * best["c"]
            met.append(near or close if small else close)
        for peer, factor in (("mpi4py", 1.0), ("gloo", 0.6)):
            over += f"  {mine / best[peer]:8.3f}" if peer in best else f"  {'-':>8}"
            if peer in best:
                met.append(mine <= factor * best[peer])
        self.say(row, " ", over, " ", "".join("yes " if ok else "NO " for ok in met))

    def steps(self, name: str, network, shape, classes: int) -> None:
        """A step of training with data parallel, alone, and PyTorch's."""
        from lamella import nn, optim
        from lamella.nn.parallel import DistributedDataParallel

        def step_of(module, framework, functional, sgd, model):
            x = framework.randn(*shape)
            y = framework.randint(0, classes, (shape[0],))
            optimizer = sgd(model.parameters(), lr=0.01)

            def step() -> None:
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()

            for _ in range(3):
                step()
            return lambda: self.time_calls(step, 5)

        lam, sgd = self.lamella, optim.SGD
        runs = {
            "alone": step_of(nn, lam, nn.functional, sgd, network(nn)),
            "parallel": step_of(nn, lam, nn.functional, sgd, DistributedDataParallel(network(nn))),
        }
        if self.torch is not None:
            t = self.torch
            model = t.nn.parallel.DistributedDataParallel(network(t.nn))
            runs["torch"] = step_of(t.nn, t, t.nn.functional, t.optim.SGD, model)
        best = self.compare(runs, 4 if self.quick else 12)
        efficiency = best["alone"] / best["parallel"]
        row = (
            f"{name:<34}{best['alone'] * 1e3:>9.2f}{best['parallel'] * 1e3:>11.2f}"
            f"{efficiency:>12.3f} {'yes' if efficiency >= 0.9 else 'NO':<4}"
        )
        if "torch" in best:
            ratio = best["parallel"] / best["torch"]
            row += f"{best['torch'] * 1e3:>10.2f}{ratio:>8.3f} x {'yes' if ratio <= 0.5 else 'NO'}"
        self.say(row)

    def training(self) -> None:
        self.say(
            f"\n-- a step of training, {self.size} ranks of one thread, the same batch a rank; ms"
        )
        self.say(
            f"{'':<34}{'one rank':>9}{'all ranks':>11}{'efficiency':>12} >=0.9"
            f"{'PyTorch':>9}   <= 0.5 x"
        )

        def mlp(nn):
            return nn.Sequential(
                nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
            )

        def conv(nn):
            return nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(32 * 7 * 7, 10),
            )

        self.steps("MLP 784-512-512-10, batch 256", mlp, (256, 784), 10)
        self.steps("conv net 16-32 on 28x28, batch 64", conv, (64, 1, 28, 28), 10)

    def costs(self) -> None:
        """Each collective at two sizes, for the model in docs/distributed.md."""
        ops, n = self.lamella.ops.dist, self.size
        rows = []
        for count in (n, 1 << 18):
            x = self.lamella.zeros(count)
            part = self.lamella.zeros(count // n)
            runs = {
                "all_reduce": lambda x=x: ops.all_reduce_(x),
                "all_reduce, fixed order": lambda x=x: ops.all_reduce_(x, "sum", 0, True),
                "reduce_scatter": lambda x=x: ops.reduce_scatter(x),
                "all_gather": lambda x=part: ops.all_gather(x),
                "all_to_all": lambda x=x: ops.all_to_all(x),
                "broadcast": lambda x=x: ops.broadcast_(x),
                "gather": lambda x=part: ops.gather(x),
                "scatter": lambda x=x: ops.scatter(x),
                "barrier": lambda: ops.barrier(),
            }
            calls = 300 if count == n else 20
            timed = {k: (lambda f=f, c=calls: self.time_calls(f, c)) for k, f in runs.items()}
            rows.append(self.compare(timed, 5))
        self.say(
            f"\n-- every collective, {n} ranks: µs at {4 * n} bytes, µs at 1 MB (of all ranks)"
        )
        for name in rows[0]:
            self.say(f"{name:<26}{rows[0][name] * 1e6:>10.2f}{rows[1][name] * 1e6:>12.1f}")

    def memory(self) -> None:
        from lamella import nn, optim
        from lamella.nn.parallel import ShardedOptimizer

        def bytes_of(optimizer) -> int:
            return sum(
                v.numel() * v.element_size()
                for s in optimizer.state.values()
                for v in s.values()
                if isinstance(v, self.lamella.Tensor)
            )

        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
        x = self.lamella.randn(8, 784)
        whole = optim.Adam(model.parameters())
        model(x).sum().backward()
        whole.step()
        one = bytes_of(whole)
        sharded = ShardedOptimizer(model.parameters(), optim.Adam)
        sharded.step()
        part = bytes_of(sharded.optimizer)
        self.say(
            f"\n-- Adam's state, {self.size} ranks: {part} bytes of {one}: {part / one:.3f} x"
            f" (<= 0.3 x) {'yes' if part <= 0.3 * one else 'NO'}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rank-of", choices=["collectives", "costs", "training", "memory"])
    parser.add_argument("--peer", default="")
    options = parser.parse_args()
    if options.rank_of is None:
        quick = ["--quick"] if options.quick else []
        with tempfile.TemporaryDirectory() as folder:
            peer = build_peer(folder) or ""
            status = 0
            for what, ranks in (
                ("collectives", 2),
                ("costs", 2),
                ("costs", 4),
                ("training", 2),
                ("memory", 4),
            ):
                status |= start_ranks(ranks, "--rank-of", what, "--peer", peer, *quick)
        return status
    ranks = Ranks(options.peer, options.quick)
    run = {"collectives": ranks.all_reduce, "costs": ranks.costs, "training": ranks.training}
    run.get(options.rank_of, ranks.memory)()
    if ranks.gloo is not None:
        ranks.gloo.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
