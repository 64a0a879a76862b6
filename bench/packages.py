"""Times operators of published packages, with their C++ built against PyTorch and against Lamella.

The unmodified sources come from the package index and are built by their own setup.py, with one
compiler and the same flags. Each row runs alternately in two processes, on one thread; its ratio is
the median of the turns' ratios.
Usage: packages.py [--only PART_OF_A_ROW]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
Row = Callable[[], Any]

# Each package, and what its Python needs beside it.
PACKAGES = {
    "torch_scatter==2.1.2": [],
    "torchlpc==0.7.2": ["numba==0.68.1", "llvmlite==0.50.0"],
    "torch_householder==1.0.1": [],
    "torch_discounted_cumsum==1.1.0": [],
}
TURNS, SAMPLE_SECONDS = 15, 0.005


def both_ways(rows: dict[str, Row], name: str, function: Callable[..., Any], *inputs: Any) -> None:
    """The function, and the function with its gradients by the inputs of floating point."""

    def backward() -> None:
        result = function(*leaves)
        (result[0] if isinstance(result, tuple) else result).sum().backward()
        for leaf in leaves:
            if hasattr(leaf, "grad"):
                leaf.grad = None

    def leaf(value: Any) -> Any:
        floating = hasattr(value, "is_floating_point") and value.is_floating_point()
        return value.detach().clone().requires_grad_() if floating else value

    leaves = [leaf(value) for value in inputs]
    rows[name] = lambda: function(*inputs)
    rows[f"{name}, with gradients"] = backward


def training_step(torch: Any, parameters: list[Any], loss: Row) -> Row:
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def torch_scatter(torch: Any) -> dict[str, Row]:
    import torch_scatter as package

    rows: dict[str, Row] = {}
    for edges, nodes, width in ((32, 8, 4), (20_000, 2_000, 32)):
        size = f"{edges} x {width}"
        src = torch.randn(edges, width)
        index = torch.randint(0, nodes, (edges,)).sort().values
        pointers = torch.searchsorted(index, torch.arange(nodes + 1))
        by_index = {"index": index, "dim_size": nodes}
        calls = {
            f"scatter {reduce}": partial(package.scatter, dim=0, reduce=reduce, **by_index)
            for reduce in ("sum", "mean", "mul", "max")
        }
        calls["scatter_softmax"] = partial(package.scatter_softmax, dim=0, **by_index)
        calls["segment_coo sum"] = partial(package.segment_coo, **by_index)
        for reduce in ("sum", "max"):
            named = {"indptr": pointers, "reduce": reduce}
            calls[f"segment_csr {reduce}"] = partial(package.segment_csr, **named)
        for name, function in calls.items():
            both_ways(rows, f"{name}, {size}", function, src)
        gather = partial(package.gather_csr, indptr=pointers)
        both_ways(rows, f"gather_csr, {size}", gather, torch.randn(nodes, width))
    for edges, nodes, width in ((2_000, 500, 16), (20_000, 2_000, 64)):
        x, labels = torch.randn(nodes, width), torch.randint(0, 4, (nodes,))
        start, end = torch.randint(0, nodes, (2, edges))
        layers = [torch.nn.Linear(width, width), torch.nn.Linear(width, 4)]

        # The arguments that a loop changes are bound when the function is made.
        def loss(x: Any = x, layers: Any = layers, at: Any = (start, end, labels)) -> Any:
            start, end, labels = at
            for layer in layers:
                messages = torch.relu(layer(x))[start]
                x = package.scatter(messages, end, 0, dim_size=len(labels), reduce="mean")
            return torch.nn.functional.cross_entropy(x, labels)

        parameters = [parameter for layer in layers for parameter in layer.parameters()]
        row = f"training step of two graph layers, {edges} x {width}"
        rows[row] = training_step(torch, parameters, loss)
    return rows


def torchlpc(torch: Any) -> dict[str, Row]:
    from torchlpc import sample_wise_lpc

    rows: dict[str, Row] = {}
    for batch, steps, order in ((1, 16, 2), (8, 4096, 16), (16, 4096, 1)):
        x = torch.randn(batch, steps)
        a = torch.randn(batch, steps, order) * (0.3 / order)
        size = f"{batch} x {steps}, order {order}"
        both_ways(rows, f"sample_wise_lpc, {size}", sample_wise_lpc, x, a)
    x, target = torch.randn(8, 4096), torch.randn(8, 4096)
    poles = torch.zeros(8, 1, 4).requires_grad_()

    def loss() -> Any:
        filtered = sample_wise_lpc(x, 0.2 * poles.tanh().expand(-1, 4096, -1))
        return (filtered - target).square().mean()

    rows["step of fitting a filter, 8 x 4096, order 4"] = training_step(torch, [poles], loss)
    return rows


def torch_householder(torch: Any) -> dict[str, Row]:
    from torch_householder import torch_householder_orgqr

    rows: dict[str, Row] = {}
    for shape in ((4, 4), (64, 32), (8, 128, 64)):
        param = torch.randn(*shape)
        size = " x ".join(map(str, shape))
        both_ways(rows, f"torch_householder_orgqr, {size}", torch_householder_orgqr, param)
    return rows


def torch_discounted_cumsum(torch: Any) -> dict[str, Row]:
    import torch_discounted_cumsum as package

    rows: dict[str, Row] = {}
    for shape in ((2, 8), (64, 4000)):
        x, gamma = torch.randn(*shape), torch.full((shape[0],), 0.99)
        size = " x ".join(map(str, shape))
        for name in ("discounted_cumsum_left", "discounted_cumsum_right"):
            both_ways(rows, f"{name}, {size}", getattr(package, name), x, gamma)
    return rows


def answer(package: str) -> None:
    """Says which rows there are; then times one for each line that comes in, until the last."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = globals()[package](torch)
    calls: dict[str, int] = {}
    print(json.dumps(list(rows)), flush=True)
    for line in sys.stdin:
        row = rows[line.strip()]
        if line not in calls:
            row()
            begin = time.perf_counter()
            row()
            once = max(time.perf_counter() - begin, 1e-7)
            calls[line] = max(1, int(SAMPLE_SECONDS / once))
        begin = time.perf_counter()
        for _ in range(calls[line]):
            row()
        print((time.perf_counter() - begin) / calls[line] * 1e9, flush=True)


