"""What each door of lamella.bridge has, asked of the doors: the table of docs/bridge.md.

Usage: matrix.py LIBRARY, that of tests/bridge, prints the table. A probe gives the word of its
place in the table, or nothing for "yes".
"""

import sys

import numpy as np

import lamella


def _torch(path):
    import torch

    ops = lamella.bridge.torch(path).cases
    x = torch.tensor([1.0, 2.0])

    def writes():
        assert ops.raise_by_(x.clone(), 1.0).tolist() == [2, 3]
        assert ops.midpoint(x, x, out=torch.empty(2)).tolist() == [1, 2]

    def views():
        return "views" if ops.row(x[None], 0).data_ptr() == x.data_ptr() else "copies"

    def gradients():
        leaf = x.clone().requires_grad_()
        value = ops.cube(leaf).sum()
        for expected in ([3, 12], [6, 12], [6, 6]):
            (value,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
            assert value.tolist() == expected

    def compiled():
        f = torch.compile(lambda v: ops.cube(v) + 1, fullgraph=True, backend="aot_eager")
        assert f(x).tolist() == [2, 9]

    def autocast():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert ops.lower(x).dtype == torch.bfloat16

    def exported():
        class Model(torch.nn.Module):
            def forward(self, v):
                return ops.cube(v)

        assert torch.export.export(Model(), (x,)).module()(x).tolist() == [1, 8]

    func = torch.func
    more = {
        "writes": writes, "views": views, "gradients": gradients, "compiled": compiled,
        "exported": exported, "autocast": autocast,
        "tangents": lambda: func.jvp(ops.cube, (x,), (x,)),
        "batches": lambda: func.vmap(ops.cube)(x),
        "jacobians": lambda: (func.jacrev(ops.cube)(x), func.jacfwd(ops.cube)(x)),
        "hessians": lambda: func.hessian(lambda v: ops.cube(v).sum())(x),
    }  # fmt: skip
    return ops, x, more


def _jax(path):
    import jax

    ops = lamella.bridge.jax(path).cases
    x = jax.numpy.array([1.0, 2.0])

    def gradients():
        f = jax.grad(jax.grad(jax.grad(ops.cube)))
        assert f(3.0) == 6

    def views():
        assert ops.row(x[None], 0).tolist() == [1, 2]
        return "copies"  # arrays of JAX are never written

    more = {
        "writes": lambda: ops.raise_by_(x, 1.0), "views": views, "gradients": gradients,
        "compiled": lambda: jax.jit(ops.cube)(x), "tangents": lambda: jax.jvp(ops.cube, (x,), (x,)),
        "batches": lambda: jax.jit(jax.vmap(ops.cube))(x),
        "jacobians": lambda: (jax.jacrev(ops.cube)(x), jax.jacfwd(ops.cube)(x)),
        "hessians": lambda: jax.hessian(lambda v: ops.cube(v).sum())(x),
    }  # fmt: skip
    return ops, x, more


def _dlpack(path):
    ops = lamella.bridge.dlpack(path).cases
    x = np.array([1.0, 2.0])

    def views():
        return "views" if np.shares_memory(ops.row(x[None], 0), x) else "copies"

    return ops, x, {"writes": lambda: ops.raise_by_(x.copy(), 1.0), "views": views}


def _common(ops, x):
    """Probes that are the same through each door."""

    def everything():
        ops.everything([x], x, 1, 2.0, True, "abc", [1, 2], [0.5], of=1.0, os="x", bs=[True])

    return {
        "computes": lambda: ops.cube(x),
        "values": everything,
        "tensors": lambda: (ops.wave(x, x), ops.wave(x), ops.squares([x, x])),
        "scalars": lambda: (ops.scaled(x, 2), ops.scaled(x, 0.5), ops.scaled(x, 1j)),
        "results": lambda: ops.parts(x, [1, 2], "first"),
        "others": lambda: ops.pair(x, 2),
    }


ROWS = {
    "computes": "operators that compute",
    "writes": "that write (`op_`, `out=`)",
    "views": "views, as the schema says",
    "values": "`int`, `float`, `bool`, `str`, their optional forms and lists",
    "tensors": "`Tensor?`, `Tensor[]`",
    "scalars": "`Scalar`",
    "results": "several results, a list of results",
    "others": "results that are no tensors",
    "gradients": "gradients, to the third",
    "tangents": "tangents (forward mode)",
    "batches": "batches (`vmap`)",
    "jacobians": "Jacobians, both ways",
    "hessians": "Hessians",
    "compiled": "a compiled program (`torch.compile(fullgraph=True)`, `jax.jit`)",
    "exported": "an exported program (`torch.export`)",
    "autocast": "autocast, by the operator's class",
}


def word_of(probe):
    if probe is None:
        return "no"
    try:
        found = probe()
    except NotImplementedError as error:
        return "refused by name" if ":" in str(error) else "no"
    return found if isinstance(found, str) else "yes"


def table(path):
    doors = []
    for door in (_torch, _jax, _dlpack):
        ops, x, more = door(path)
        doors.append({**_common(ops, x), **more})
    lines = ["| | `bridge.torch` | `bridge.jax` | `bridge.dlpack` |", "|---|---|---|---|"]
    for row, text in ROWS.items():
        lines.append(" | ".join([f"| {text}", *(word_of(d.get(row)) for d in doors)]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sys.argv[1]))
