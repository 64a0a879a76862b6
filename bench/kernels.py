"""Times kernels of Lamella, PyTorch, NumPy and JAX: `make bench kernels`.

Each library has its own process. All are pinned to the same core (with --threads 2 to the same two)
and run in turns, so that only one works at a time and changes of the machine affect all equally. A
figure is the median of several runs. The last column is the roofline: the least time in which this
machine can read every argument once, write every result once and do the arithmetic of products,
over Lamella's time (arrays that fit into a cache are held against that cache's bandwidth). For each
size, the closing lines give the geometric mean of Lamella's time over the best peer's, and how many
rows are slower than the best peer. A run of all rows is kept in bench/history; rows slower than
in the run before on this machine are named.

Usage: kernels.py [--only REGEX] [--sizes 3,5,7] [--threads 1] [--libraries lamella,torch,numpy,jax]
                  [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import timeit
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import history  # noqa: E402
from kernel_rows import Row, rows  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("lamella", "torch", "numpy", "jax")


# ---- One library, in a process of its own ----


def namespace(kind: str, threads: int) -> dict[str, Any]:
    """The modules that texts may name."""
    import numpy

    names: dict[str, Any] = {"np": numpy, "G": numpy.random.default_rng(1)}
    if kind in ("lamella", "torch"):
        m = __import__(kind)
        m.set_num_threads(threads)

        def grad(result: Any, *of: Any) -> Any:
            return m.autograd.grad(result, of, m.ones_like(result))

        names.update(m=m, F=m.nn.functional, grad=grad)
    if kind == "numpy":
        import scipy.sparse
        import scipy.special

        names["scipy"] = scipy
    if kind == "jax":
        import jax
        import jax.numpy

        names.update(jax=jax, jnp=jax.numpy)
    return names


def convert(kind: str, names: dict[str, Any], array: Any, dtype: str | None) -> Any:
    if kind == "numpy":
        return array.astype(dtype) if dtype == "float64" else array
    if kind == "jax":
        made = names["jnp"].asarray(array)
        return made.astype(dtype) if dtype and dtype != "channels_last" else made
    m = names["m"]
    made = m.from_numpy(array)
    if dtype == "channels_last":
        return made.contiguous(memory_format=m.channels_last)
    return made.to(getattr(m, dtype)) if dtype else made


def call_of(kind: str, names: dict[str, Any], row: Row) -> Any:
    """The function to time, without arguments; None if the library lacks it."""
    import numpy

    random = numpy.random.default_rng(0)
    arrays = {
        name: convert(kind, names, make(random, row.size), row.dtypes.get(name))
        for name, make in row.arrays.items()
    }
    text = {"numpy": row.numpy, "jax": row.jax}.get(kind, row.text)
    if text is None:
        return None
    if kind == "jax":
        jax = names["jax"]
        compiled = jax.jit(eval(f"lambda {', '.join(arrays)}: {text}", names))
        values = list(arrays.values())
        return lambda: jax.block_until_ready(compiled(*values))
    if text.startswith("grad("):
        for array in arrays.values():
            if array.is_floating_point():
                array.requires_grad_(True)
    return eval(f"lambda: {text}", {**names, **arrays})


def bytes_of(values: Any) -> int:
    """Bytes of the elements of tensors; those of an expanded dimension count once."""
    if isinstance(values, (list, tuple)):
        return sum(map(bytes_of, values))
    if not hasattr(values, "stride") or not hasattr(values, "element_size"):
        return 0
    apart = (n for n, step in zip(values.shape, values.stride()) if step)
    return math.prod(apart) * int(values.element_size())


def work(kind: str, call: Any) -> dict[str, float]:
    """What a call cannot do without: the bytes of arguments and results (asked of Lamella), or the
    operations of its products (asked of PyTorch)."""
    if kind == "lamella":
        read = set(call.__code__.co_names) - {"o"}  # what out= names is written alone
        arguments = [value for name, value in call.__globals__.items() if name in read]
        return {"bytes": bytes_of(arguments) + bytes_of(call())}
    if kind == "torch":
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False) as counter:
            call()
        return {"operations": counter.get_total_flops()}
    return {}


def median_us(call: Any, quick: bool) -> float:
    call()
    timer = timeit.Timer(call)
    once = min(timer.timeit(1) for _ in range(2))
    calls = max(1, min(20_000, int(0.004 / max(once, 1e-7))))
    repeats = 5 if quick or once > 0.3 else 9 if once > 0.01 else 15
    return statistics.median(timer.timeit(calls) / calls for _ in range(repeats)) * 1e6


def serve_calls(call_of_number: Callable[[int], Any], quick: bool, kind: str = "") -> None:
    """Answers each number with the time of its call in microseconds, or with why there is none."""
    warnings.simplefilter("ignore")
    print("ready", flush=True)
    for line in sys.stdin:
        answer: dict[str, Any] = {}
        try:
            call = call_of_number(int(line))
            if call is not None:
                answer["us"] = median_us(call, quick)
                answer.update(work(kind, call))
        except Exception as error:  # noqa: BLE001 - a row that fails is told, and the next one runs
            answer["error"] = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
        print(json.dumps(answer), flush=True)


def serve(kind: str, threads: int, quick: bool) -> None:
    names = namespace(kind, threads)
    table = rows()
    with names["np"].errstate(all="ignore"):
        serve_calls(lambda number: call_of(kind, names, table[number]), quick, kind)


# ---- All of them, in turn ----


class Worker:
    """One library's process."""

    def __init__(
        self, kind: str, threads: int, cores: list[int], quick: bool, program: str = __file__
    ) -> None:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "OMP_WAIT_POLICY": "passive",
            "OPENBLAS_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
        }
        # Set where old OpenBLAS builds go wrong; a current NumPy is slower with them.
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        if threads == 1:
            environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        command = [sys.executable, program, "--serve", kind, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command + (["--quick"] if quick else []), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )  # fmt: skip
        self.kind = kind
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().strip() == "ready"

    def ask(self, number: int) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]
        except (OSError, ValueError):
            return {"error": "the process ended"}


