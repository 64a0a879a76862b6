"""Programs of JAX on Lamella and on jaxlib's own CPU client, in turn in two processes.

Usage: jax_programs.py [--threads N] [--rounds N] [NAME...]
Prints one JSON object a line: {"row": NAME, "ns": of Lamella, "peer": of jaxlib}.
Each round times both processes one after the other; a row has the least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def programs() -> dict[str, Program]:
    """Functions to compile, with their arguments."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    r = np.random.default_rng(0)

    def n(*shape: int) -> Any:
        return jnp.asarray(r.standard_normal(shape).astype(np.float32))

    def chain(x: Any) -> Any:
        for k in range(8):
            x = jnp.tanh(x * 1.01 + k) - 0.5 * x
        return x

    def norm(x: Any, g: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)

    def mlp(ws: Any, x: Any) -> Any:
        for w in ws[:-1]:
            x = jax.nn.gelu(x @ w)
        return x @ ws[-1]

    def loss(ws: Any, x: Any, y: Any) -> Any:
        return ((mlp(ws, x) - y) ** 2).mean()

    def step(ws: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(ws, x, y)
        return value, [w - 0.01 * g for w, g in zip(ws, grads)]

    def conv(x: Any, w: Any) -> Any:
        return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME"))

    def rnn(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.tanh(x + h @ w), h.sum()), xs[0], xs)

    ws = [n(256, 512) * 0.05, n(512, 512) * 0.05, n(512, 16) * 0.05]
    key = jax.random.key(0)
    a = n(128, 128)
    spd = a @ a.T + 128 * jnp.eye(128)
    small = n(64)
    index = jnp.asarray(r.integers(0, 4096, 8192))
    q = n(4, 8, 128, 64)
    image, kernel = n(4, 16, 32, 32), n(32, 16, 3, 3)
    return {
        "scalar add": (lambda x: x + 1, (jnp.float32(1),)),
        "vector chain": (chain, (small,)),
        "chain, 64 Ki": (chain, (n(65536),)),
        "chain, 4 Mi": (chain, (n(1 << 22),)),
        "gradient of a chain": (jax.grad(lambda x: chain(x).sum()), (n(65536),)),
        "exp and log": (lambda x: jnp.log1p(jnp.exp(x)), (n(1 << 20),)),
        "sin and cos": (lambda x: jnp.sin(x) * jnp.cos(x), (n(1 << 20),)),
        "sum of rows": (lambda x: x.sum(1), (n(1024, 1024),)),
        "sum of columns": (lambda x: x.sum(0), (n(1024, 1024),)),
        "softmax": (jax.nn.softmax, (n(512, 1024),)),
        "layer norm": (norm, (n(512, 1024), n(1024))),
        "gradient of layer norm": (
            jax.grad(lambda x, g: (norm(x, g) ** 2).sum(), (0, 1)),
            (n(512, 1024), n(1024)),
        ),
        "transpose": (lambda x: x.transpose(2, 0, 1) + 1, (n(64, 128, 128),)),
        "product, 64": (lambda x: x @ x, (n(64, 64),)),
        "product, 512": (lambda x: x @ x, (n(512, 512),)),
        "product of a vector": (lambda x, v: x @ v, (n(1024, 1024), n(1024))),
        "batched product": (lambda x, y: x @ y, (n(32, 64, 64), n(32, 64, 64))),
        "MLP": (mlp, (ws, n(64, 256))),
        "MLP training step": (step, (ws, n(64, 256), n(64, 16))),
        "attention": (attention, (q, q, q)),
        "gradient of attention": (
            jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)),
            (q, q, q),
        ),
        "convolution": (conv, (image, kernel)),
        "gradient of a convolution": (
            jax.grad(lambda x, w: conv(x, w).sum(), (0, 1)),
            (image, kernel),
        ),
        "max pooling": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
            (n(8, 32, 64, 64),),
        ),
        "scan of a cell": (rnn, (n(64, 64) * 0.1, n(100, 8, 64))),
        "gradient of a scan": (
            jax.grad(lambda w, xs: rnn(w, xs)[0].sum()),
            (n(64, 64) * 0.1, n(100, 8, 64)),
        ),
        "loop of scalars": (
            lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.999 + i, x),
            (jnp.float32(1),),
        ),
        "cumulative sum": (lambda x: jnp.cumsum(x, 1), (n(256, 1024),)),
        "sort": (jnp.sort, (n(65536),)),
        "sort with keys": (jnp.argsort, (n(65536),)),
        "top 8": (lambda x: lax.top_k(x, 8), (n(256, 1024),)),
        "random bits": (lambda k: jax.random.bits(k, (65536,)), (key,)),
        "random normal": (lambda k: jax.random.normal(k, (65536,)), (key,)),
        "Cholesky": (jnp.linalg.cholesky, (spd,)),
        "solve": (jnp.linalg.solve, (spd, n(128, 8))),
        "SVD": (lambda x: jnp.linalg.svd(x)[1], (n(64, 64),)),
        "gather": (lambda x, i: x[i], (n(4096, 64), index)),
        "scatter": (lambda x, i, u: x.at[i].add(u), (n(4096, 64), index, n(8192, 64))),
        "Fourier transform": (lambda x: jnp.fft.rfft(x), (n(256, 1024),)),
        "vmap of small products": (
            jax.vmap(lambda m, v: jnp.tanh(m @ v)),
            (n(512, 8, 8), n(512, 8)),
        ),
    }


