"""What a custom operator written in Python costs over its function, here and in PyTorch.

    python bench/layers_custom_op.py

Nanoseconds over the plain function, least of several rounds: a call without gradients, one with an
input that requires grad (the node is recorded), and a no-op TorchDispatchMode over a small add.
"""

import importlib
import sys
import time


def least(call, count, rounds=7):
    call()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e9


def measure(library, count):
    x = library.ones(2)
    leaf = library.ones(2, requires_grad=True)
    result = library.ones(2)

    def function(a, b, scale=2.0):
        return result

    tensor = library.Tensor
    hints = {"a": tensor, "b": tensor, "scale": float, "return": tensor}

    def named(name):
        def op(a, b, scale=2.0):
            return result

        op.__annotations__ = hints
        return library.library.custom_op(f"bench_custom::{name}", op, mutates_args=())

    plain, recorded = named("plain"), named("recorded")

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    def backward(ctx, grad):
        return grad, grad, None

    recorded.register_autograd(backward, setup_context=setup)
    base = least(lambda: function(x, x), count)
    rows = {
        "function": base,
        "call": least(lambda: plain(x, x), count) - base,
        "through lamella.ops": least(lambda op=library.ops.bench_custom.plain: op(x, x), count)
        - base,
        "registered, no grad": least(lambda: recorded(x, x), count) - base,
    }

    # A node keeps its output's tensor: each call needs a new one.
    def fresh(a, b, scale=2.0):
        return a.detach()

    new = library.library.custom_op("bench_custom::fresh", _typed(fresh, hints), mutates_args=())
    kept = library.library.custom_op("bench_custom::kept", _typed(_clone, hints), mutates_args=())
    kept.register_autograd(backward, setup_context=setup)
    del new
    base = least(lambda: _clone(x, x), count)
    rows["with grad"] = least(lambda: kept(leaf, x), count) - base
    mode = importlib.import_module(f"{library.__name__}.utils._python_dispatch").TorchDispatchMode

    class NoOp(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    base = least(lambda: x + x, count)
    with NoOp():
        rows["no-op mode"] = least(lambda: x + x, count) - base
    return rows


def _clone(a, b, scale=2.0):
    return a.clone()


def _typed(function, hints):
    function.__annotations__ = hints
    return function


def main():
    import lamella

    results = {"lamella": measure(lamella, 20000)}
    try:
        import torch
    except ImportError:
        pass
    else:
        results["torch"] = measure(torch, 3000)
    for row in results["lamella"]:
        numbers = "".join(f"{name} {rows[row]:9.0f} ns   " for name, rows in results.items())
        print(f"{row:24}{numbers}")


if __name__ == "__main__":
    sys.exit(main())