class Answering:
    """A process that times rows when it is asked to."""

    def __init__(self, python: list[str], paths: list[Path], package: str) -> None:
        environment = dict(os.environ, OMP_NUM_THREADS="1", LAMELLA_NUM_THREADS="1")
        environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        self.process = subprocess.Popen(
            [sys.executable, *python, __file__, "--answer", package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.rows: list[str] = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended before its rows did")
        return line

    def ns(self, row: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def built(package: str, python: list[str], folder: Path) -> Path | None:
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import index_packages

    source = index_packages.fetched(package, folder)
    if source is not None:
        index_packages.build(source, *python)
    return source


def measure(package: str, wanted: str = "") -> dict[str, tuple[float, float, float]] | str:
    """By row: ns of Lamella, ns of PyTorch, and the ratio; or why there are none."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return "torch is not installed"
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from build_tree import BUILD, PREFIX
    from index_packages import installed

    name = package.split("==")[0]
    needs = [installed(need) for need in PACKAGES[package]]
    ours = built(package, ["-m", "lamella.compat"], BUILD / "packages")
    theirs = built(package, [], BUILD / "packages" / "torch")
    if ours is None or theirs is None or None in needs:
        return "the package index has none"
    beside = [need for need in needs if need is not None]
    pair = (
        Answering(["-m", "lamella.compat"], [PREFIX / "lib" / "python", ours, *beside], name),
        Answering([], [theirs, *beside], name),
    )
    results = {}
    for row in pair[0].rows:
        if wanted in row:
            turns = [[one.ns(row) for one in pair] for _ in range(TURNS)]
            ratio = statistics.median(mine / peer for mine, peer in turns)
            mine, peer = (statistics.median(column) for column in zip(*turns))
            results[row] = (mine, peer, ratio)
    for one in pair:
        one.end()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--answer")
    options = parser.parse_args()
    if options.answer:
        answer(options.answer)
        return
    for package in PACKAGES:
        results = measure(package, options.only)
        if isinstance(results, str):
            print(f"{package}: not run: {results}")
            continue
        for row, (mine, peer, ratio) in results.items():
            print(f"{row:<56}{mine / 1e3:>12.1f} us{peer / 1e3:>12.1f} us{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
