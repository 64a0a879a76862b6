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
from networks import NETWORKS, WIDTH, Jax, Onnx, Torchlike, Weights, as_bytes
from training import report, status_bytes

# Name, network, shape of the data, whether it is trained, and what numbers are: float32, bfloat16,
# or float32 with int8 weights.
Row = tuple[str, str, tuple[int, ...], bool, str]
LENGTHS = ((1, 32), (1, 128), (8, 128))
ROWS: list[Row] = [
    *((f"encoder, {b} x {t} tokens", "encoder", (b, t, WIDTH), False, "float32")
      for b, t in LENGTHS),
    *((f"encoder in bfloat16, {b} x {t} tokens", "encoder", (b, t, WIDTH), False, "bfloat16")
      for b, t in LENGTHS),
    *((f"encoder with int8 weights, {b} x {t} tokens", "encoder", (b, t, WIDTH), False, "int8")
      for b, t in LENGTHS),
    ("training step of the encoder, 8 x 128 tokens", "encoder", (8, 128, WIDTH), True, "float32"),
    ("small conv net, forward", "conv net", (64, 1, 16, 16), False, "float32"),
    ("small conv net, training step", "conv net", (64, 1, 16, 16), True, "float32"),
    ("ResNet-18's shape, forward", "resnet", (1, 3, 224, 224), False, "float32"),
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


def converted(convert: Callable[[Any], Any], numbers: str) -> Callable[[Any], Any]:
    """What makes the library's own of a weight."""
    if numbers != "int8":
        return convert
    return lambda w: convert(w) if w.ndim == 1 else tuple(map(convert, as_bytes(w)))


def torchlike(m: Any, row: Row) -> Callable[[], Any]:
    _, name, shape, trains, numbers = row
    m.set_num_threads(threads())
    dtype = m.bfloat16 if numbers == "bfloat16" else None
    network, layers = NETWORKS[name](
        Torchlike(m), Weights(converted(lambda a: m.tensor(a, dtype=dtype), numbers))
    )
    x, labels = (m.tensor(a) for a in data(shape))
    x = x.to(dtype or x.dtype)
    if not trains:
        compiled = m.compile(network)

        def forward() -> Any:
            with m.no_grad():
                return compiled(x, layers)

        return forward
    loss = loss_of(Torchlike(m), network, name)

    def step(layers: Any, x: Any, labels: Any) -> Any:
        slopes, value = m.func.grad_and_value(loss)(layers, x, labels)
        return moved(layers, slopes), value

    compiled_step = m.compile(step)

    def train() -> Any:
        with m.no_grad():
            return compiled_step(layers, x, labels)

    return train


def jax_call(row: Row) -> Callable[[], Any]:
    _, name, shape, trains, numbers = row
    ops = Jax()
    jax = ops.jax
    dtype = ops.jnp.bfloat16 if numbers == "bfloat16" else None
    network, layers = NETWORKS[name](
        ops, Weights(converted(lambda a: ops.jnp.asarray(a, dtype), numbers))
    )
    x, labels = (ops.jnp.asarray(a) for a in data(shape))
    x = x.astype(dtype or x.dtype)
    if not trains:
        compiled = jax.jit(network)
        return lambda: jax.block_until_ready(compiled(x, layers))
    loss = loss_of(ops, network, name)

    def step(layers: Any, x: Any, labels: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(layers, x, labels)
        return jax.tree.map(lambda w, s: w - RATE * s, layers, slopes), value

    compiled_step = jax.jit(step)
    return lambda: jax.block_until_ready(compiled_step(layers, x, labels))


def from_onnx(library: str, row: Row) -> Callable[[], Any] | None:
    _, name, shape, _, numbers = row
    if library == "onnxruntime" and numbers == "bfloat16":
        return None  # it has no such kernels
    ops = Onnx()
    network, layers = NETWORKS[name](ops, Weights(converted(lambda array: array, numbers)))
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
        "INFERENCE_PRECISION_HINT": "bf16" if numbers == "bfloat16" else "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
    return lambda: request.infer({0: x}, share_inputs=True)


def call_of(library: str, row: Row) -> Any:
    if library == "lamella":
        import lamella

        return torchlike(lamella, row)
    if library == "torch":
        import torch

        return torchlike(torch, row)
    if library == "jax":
        return jax_call(row)
    return None if row[3] else from_onnx(library, row)


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