def limits(build: Path, threads: int, cores: list[int]) -> dict[str, float]:
    """The machine's limits, measured with as many threads: the rows of bench/limits.cpp."""
    program = build / "bench" / "bench_limits"
    if not program.exists():
        return {}
    done = subprocess.run([str(program), str(threads)], capture_output=True, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))  # fmt: skip
    return {r["row"]: r["ns"] for r in map(json.loads, done.stdout.splitlines())}


def least_us(machine: dict[str, float], moved: float, operations: float) -> float:
    """The time in which the machine moves so many bytes and does so many operations at its best."""
    triads = {int(row.split()[2]): speed for row, speed in machine.items() if "triad" in row}
    fits = min((size for size in triads if size >= moved), default=max(triads))
    return max(moved / triads[fits], operations / machine["float32 GF/s"]) / 1e3


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def say(us: float | None) -> str:
    return "–" if us is None else f"{us:.2f}" if us < 100 else f"{us:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name this expression matches")
    parser.add_argument(
        "--sizes", default="", help="exponents of ten, as 3,5; 0: rows of fixed shapes"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, help="the first core to use; default: the last one")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--json", type=Path, help="file that gets all figures")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.threads, options.quick)

    available = sorted(os.sched_getaffinity(0))
    first = available[-options.threads] if options.core is None else options.core
    cores = [c for c in available if c >= first][: options.threads]
    table = rows()
    sizes = {10 ** int(n) if n != "0" else 0 for n in options.sizes.split(",") if n}
    chosen = [
        i for i, row in enumerate(table)
        if re.search(options.only, row.label) and (not sizes or row.size in sizes)
    ]  # fmt: skip
    kinds = options.libraries.split(",")
    workers = [Worker(kind, options.threads, cores, options.quick) for kind in kinds]
    workers = [worker for worker in workers if worker.ready]
    machine = limits(options.build, options.threads, cores)
    for what, number in machine.items():
        print(f"{what}: {number:.1f}")
    heads = "".join(f"{worker.kind + ' us':>14}" for worker in workers)
    print(f"{'what':<44}{heads}{'x best peer':>13}{'of the limit':>21}")
    kept: list[dict[str, Any]] = []
    for i in chosen:
        row = table[i]
        answers = {worker.kind: worker.ask(i) for worker in workers}
        times = {kind: answer.get("us") for kind, answer in answers.items()}
        peers = {k: v for k, v in times.items() if k != "lamella" and v is not None}
        ours = times.get("lamella")
        entry: dict[str, Any] = {"row": row.label, "size": row.size, "us": times}
        line = f"{row.label:<44}" + "".join(f"{say(times[w.kind]):>14}" for w in workers)
        if ours is not None and peers:
            best = min(peers, key=lambda k: peers[k])
            entry.update(ratio=ours / peers[best], best=best)
            line += f"{entry['ratio']:>8.2f} {best}"
        if ours is not None and machine:
            moved = answers["lamella"]["bytes"]
            operations = answers.get("torch", {}).get("operations", 0)
            entry.update(bytes=moved, operations=operations)
            entry["of_limit"] = least_us(machine, moved, operations) / ours
            line = f"{line:<{69 + 14 * len(workers)}}{100 * entry['of_limit']:>7.0f} %"
        print(line, flush=True)
        error = answers.get("lamella", {}).get("error")
        if error:
            print(f"    lamella: {error}")
        kept.append(entry)
    summary(kept)
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    if len(chosen) == len(table):
        history.keep(f"kernels, {options.threads} threads", kept)


def summary(kept: list[dict[str, Any]]) -> None:
    compared = [entry for entry in kept if "ratio" in entry]
    print()
    for size in sorted({entry["size"] for entry in compared}):
        ratios = [entry["ratio"] for entry in compared if entry["size"] == size]
        name = f"1e{len(str(size)) - 1}" if size else "shapes"
        print(f"{name:<8}{len(ratios):>4} rows, geometric mean {geometric_mean(ratios):.2f} x the "
              f"best peer, {sum(r > 1 for r in ratios)} slower, "
              f"{sum(r > 1.2 for r in ratios)} by more than 1.2 x")  # fmt: skip
    if compared:
        ratios = [entry["ratio"] for entry in compared]
        print(f"{'all':<8}{len(ratios):>4} rows, geometric mean {geometric_mean(ratios):.2f} x, "
              f"{sum(r > 1 for r in ratios)} slower, {sum(r > 1.2 for r in ratios)} by more than "
              "1.2 x")  # fmt: skip


if __name__ == "__main__":
    main()
