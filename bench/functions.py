"""The JAX functions of the tests, compiled by Lamella and by jax.jit: `make bench functions`.

Each function is lowered to HLO once. Both libraries get its arguments as arrays of their own and
are called in turn on one core, as the process is pinned to it; a figure is the median of several
runs. JAX dispatches synchronously here, so a call is over when it returns. With --times N every
dimension of more than one element is enlarged alike until the largest argument has N times its
elements; functions whose shapes do not allow that are left out.

Prints one JSON object a line, {"row": "lamella NAME" or "jax NAME", "ns": number}, and closing
lines: the geometric mean of Lamella's time over JAX's, how many functions are slower, and the
slowest.

Usage: functions.py [--only REGEX] [--times N] [--quick]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from training import report

ROOT = Path(__file__).resolve().parent.parent
SLOWER = 1.2  # what a function may take, in times of jax.jit
Rows = dict[str, float]


def prepare() -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import jax

    import lamella

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    lamella.set_num_threads(1)


def enlarged(arguments: tuple[Any, ...], times: int) -> tuple[Any, ...]:
    """The arguments with enlarged dimensions; elements are repeated."""
    import jax
    import numpy as np

    arrays = [leaf for leaf in jax.tree.leaves(arguments) if isinstance(leaf, jax.Array)]
    largest = max(arrays, key=lambda leaf: leaf.size, default=None)
    rank = 0 if largest is None else sum(n > 1 for n in largest.shape)
    if rank == 0:
        raise ValueError("no dimension to enlarge")
    factor = max(2, round(times ** (1 / rank)))

    def enlarge(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf
        return jax.numpy.asarray(np.tile(leaf, [factor if n > 1 else 1 for n in leaf.shape]))

    return jax.tree.map(enlarge, arguments)


def functions(times: int, only: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    import jax
    from jax_programs import TABLES

    wanted = re.compile(only)
    for table, made in TABLES.items():
        for name, (function, arguments) in made().items():
            name = f"{table} {name}"
            if not wanted.search(name):
                continue
            if times > 1:
                try:
                    given = enlarged(arguments, times)
                    jax.eval_shape(function, *given)
                except (ValueError, TypeError, AssertionError):
                    continue
                yield name, function, given
            else:
                yield name, function, arguments


def medians(calls: list[Callable[[], Any]], rounds: int, seconds: float) -> list[float]:
    """Nanoseconds of each call, asked in turn."""
    inner = []
    for call in calls:
        call()
        begin = time.perf_counter()
        call()
        call()
        once = (time.perf_counter() - begin) / 2
        inner.append(max(1, int(seconds / max(once, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, seen in zip(calls, inner, times):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            seen.append((time.perf_counter() - begin) / count)
    return [statistics.median(seen) * 1e9 for seen in times]


def measure(
    function: Callable[..., Any], arguments: tuple[Any, ...], quick: bool
) -> tuple[float, float]:
    """Nanoseconds of Lamella and of jax.jit."""
    import jax
    from jax_programs import Program

    import lamella

    lowered = Program(function, arguments)
    program = lamella.hlo.compile(lowered.text)
    tensors = [lamella.tensor(array) for array in lowered.given]
    compiled = jax.jit(function)
    ours, peer = medians(
        [lambda: program(*tensors), lambda: compiled(*arguments)],
        *((3, 2e-4) if quick else (7, 2e-3)),
    )
    return ours, peer


def ratios(rows: Rows) -> Rows:
    """By function, Lamella's time over JAX's."""
    names = (row.removeprefix("jax ") for row in rows if row.startswith("jax "))
    return {name: rows[f"lamella {name}"] / rows[f"jax {name}"] for name in names}


def geometric_mean(rows: Rows) -> float:
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios(rows).values()))


def slower(rows: Rows) -> list[str]:
    """The functions that are slower than they may be, the slowest first."""
    of = ratios(rows)
    return sorted((name for name in of if of[name] > SLOWER), key=lambda name: -of[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--times", type=int, default=1, metavar="N")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    prepare()
    rows: Rows = {}
    for name, function, arguments in functions(options.times, options.only):
        ours, peer = measure(function, arguments, options.quick)
        for library, ns in (("lamella", ours), ("jax", peer)):
            rows[f"{library} {name}"] = ns
            report(f"{library} {name}", ns)
    if not rows:
        return
    of = ratios(rows)
    print(f"{len(of)} functions, geometric mean {geometric_mean(rows):.3f} x jax.jit")
    print(f"{len(slower(rows))} slower than {SLOWER} x; the slowest:")
    for name in sorted(of, key=lambda name: -of[name])[:15]:
        times = f"{rows[f'lamella {name}'] / 1e3:.1f} and {rows[f'jax {name}'] / 1e3:.1f} us"
        print(f"  {of[name]:6.2f} x  {name}: {times}")


if __name__ == "__main__":
    main()
