"""Tracing: a function of 1,000 operators, with and without source locations, beside PyTorch.

Prints milliseconds, the best of several rounds: the function itself, a trace of it, a run of the
graph, and torch.jit.trace, torch.fx.symbolic_trace and make_fx where torch is installed.
"""

import sys
import time
import warnings

import lamella

COUNT = 1000


def straight(count=COUNT):
    """A function of `count` operators, each on a line of its own."""
    lines = [f"    x = x {'+' if i % 2 else '*'} y" for i in range(count)]
    names = {"__name__": "straight"}
    text = "\n".join(["def f(x, y):", *lines, "    return x"])
    exec(compile(text, "straight", "exec"), names)
    return names["f"]


def loop(x, y):
    for _ in range(COUNT // 2):
        x = x * y
        x = x + y
    return x


def modules(x, y):
    for _ in range(COUNT // 4):
        x = lamella.nn.functional.linear(x, y)
        x = lamella.nn.functional.relu(x)
        x = x.reshape(2, 2) * 0.5
    return x


def best(work, rounds=15):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def row(name, milliseconds):
    print(f"  {name:44s} {milliseconds:9.2f} ms")


def measure(name, function, shape, needs):
    x, y = lamella.ones(shape).requires_grad_(needs), lamella.ones(shape)
    print(f"{name}{', with gradients' if needs else ''}")
    graph = lamella.trace(function, x, y)

    def trace(**options):
        return best(lambda: lamella.trace(function, x, y, **options))

    row("the function", best(lambda: function(x, y)))
    row("trace, no locations", trace(check=False, locations=False))
    row("trace", trace(check=False))
    row("trace and check", trace())
    row(f"the graph ({len(graph)} nodes)", best(lambda: graph(x, y)))


def main():
    for name, function, shape in (
        ("a line each", straight(), (2, 3)),
        ("a loop", loop, (2, 3)),
        ("linear, relu, reshape, mul", modules, (2, 2)),
    ):
        measure(name, function, shape, False)
        measure(name, function, shape, True)
    try:
        import torch
        from torch.fx import symbolic_trace
        from torch.fx.experimental.proxy_tensor import make_fx
    except ImportError:
        print("torch is not installed")
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    function = straight()
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    print("torch, a line each")
    row("the function", best(lambda: function(x, y)))
    row(
        "torch.jit.trace, no check",
        best(lambda: torch.jit.trace(function, (x, y), check_trace=False), 5),
    )
    row("torch.fx.symbolic_trace", best(lambda: symbolic_trace(function), 5))
    row("make_fx", best(lambda: make_fx(function)(x, y), 3))


if __name__ == "__main__":
    sys.exit(main())
