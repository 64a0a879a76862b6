"""Captured graphs on "cuda" against the same calls, for tools/gpu_check.sh.

Prints a line for each that differs; then the time of an encoder of one sentence of 32 tokens,
called, compiled, as a graph and compiled as a graph. The last line has the ratio.
"""

from __future__ import annotations

import sys

import gpu_timings

import lamella
import lamella.nn.functional as F
from lamella import nn


def cases(x: lamella.Tensor):
    """(name, a function without arguments), whose results are those of a replay."""
    w = lamella.randn(64, 64, device="cuda")
    i = lamella.arange(32, device="cuda").flip(0)
    yield "pointwise", lambda: (x * 2 + 1).relu().exp().clamp(max=10)
    yield "rows", lambda: F.layer_norm(x.softmax(-1), (64,))
    yield "product", lambda: (x @ w).tanh()
    yield "bfloat16", lambda: (x.bfloat16() @ w.bfloat16()).float()
    yield "movement", lambda: lamella.cat([x[i], x.flip(1)], 1)
    yield "sort", lambda: x.sort(1)[0]
    yield "convolution", lambda: F.conv1d(x[None], w[:, :32, None])
    yield "attention", lambda: F.scaled_dot_product_attention(*[x.view(1, 2, 16, 64)] * 3)


def differs(name: str, x: lamella.Tensor, fn) -> bool:
    fn()  # kernels and libraries are loaded
    graph = lamella.cuda.CUDAGraph()
    with lamella.cuda.graph(graph):
        made = fn()
    for _ in range(3):
        x.normal_()
        graph.replay()
        if not lamella.allclose(made, fn(), rtol=1e-5, atol=1e-5):
            print(f"{name}: the replay differs")
            return True
    return False


def draws_differ() -> bool:
    """Replays draw what calls draw."""

    def draw():
        return lamella.randn(1000, device="cuda"), F.dropout(lamella.ones(999, device="cuda"))

    draw()
    graph = lamella.cuda.CUDAGraph()
    with lamella.cuda.graph(graph):
        made = draw()
    lamella.cuda.manual_seed(5)
    expected = [[t.tolist() for t in draw()] for _ in range(3)]
    lamella.cuda.manual_seed(5)
    got = [(graph.replay(), [t.tolist() for t in made])[1] for _ in range(3)]
    if got != expected:
        print("random numbers: the replay differs")
    return got != expected


def training_differs() -> bool:
    """A module with its gradients as graphs."""
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).cuda()
    plain = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).cuda()
    plain.load_state_dict(model.state_dict())
    graphed = lamella.cuda.make_graphed_callables(model, (lamella.randn(32, 64, device="cuda"),))
    x = lamella.randn(32, 64, device="cuda")
    grads = []
    for one in (graphed, plain):
        one(x).square().mean().backward()
        grads.append([p.grad for p in one.parameters()])
    same = all(lamella.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(*grads))
    if not same:
        print("gradients: the replay differs")
    return not same


def encoder_times() -> tuple[dict[str, float], bool]:
    """Milliseconds by way, and whether a way's result differs."""
    stands_in = "stand-in" in lamella.cuda.get_device_name()
    rows = gpu_timings.Rows(lamella, 10**4 if stands_in else 1)
    model = rows.network(384, 12, 1 if stands_in else 6, causal=False).eval()
    x = lamella.randn(1, 32, 384, device="cuda")
    ways = {
        "called": model,
        "compiled": lamella.compile(model),
        "compiled as a graph": lamella.compile(model, mode="reduce-overhead"),
    }
    times, wrong = {}, False
    with lamella.no_grad():
        expected = model(x)
        for name, fn in ways.items():
            for _ in range(3):
                made = fn(x)
            if not lamella.allclose(made, expected, rtol=1e-3, atol=1e-3):
                print(f"encoder, {name}: the result differs")
                wrong = True
            times[name] = rows.milliseconds(lambda fn=fn: fn(x), 2 if stands_in else 50)
        graph = lamella.cuda.CUDAGraph()
        with lamella.cuda.graph(graph):
            model(x)
        times["as a graph"] = rows.milliseconds(graph.replay, 2 if stands_in else 50)
    return times, wrong


def main() -> int:
    lamella.manual_seed(1)
    x = lamella.randn(32, 64, device="cuda")
    checks = [lambda name=name, fn=fn: differs(name, x, fn) for name, fn in cases(x)]
    wrong = 0
    for check in [*checks, draws_differ, training_differs]:
        try:
            wrong += check()
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
            wrong += 1
    times, differ = encoder_times()
    for name, time in times.items():
        print(f"encoder 1 × 32, {name}: {time:.3f} ms")
    ratio = times["compiled as a graph"] / times["compiled"]
    print(
        f"{len(checks) + 2} graphs, {wrong} differ; encoder {times['compiled']:.3f} ms compiled, "
        f"{times['compiled as a graph']:.3f} as a graph ({ratio:.2f})"
    )
    return 1 if wrong or differ else 0


if __name__ == "__main__":
    sys.exit(main())
