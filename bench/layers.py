"""The cost of layers from Python: nanoseconds, medians over repeats.

Usage: layers.py lamella|torch
Prints one JSON object a line, {"row": name, "ns": number}. Rows that end in "function" are the
baselines of other rows: the Python function of a custom operator, or the call without a layer.
"""

import statistics
import sys
import timeit
import warnings

from training import median_ns, report


def custom_operator_rows(m):
    # Annotations are evaluated: the schema comes from them.
    def twice(x: m.Tensor) -> m.Tensor:
        return x.clone()

    plain = m.ones(1)
    needs_grad = m.ones(1, requires_grad=True)
    operator = m.library.custom_op("bench_layers::twice", twice, mutates_args=())
    report("custom operator, the function", median_ns(lambda: twice(plain), 2000))
    report("custom operator", median_ns(lambda: operator(plain), 2000))

    recorded = m.library.custom_op("bench_layers::twice_recorded", twice, mutates_args=())
    recorded.register_autograd(lambda ctx, grad: grad)
    report("custom operator with gradients", median_ns(lambda: recorded(needs_grad), 2000))


def ten(x):
    y = x * x
    y = y + x
    y = y.sin()
    y = y - x
    y = y * y
    y = y.exp()
    y = y + y
    y = y.cos()
    y = y * x
    return y.tanh()


def vmap_rows(m):
    batch = m.ones(8, 1)
    vmap = m.func.vmap
    report("vmap of 10 operators", median_ns(lambda: vmap(ten)(batch), 300))
    report("vmap of 10 operators, the function", median_ns(lambda: ten(batch), 300))


def autocast_rows(m):
    x, y = m.ones(1), m.ones(1)
    report("add, the function", median_ns(lambda: m.add(x, y), 3000))
    with m.autocast("cpu", m.bfloat16):
        report("add in an autocast region", median_ns(lambda: m.add(x, y), 3000))
    a, b = m.ones(4, 4), m.ones(4, 4)
    report("mm, the function", median_ns(lambda: m.mm(a, b), 2000))
    with m.autocast("cpu", m.bfloat16):
        report("mm of 4 x 4 in an autocast region", median_ns(lambda: m.mm(a, b), 1000))


def mode_rows(m):
    if m.__name__ == "torch":
        from torch.utils._python_dispatch import TorchDispatchMode
    else:
        from lamella.utils._python_dispatch import TorchDispatchMode

    class Pass(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x, y = m.ones(1), m.ones(1)
    with Pass():
        report("add under a mode that passes on", median_ns(lambda: m.add(x, y), 1000))


def trace_rows(m):
    def thousand(x):
        y = x
        for _ in range(250):
            y = y * x
            y = y + x
            y = y - x
            y = y.sin()
        return y

    x = m.ones(4)
    if m.__name__ == "torch":

        def trace():
            return m.jit.trace(thousand, x, check_trace=False)
    else:

        def trace():
            return m.trace(thousand, x, check=False)

    trace()
    timer = timeit.Timer(trace)
    ns = statistics.median(timer.timeit(1) * 1e9 for _ in range(15))
    report("trace of 1,000 operators", ns)
    timer = timeit.Timer(lambda: thousand(x))
    ns = statistics.median(timer.timeit(1) * 1e9 for _ in range(15))
    report("trace of 1,000 operators, the function", ns)


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "torch":
        import torch as m

        m.set_num_threads(1)
    else:
        import lamella as m

        m.set_num_threads(1)
    for rows in (custom_operator_rows, vmap_rows, autocast_rows, mode_rows, trace_rows):
        rows(m)


if __name__ == "__main__":
    main()
