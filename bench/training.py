"""Gradients and training steps from Python: nanoseconds, medians over repeats; or peak memory.

Usage: training.py lamella|torch|numpy
       training.py lamella|torch memory MLP|"conv net"
Prints one JSON object a line, {"row": name, "ns": number}; for memory the number is bytes.

Peak memory is measured by the operating system: resident memory is read once the model, the
optimizer and the data exist; the peak is reset (/proc/self/clear_refs), five steps run, and the row
is the new peak (VmHWM) minus the first reading. Gradients, saved tensors, kernels' buffers and an
allocator's cached blocks therefore all count, for both libraries alike.
"""

from __future__ import annotations

import json
import statistics
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any


def report(row: str, number: float) -> None:
    print(json.dumps({"row": row, "ns": round(number, 1)}), flush=True)


def median_ns(call: Callable[[], Any], calls: int, repeats: int = 31) -> float:
    timer = timeit.Timer(call)
    timer.timeit(calls)
    return statistics.median(timer.timeit(calls) / calls * 1e9 for _ in range(repeats))


def digits(np: Any, rows: int) -> tuple[Any, Any]:
    """Data of the shape of scikit-learn's digits: 8 x 8 values from 0 to 1 and a class of 10."""
    random = np.random.default_rng(0)
    return random.random((rows, 64), dtype=np.float32), random.integers(0, 10, rows)


def mlp(m: Any, hidden: int = 128) -> Any:
    nn = m.nn
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def conv_net(m: Any) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def training_step(m: Any, net: Any, x: Any, y: Any) -> Callable[[], Any]:
    optimizer = m.optim.SGD(net.parameters(), lr=0.1)
    cross_entropy = m.nn.functional.cross_entropy

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def call_rows(m: Any) -> None:
    x = m.ones(1, requires_grad=True)

    def multiply() -> None:
        y = x
        for _ in range(10):
            y = y * x
        y.backward()

    report("10 multiplications, forward and backward", median_ns(multiply, 500))

    class Identity(m.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.view_as(value)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    def identity() -> None:
        Identity.apply(x).backward()

    report("Function identity, forward and backward", median_ns(identity, 500))


def step_rows(m: Any) -> None:
    import numpy as np

    images, labels = digits(np, 64)
    x, y = m.from_numpy(images), m.from_numpy(labels)
    report("digits MLP, one step", median_ns(training_step(m, mlp(m), x, y), 100))
    net = training_step(m, conv_net(m), x.reshape(64, 1, 8, 8), y)
    report("digits conv net, one step", median_ns(net, 20))


def numpy_rows() -> None:
    """The MLP's step written out."""
    import numpy as np

    x, y = digits(np, 64)
    random = np.random.default_rng(1)
    w1 = random.normal(0, 0.1, (64, 128)).astype(np.float32)
    w2 = random.normal(0, 0.1, (128, 10)).astype(np.float32)
    b1, b2 = np.zeros(128, np.float32), np.zeros(10, np.float32)
    rate = np.float32(0.1)
    rows = np.arange(64)

    def step() -> None:
        nonlocal w1, w2, b1, b2
        hidden = x @ w1 + b1
        active = np.maximum(hidden, 0)
        scores = active @ w2 + b2
        scores -= scores.max(1, keepdims=True)
        grad = np.exp(scores)
        grad /= grad.sum(1, keepdims=True)
        grad[rows, y] -= 1
        grad /= np.float32(64)
        below = grad @ w2.T
        below[hidden <= 0] = 0
        w2 -= rate * (active.T @ grad)
        b2 -= rate * grad.sum(0)
        w1 -= rate * (x.T @ below)
        b1 -= rate * below.sum(0)

    report("digits MLP, one step", median_ns(step, 100))


def status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def memory_row(m: Any, model: str) -> None:
    import numpy as np

    images, labels = digits(np, 4096)
    x, y = m.from_numpy(images), m.from_numpy(labels)
    if model == "MLP":
        step = training_step(m, mlp(m, 1024), x, y)
    else:
        step = training_step(m, conv_net(m), x.reshape(4096, 1, 8, 8), y)
    before = status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(5):
        step()
    report(model, status_bytes("VmHWM") - before)


def main() -> None:
    kind = sys.argv[1]
    if kind == "numpy":
        numpy_rows()
        return
    import importlib

    m = importlib.import_module(kind)
    m.set_num_threads(1)
    if len(sys.argv) > 2:
        memory_row(m, sys.argv[3])
        return
    call_rows(m)
    step_rows(m)


if __name__ == "__main__":
    main()
