"""Every rank: opcheck of every form of the operators, with uneven rows, other dtypes and groups.

A job of one rank checks the functional forms, whose gradients are those of one process. In-place
forms change nothing there, so the ranks of larger jobs check them together.
"""

import lamella
import lamella.distributed as dist
from lamella.testing import opcheck

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist
x = (lamella.arange(12.0, dtype=lamella.float64) * 0.3 + 0.5).reshape(4, 3)

ROWS = {
    "all_reduce": [{}, {"deterministic": True}, *({"op": op} for op in "product min max".split())],
    "all_gather": [{}, {"sizes": [4]}],
    "reduce_scatter": [{}, {"sizes": [4]}, {"op": "mean"}, {"op": "max", "deterministic": True}],
    "broadcast": [{}],
    "all_to_all": [{}],
    "gather": [{}, {"sizes": [4]}],
    "scatter": [{}, {"sizes": [4]}],
}


def examine_one_rank():
    for name, rows in ROWS.items():
        op = getattr(ops, name)
        for more in rows:
            opcheck(op.default, (x.clone().requires_grad_(),), more)
            out = lamella.empty(4, 3, dtype=lamella.float64)
            opcheck(op.out, (x,), {**more, "out": out})
        for dtype in (lamella.bfloat16, lamella.float16, lamella.int32, lamella.bool):
            opcheck(op.default, (x.to(dtype),))

    # Both sizes or none, which opcheck would try apart.
    forms = "calls repeatable composite layouts meta out leaks gradients batching trace".split()
    sizes = {"send_sizes": [4], "receive_sizes": [4]}
    opcheck(ops.all_to_all.default, (x.clone().requires_grad_(),), sizes, test_utils=forms)

    # A message of this rank to itself is there for every recv; larger ones would wait for each
    # other.
    forms = "calls repeatable composite meta out inplace leaks trace".split()
    for _ in range(400):
        ops.send(x, 0, 7)
    opcheck(ops.recv.default, (x, 0, 7), test_utils=forms)
    opcheck(ops.recv.out, (x, 0, 7), {"out": lamella.empty_like(x)}, test_utils=forms)
    opcheck(ops.send.default, (x, 0), test_utils=forms)
    opcheck(ops.barrier.default, ())


def examine_together():
    opcheck(ops.all_reduce_.default, (x + rank,))
    opcheck(ops.all_reduce_.default, ((x + rank).bfloat16(), "mean"))
    # Gradients are not compared, as they are another rank's finite differences; broadcast leaves
    # the root's tensor as it is, which the check of calls would report.
    forms = "repeatable composite layouts meta inplace leaks trace".split()
    opcheck(ops.all_to_all_.default, ((x + 10 * rank).repeat(size, 1),), test_utils=forms)
    opcheck(ops.broadcast_.default, (x + rank,), test_utils=forms)


if size == 1:
    examine_one_rank()
else:
    examine_together()
dist.barrier()
print("rank", rank, "done")
