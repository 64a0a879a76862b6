"""HLO programs compiled by Lamella and by jax.jit: nanoseconds of one call.

Usage: programs.py [NAME...]
Prints one JSON object a line, {"row": name, "ns": number}: "lamella NAME", "jax NAME" and, if an
argument can be donated, "jax donated NAME". Each uses one thread.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import numpy as np
from training import report


def median_ns(call: Callable[[], object], seconds: float = 0.6) -> float:
    call()
    begin = time.perf_counter()
    call()
    once = max(time.perf_counter() - begin, 1e-7)
    inner = max(1, int(0.002 / once))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - begin) / inner)
    return statistics.median(times) * 1e9


def programs() -> dict[str, tuple[Callable, tuple]]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    random = np.random.default_rng(0)

    def f(*sizes: int) -> np.ndarray:
        return random.normal(size=sizes).astype(np.float32)

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def gate(x, bias):
        return x * jax.nn.sigmoid(x) + bias

    def normalise(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def scan(x, rows):
        def step(state, row):
            state = jnp.tanh(state * 0.9 + row)
            return state, state

        return lax.scan(step, x, rows)

    def loop(x):
        return lax.fori_loop(0, 10000, lambda _, v: v * 0.999 + 0.5, x)

    table: dict[str, tuple[Callable, tuple]] = {}
    for n in (10**3, 10**5, 10**7):
        table[f"gelu {n:.0e}"] = (gelu, (f(n),))
        table[f"gate {n:.0e}"] = (gate, (f(n // 100, 100), f(100)))
        table[f"normalise {n:.0e}"] = (normalise, (f(n // 100, 100),))
        table[f"softmax {n:.0e}"] = (jax.nn.softmax, (f(n // 100, 100),))

    def train(w1, b1, w2, b2, x, y):
        def loss(weights):
            w1, b1, w2, b2 = weights
            scores = jax.nn.relu(x @ w1 + b1) @ w2 + b2
            return -(jax.nn.log_softmax(scores) * y).sum(-1).mean()

        value, slopes = jax.value_and_grad(loss)((w1, b1, w2, b2))
        return (value, *(w - 0.1 * s for w, s in zip((w1, b1, w2, b2), slopes)))

    one_of_ten = np.eye(10, dtype=np.float32)[random.integers(0, 10, size=32)]
    table["MLP step"] = (train, (f(64, 64), f(64), f(64, 10), f(10), f(32, 64), one_of_ten))
    table["scan of 10000"] = (scan, (f(32), f(10000, 32)))
    table["loop of 10000"] = (loop, (f(32),))
    table["tiny call"] = (lambda x: x + 1, (f(4),))
    return table


def measure(name: str, function: Any, arguments: tuple[Any, ...]) -> None:
    import jax

    import lamella

    text = jax.jit(function).lower(*arguments).as_text("hlo")
    program = lamella.hlo.compile(text)
    tensors = [lamella.tensor(a) for a in arguments]
    report(f"lamella {name}", median_ns(lambda: program(*tensors)))
    arrays = [jax.numpy.asarray(a) for a in arguments]
    jitted = jax.jit(function)
    report(f"jax {name}", median_ns(lambda: jax.block_until_ready(jitted(*arrays))))
    shape = jax.eval_shape(function, *arguments)
    if getattr(shape, "shape", None) == arguments[0].shape:
        given = jax.jit(function, donate_argnums=0)
        state = [jax.numpy.asarray(arguments[0]) + 0]

        def call() -> None:
            state[0] = given(state[0], *arrays[1:])
            state[0].block_until_ready()

        report(f"jax donated {name}", median_ns(call))


def main() -> None:
    import lamella

    lamella.set_num_threads(1)
    for name, (function, arguments) in programs().items():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        measure(name, function, arguments)


if __name__ == "__main__":
    main()
