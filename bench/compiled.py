"""Compiled functions of Lamella and jax.jit: nanoseconds a call, medians.

Usage: compiled.py lamella|jax [REGEX]
Prints one JSON object a line, {"row": name, "ns": number}. Both libraries use one thread for each
core that the process may use.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from training import digits, report

WIDTH, HEADS, INNER, LAYERS = 384, 12, 1536, 6
Row = tuple[str, Callable[[], Any]]


def median_ns(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """Of single calls, or of runs of ten where a call is short."""
    for _ in range(3):
        call()
    begin = time.perf_counter()
    call()
    several = 10 if time.perf_counter() - begin < 1e-4 else 1
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and len(times) < 20_000:
        begin = time.perf_counter()
        for _ in range(several):
            call()
        times.append((time.perf_counter() - begin) / several)
    return sorted(times)[len(times) // 2] * 1e9


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def encoder_weights() -> list[list[Any]]:
    """Of each layer: query, key, value, output, up and down, each with its bias."""
    shapes = [(WIDTH, WIDTH)] * 4 + [(INNER, WIDTH), (WIDTH, INNER)]
    return [
        [part for out, into in shapes for part in (numbers(out, into) * 0.05, numbers(out))]
        for _ in range(LAYERS)
    ]


def mlp_weights() -> list[Any]:
    return [numbers(128, 64) * 0.1, numbers(128), numbers(10, 128) * 0.1, numbers(10)]


def lamella_rows() -> Iterator[Row]:
    import lamella as m

    functional = m.nn.functional
    m.set_num_threads(len(os.sched_getaffinity(0)))
    array = m.tensor

    def row(name: str, function: Callable[..., Any], *given: Any) -> Row:
        compiled = m.compile(function)

        def call() -> None:
            with m.no_grad():
                compiled(*given)

        return name, call

    x = array(numbers(4))
    compiled = m.compile(m.add)
    yield "calling a compiled function of two small tensors", lambda: compiled(x, x)
    for n in (1_000, 100_000, 10_000_000):
        x, table, bias = array(numbers(n)), array(numbers(n // 1000, 1000)), array(numbers(1000))
        yield row(f"gelu, {n:,}", lambda x: functional.gelu(x, approximate="tanh"), x)
        yield row(f"x sigmoid(x) + b, {n:,}", lambda x, b: x * m.sigmoid(x) + b, table, bias)
        yield row(
            f"normalised rows, {n:,}",
            lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0),
            table,
        )
    images, labels = (array(a) for a in digits(np, 64))
    params = [array(w) for w in mlp_weights()]

    def loss(params: list[Any], images: Any, labels: Any) -> Any:
        a, b, c, d = params
        hidden = m.relu(functional.linear(images, a, b))
        return functional.cross_entropy(functional.linear(hidden, c, d), labels)

    def step(params: list[Any], images: Any, labels: Any) -> Any:
        grads, value = m.func.grad_and_value(loss)(params, images, labels)
        return [p - 0.1 * g for p, g in zip(params, grads)], value

    yield row("training step of the digits' MLP", step, params, images, labels)

    # As it is written for eager calls: backward and optimizer inside, parameters written in place.
    net = m.nn.Sequential(m.nn.Linear(64, 128), m.nn.ReLU(), m.nn.Linear(128, 10))
    optimizer = m.optim.SGD(net.parameters(), lr=0.1)

    def written_in_place(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        value = functional.cross_entropy(net(images), labels)
        value.backward()
        optimizer.step()
        return value

    train = m.compile(written_in_place)
    yield "training step of the digits' MLP, optimizer inside", lambda: train(images, labels)
    layers = [[array(w) for w in layer] for layer in encoder_weights()]

    def encoder(x: Any, layers: list[list[Any]]) -> Any:
        batch, tokens, _ = x.shape
        split = lambda t: t.reshape(batch, tokens, HEADS, -1).transpose(1, 2)  # noqa: E731
        for wq, bq, wk, bk, wv, bv, wo, bo, w1, b1, w2, b2 in layers:
            parts = [split(functional.linear(x, w, b)) for w, b in ((wq, bq), (wk, bk), (wv, bv))]
            seen = functional.scaled_dot_product_attention(*parts).transpose(1, 2)
            x = x + functional.linear(seen.reshape(x.shape), wo, bo)
            x = functional.layer_norm(x, (WIDTH,))
            x = x + functional.linear(functional.gelu(functional.linear(x, w1, b1)), w2, b2)
            x = functional.layer_norm(x, (WIDTH,))
        return x

    for batch, tokens in ((1, 32), (1, 128)):
        x = array(numbers(batch, tokens, WIDTH))
        yield row(f"encoder, {batch} x {tokens} tokens", encoder, x, layers)


def jax_rows() -> Iterator[Row]:
    import jax
    import jax.numpy as jnp

    array = jnp.asarray

    def row(name: str, function: Callable[..., Any], *given: Any) -> Row:
        compiled = jax.jit(function)
        return name, lambda: jax.block_until_ready(compiled(*given))

    def donated(name: str, function: Callable[..., Any], first: Any, *given: Any) -> Row:
        """Each result is the next call's argument, whose memory the program may take."""
        compiled = jax.jit(function, donate_argnums=0)
        last = [first]

        def call() -> None:
            last[0] = jax.block_until_ready(compiled(last[0], *given))

        return name, call

    x = array(numbers(4))
    yield row("calling a compiled function of two small tensors", jnp.add, x, x)
    for n in (1_000, 100_000, 10_000_000):
        x, table, bias = array(numbers(n)), array(numbers(n // 1000, 1000)), array(numbers(1000))
        yield donated(f"gelu, {n:,}", jax.nn.gelu, x)
        chain = lambda x, b: x * jax.nn.sigmoid(x) + b  # noqa: E731
        yield donated(f"x sigmoid(x) + b, {n:,}", chain, jnp.copy(table), bias)
        yield donated(
            f"normalised rows, {n:,}",
            lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
            table,
        )
    images, labels = (array(a) for a in digits(np, 64))
    params = [array(w) for w in mlp_weights()]

    def loss(params: list[Any], images: Any, labels: Any) -> Any:
        a, b, c, d = params
        out = jax.nn.log_softmax(jax.nn.relu(images @ a.T + b) @ c.T + d)
        return -jnp.take_along_axis(out, labels[:, None], 1).mean()

    def step(params: list[Any], images: Any, labels: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, images, labels)
        return [p - 0.1 * g for p, g in zip(params, grads)], value

    yield row("training step of the digits' MLP", step, params, images, labels)
    yield row("training step of the digits' MLP, optimizer inside", step, params, images, labels)
    layers = [[array(w) for w in layer] for layer in encoder_weights()]

    def norm(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def encoder(x: Any, layers: list[list[Any]]) -> Any:
        batch, tokens, _ = x.shape
        split = lambda t: t.reshape(batch, tokens, HEADS, -1)  # noqa: E731
        for wq, bq, wk, bk, wv, bv, wo, bo, w1, b1, w2, b2 in layers:
            parts = [split(x @ w.T + b) for w, b in ((wq, bq), (wk, bk), (wv, bv))]
            seen = jax.nn.dot_product_attention(*parts).reshape(x.shape)
            x = norm(x + seen @ wo.T + bo)
            x = norm(x + jax.nn.gelu(x @ w1.T + b1, approximate=False) @ w2.T + b2)
        return x

    for batch, tokens in ((1, 32), (1, 128)):
        x = array(numbers(batch, tokens, WIDTH))
        yield row(f"encoder, {batch} x {tokens} tokens", encoder, x, layers)


def main() -> None:
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for name, call in {"lamella": lamella_rows, "jax": jax_rows}[sys.argv[1]]():
        if wanted.search(name):
            report(name, median_ns(call))


if __name__ == "__main__":
    main()
