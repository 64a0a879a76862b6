"""Compiled networks, forward and in training: nanoseconds a call, medians.

Usage: network_rows.py lamella|jax|torch|openvino|onnxruntime [REGEX]
       network_rows.py lamella|jax memory REGEX
Prints one JSON object a line, {"row": name, "ns": number}. Each library uses one thread for each
core that the process may use, in float32. For memory the number is in bytes: the peak over five
calls, minus the memory of the process with weights and data. It includes what compilation leaves
behind, but not its temporary memory. Memory rows run one in a process, because memory kept for
reuse would count for the next row. A missing library is reported on stderr.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from compiled import median_ns
from networks import NETWORKS, WIDTH, Jax, Onnx, Torchlike, Weights
from training import report, status_bytes

# Name, network, shape of the data, whether it is trained.
ROWS: list[tuple[str, str, tuple[int, ...], bool]] = [
    *((f"encoder, {b} x {t} tokens", "encoder", (b, t, WIDTH), False) for b, t in
      ((1, 32), (1, 128), (8, 128))),
    ("training step of the encoder, 8 x 128 tokens", "encoder", (8, 128, WIDTH), True),
    ("small conv net, forward", "conv net", (64, 1, 16, 16), False),
    ("small conv net, training step", "conv net", (64, 1, 16, 16), True),
    ("ResNet-18's shape, forward", "resnet", (1, 3, 224, 224), False),
]  # fmt: skip
RATE = 0.01


def data(shape: tuple[int, ...]) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return random.standard_normal(shape, dtype=np.float32), random.integers(0, 10, shape[0])


def threads() -> int:
    return len(os.sched_getaffinity(0))


def loss_of(ops: Any, network: Any, name: str) -> Callable[..., Any]:
    """Cross entropy of the conv net; the mean square of the encoder's result."""
    if name == "encoder":
        return lambda layers, x, labels: (network(x, layers) ** 2).mean()
    return lambda layers, x, labels: ops.loss(network(x, layers), labels)


def moved(weights: Any, slopes: Any) -> Any:
    if isinstance(weights, (list, tuple)):
        return [moved(w, s) for w, s in zip(weights, slopes)]
    return weights - RATE * slopes


def torchlike(m: Any, name: str, shape: tuple[int, ...], trains: bool) -> Callable[[], Any]:
    m.set_num_threads(threads())
    ops = Torchlike(m)
    network, layers = NETWORKS[name](ops, Weights(m.tensor))
    x, labels = (m.tensor(a) for a in data(shape))
    if not trains:
        compiled = m.compile(network)

        def forward() -> Any:
            with m.no_grad():
                return compiled(x, layers)

        return forward
    loss = loss_of(ops, network, name)

    def step(layers: Any, x: Any, labels: Any) -> Any:
        slopes, value = m.func.grad_and_value(loss)(layers, x, labels)
        return moved(layers, slopes), value

    compiled_step = m.compile(step)

    def train() -> Any:
        with m.no_grad():
            return compiled_step(layers, x, labels)

    return train


def jax_call(name: str, shape: tuple[int, ...], trains: bool) -> Callable[[], Any]:
    ops = Jax()
    jax = ops.jax
    network, layers = NETWORKS[name](ops, Weights(ops.jnp.asarray))
    x, labels = (ops.jnp.asarray(a) for a in data(shape))
    if not trains:
        compiled = jax.jit(network)
        return lambda: jax.block_until_ready(compiled(x, layers))
    loss = loss_of(ops, network, name)

    def step(layers: Any, x: Any, labels: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(layers, x, labels)
        return jax.tree.map(lambda w, s: w - RATE * s, layers, slopes), value

    compiled_step = jax.jit(step)
    return lambda: jax.block_until_ready(compiled_step(layers, x, labels))


def from_onnx(library: str, name: str, shape: tuple[int, ...]) -> Callable[[], Any]:
    ops = Onnx()
    network, layers = NETWORKS[name](ops, Weights(lambda array: array))
    model, (x, _) = ops.model(network, layers, shape), data(shape)
    if library == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads()
        session = onnxruntime.InferenceSession(model, options)
        return lambda: session.run(None, {"x": x})
    import openvino

    core = openvino.Core()
    # Without the word it computes in bfloat16 where the processor can.
    settings = {
        "INFERENCE_NUM_THREADS": threads(),
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
    return lambda: request.infer({0: x}, share_inputs=True)


def call_of(library: str, row: tuple[str, str, tuple[int, ...], bool]) -> Any:
    _, name, shape, trains = row
    if library == "lamella":
        import lamella

        return torchlike(lamella, name, shape, trains)
    if library == "torch":
        import torch

        return torchlike(torch, name, shape, trains)
    if library == "jax":
        return jax_call(name, shape, trains)
    return None if trains else from_onnx(library, name, shape)


def peak(call: Callable[[], Any]) -> int:
    before = status_bytes("VmRSS")
    call()
    call()
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(5):
        call()
    return status_bytes("VmHWM") - before


def main() -> None:
    library = sys.argv[1]
    measures_memory = sys.argv[2:3] == ["memory"]
    wanted = re.compile(sys.argv[-1] if len(sys.argv) > 2 else "")
    for row in ROWS:
        if not wanted.search(row[0]):
            continue
        try:
            call = call_of(library, row)
        except ModuleNotFoundError as error:
            print(
                f"network_rows: {library} is left out, as {error.name} is missing", file=sys.stderr
            )
            return
        if call is not None:
            report(row[0], peak(call) if measures_memory else median_ns(call))


if __name__ == "__main__":
    main()