def first_call() -> tuple[float, Any]:
    """Seconds from a function to its first result: a training step that no process has seen."""
    import jax
    import jax.numpy as jnp

    ws = [jnp.ones((32, 64)) * 0.1, jnp.ones((64, 64)) * 0.1, jnp.ones((64, 4)) * 0.1]
    x, y = jnp.ones((16, 32)), jnp.ones((16, 4))
    jax.block_until_ready((ws, x, y))

    def loss(ws: Any, x: Any, y: Any) -> Any:
        for w in ws[:-1]:
            x = jax.nn.gelu(x @ w)
        return ((x @ ws[-1] - y) ** 2).mean()

    @jax.jit
    def step(ws: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(ws, x, y)
        return value, [w - 0.01 * g for w, g in zip(ws, grads)]

    begin = time.perf_counter()
    jax.block_until_ready(step(ws, x, y))
    return time.perf_counter() - begin, None


def work() -> None:
    """Reads names from stdin, and prints the seconds of one call for each."""
    import jax

    all_programs = programs()
    ready: dict[str, tuple[Any, Any, int]] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name == "first call":
            print(first_call()[0], flush=True)
            continue
        if name not in ready:
            f, arguments = all_programs[name]
            compiled = jax.jit(f)
            jax.block_until_ready(compiled(*arguments))
            begin = time.perf_counter()
            jax.block_until_ready(compiled(*arguments))
            took = max(time.perf_counter() - begin, 1e-6)
            ready[name] = compiled, arguments, max(1, min(2000, int(0.02 / took)))
        compiled, arguments, number = ready[name]
        least = float("inf")
        for _ in range(3):
            begin = time.perf_counter()
            if name == "scalar add":  # the call alone
                for _ in range(number):
                    compiled(*arguments)
            else:
                for _ in range(number):
                    jax.block_until_ready(compiled(*arguments))
            least = min(least, (time.perf_counter() - begin) / number)
        print(least, flush=True)


class Worker:
    """A process that times programs on one of the two clients."""

    def __init__(self, platform: str, threads: int) -> None:
        processors = sorted(os.sched_getaffinity(0))[:threads]
        environment = {
            **os.environ,
            "JAX_PLATFORMS": platform,
            "OMP_NUM_THREADS": str(threads),
            "LAMELLA_CACHE": "off",
        }
        paths = [str(HERE.parent / "build" / "lib" / "python"), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "jax_programs.py"), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )
        self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a worker ended")
        return line.strip()

    def time(self, name: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.line())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", action="store_true")
    options = parser.parse_args()
    if options.work:
        return work()
    workers = [Worker("lamella", options.threads), Worker("cpu", options.threads)]
    names = options.names or ["first call", *names_of_programs()]
    for name in names:
        least = [float("inf")] * 2
        for _ in range(1 if name == "first call" else options.rounds):
            for w, worker in enumerate(workers):
                least[w] = min(least[w], worker.time(name))
        row = {"row": name, "ns": round(least[0] * 1e9, 1), "peer": round(least[1] * 1e9, 1)}
        print(json.dumps(row), flush=True)
    return None


def add_rows(table: Any) -> None:
    """The rows of `make bench jax`, with one thread and with two."""
    for threads in (1, 2):
        table.section(f"programs of JAX, {threads} thread{'s' if threads > 1 else ''}")
        command = [sys.executable, str(HERE / "jax_programs.py"), "--threads", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not rows:
            print(f"jax_programs.py failed:\n{done.stderr[-2000:]}", file=sys.stderr)
            return
        ratios = []
        for row in rows:
            is_first = row["row"] == "first call"
            table.ratio(row["row"], row["ns"], 0.5 if is_first else 1.2, "jaxlib", row["peer"])
            if row["row"] == "scalar add":
                table.limit("scalar dispatch", row["ns"] / 1000, 3, "us")
            if not is_first:
                ratios.append(row["ns"] / row["peer"])
        table.limit("geometric mean", statistics.geometric_mean(ratios), 0.8, "x jaxlib")


def names_of_programs() -> list[str]:
    """The names, read from this file, so that the parent needs no JAX."""
    text = Path(__file__).read_text(encoding="utf-8")
    return re.findall(r'^        "([^"]+)": \(', text, re.M)


if __name__ == "__main__":
    main()
