"""Every rank: the operators against one process's computation from all ranks' inputs."""

import numpy as np

import lamella
import lamella.distributed as dist
from lamella.testing import opcheck

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist

REAL = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
ALL = REAL + ["bool", "complex64", "complex128"]


def value(r, shape, dtype, seed=0):
    """The input of rank r; every rank can compute it."""
    numbers = np.random.default_rng([r, seed]).integers(1, 4, shape)
    return lamella.tensor(numbers.tolist()).reshape(shape).to(getattr(lamella, dtype))


def same(got, expected):
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.tolist() == expected.tolist(), (got, expected)


def refused(text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        assert str(error) == text, (str(error), text)
    else:
        raise AssertionError(f"expected: {text}")


def fold(values, op):
    if values[0].dtype == lamella.bool:
        stacked = lamella.stack(values)
        return stacked.any(0) if op in ("sum", "max") else stacked.all(0)
    result = values[0]
    for v in values[1:]:
        if op in ("sum", "mean"):
            result = result + v
        elif op == "product":
            result = result * v
        else:
            result = (lamella.minimum if op == "min" else lamella.maximum)(result, v)
    return result / len(values) if op == "mean" else result


def reductions(dtype):
    names = ["sum", "product"]
    if not dtype.startswith("complex"):
        names += ["min", "max"]
    if dtype.startswith(("float", "bfloat", "complex")):
        names.append("mean")
    return names


# Every dtype, shape, reduction and form of all_reduce.
for dtype in ALL:
    for shape in [(), (0,), (5,), (3, 2)]:
        everyone = [value(r, shape, dtype) for r in range(size)]
        mine = everyone[rank]
        for op in reductions(dtype):
            expected = fold(everyone, op)
            for deterministic in (False, True):
                same(ops.all_reduce(mine, op, 0, deterministic), expected)
            kept = mine.clone()
            assert ops.all_reduce_(kept, op) is kept
            same(kept, expected)
            out = lamella.empty([0], dtype=mine.dtype)
            same(ops.all_reduce(mine, op, out=out), expected)
            same(mine, everyone[rank])
            work = dist.all_reduce(kept := mine.clone(), op, async_op=True)
            work.wait()
            same(kept, expected)
        same(ops.broadcast(mine, size - 1), everyone[-1])

# Special values: NaN of any rank wins, signed zeros and infinities stay.
for dtype in ("float16", "bfloat16", "float32", "float64"):
    x = lamella.tensor(
        [
            float("nan") if rank == 0 else 1.0,
            float("nan") if rank else -1.0,
            float("inf"),
            5.0 - rank,
        ]
    ).to(getattr(lamella, dtype))
    for op in ("min", "max"):
        got = ops.all_reduce(x, op).tolist()
        assert np.isnan(got[0]) and (np.isnan(got[1]) or size == 1) and got[2] == float("inf"), got
        assert got[3] == (5.0 - (size - 1) if op == "min" else 5.0)

# Rows: even and uneven numbers of them, none included; not contiguous as well.
for dtype in ("float32", "bfloat16", "int8", "bool", "complex128"):
    for sizes in [None, [r for r in range(size)], [2 * (r == 0) for r in range(size)]]:
        rows = [2] * size if sizes is None else sizes
        everyone = [value(r, (rows[r], 3), dtype) for r in range(size)]
        mine = everyone[rank]
        for form in (mine, mine.t().contiguous().t()):
            same(ops.all_gather(form, sizes), lamella.cat(everyone))
            got = ops.gather(form, size - 1, sizes)
            same(got, lamella.cat(everyone) if rank == size - 1 else mine[:0])
        whole = [value(r, (sum(rows), 3), dtype, seed=1) for r in range(size)]
        part = slice(sum(rows[:rank]), sum(rows[: rank + 1]))
        for op in reductions(dtype):
            for deterministic in (False, True):
                got = ops.reduce_scatter(whole[rank], op, sizes, 0, deterministic)
                same(got, fold(whole, op)[part])
        same(ops.scatter(whole[rank], 0, sizes), whole[0][part])
        if sizes is not None:  # rank s sends sizes[r] rows to rank r
            everyone = [value(r, (sum(sizes), 2), dtype) for r in range(size)]
            expected = lamella.cat([e[part] for e in everyone])
            same(ops.all_to_all(everyone[rank], sizes, [sizes[rank]] * size), expected)
everyone = [value(r, (2 * size, 2), "float32") for r in range(size)]
expected = lamella.cat([e[2 * rank : 2 * rank + 2] for e in everyone])
same(ops.all_to_all(everyone[rank]), expected)
kept = everyone[rank].clone()
same(ops.all_to_all_(kept), expected)

# From rank to rank, around a ring.
if size > 1:
    x = value(rank, (4,), "float64")
    before, after = (rank - 1) % size, (rank + 1) % size
    got = lamella.empty([4], dtype=lamella.float64)
    works = [dist.irecv(got, before, tag=3), dist.isend(x, after, tag=3)]
    for work in works:
        work.wait()
        assert work.is_completed()
    same(got, value(before, (4,), "float64"))
    if rank == 0:
        ops.send(x, 1)
    elif rank == 1:
        same(ops.recv(lamella.empty(4, dtype=lamella.float64), 0), value(0, (4,), "float64"))

# Groups: numbers of the same ranks, other orders, and ranks that are not members.
backwards = dist.new_group(list(range(size))[::-1], sort_ranks=False)
same(
    ops.all_gather(lamella.tensor([rank]), None, backwards.number),
    lamella.tensor(list(range(size))[::-1]),
)
assert dist.new_group(list(range(size))[::-1], sort_ranks=False).number == backwards.number
assert dist.get_process_group_ranks(dist.new_group(list(range(size))[::-1])) == list(range(size))
evens = dist.new_group(list(range(0, size, 2)))
assert (evens is None) == (rank % 2 == 1)
if evens is not None:
    assert dist.get_rank(evens) == rank // 2
    assert dist.get_process_group_ranks(evens) == list(range(0, size, 2))
    dist.all_reduce(x := lamella.tensor([rank]), group=evens)
    assert x.item() == sum(range(0, size, 2))
    # A group of all ranks has their own numbers.
    for call, message in (
        ()
        if size == 1
        else (
            (
                lambda: dist.broadcast(x, src=1, group=evens),
                "broadcast: expected 'src' to be a rank of the group "
                f"{list(range(0, size, 2))}, got 1",
            ),
            (
                lambda: dist.gather(x, dst=0, group=evens, group_dst=0),
                "gather: expected 'dst' or 'group_dst', got both, 0 and 0",
            ),
            (
                lambda: dist.get_group_rank(evens, 1),
                "get_group_rank: expected 'global_rank' to be a rank of the group "
                f"{list(range(0, size, 2))}, got 1",
            ),
        )
    ):
        try:
            call()
        except ValueError as error:
            assert str(error) == message, error
        else:
            raise AssertionError(message)

# Gradients: those of the sum of all ranks' losses.
weights = [value(r, (size * 2, 3), "float64", seed=2) + 0.5 for r in range(size)]
inputs = [value(r, (size * 2, 3), "float64", seed=3) + 0.25 for r in range(size)]


def gradient(call, reference, rows=size * 2):
    """The gradient of sum(weight * result) on all ranks, against one process's."""
    mine = inputs[rank][:rows].clone().requires_grad_()
    (call(mine) * weights[rank][: call(mine.detach()).shape[0]]).sum().backward()
    everyone = [x[:rows].clone().requires_grad_() for x in inputs]
    results = reference(everyone)
    total = sum((y * w[: y.shape[0]]).sum() for y, w in zip(results, weights))
    (expected,) = lamella.autograd.grad(total, [everyone[rank]], allow_unused=True)
    expected = lamella.zeros_like(mine) if expected is None else expected
    assert lamella.allclose(mine.grad, expected, rtol=1e-12, atol=1e-12), (mine.grad, expected)


for op in ("sum", "mean", "product", "max", "min"):

    def reduce_all(xs, op=op):
        if op == "max":
            return [lamella.stack(xs).amax(0)] * size
        if op == "min":
            return [lamella.stack(xs).amin(0)] * size
        return [fold(xs, op)] * size

    gradient(lambda x, op=op: ops.all_reduce(x, op), reduce_all)
    gradient(
        lambda x, op=op: ops.reduce_scatter(x, op),
        lambda xs: [reduce_all(xs)[0][2 * r : 2 * r + 2] for r in range(size)],
    )
gradient(ops.all_gather, lambda xs: [lamella.cat(xs)] * size, rows=2)
gradient(lambda x: ops.broadcast(x, size - 1), lambda xs: [xs[-1]] * size)
gradient(
    ops.all_to_all,
    lambda xs: [lamella.cat([x[2 * r : 2 * r + 2] for x in xs]) for r in range(size)],
)
gradient(ops.gather, lambda xs: [lamella.cat(xs)] + [xs[0][:0]] * (size - 1), rows=2)
gradient(ops.scatter, lambda xs: [xs[0][2 * r : 2 * r + 2] for r in range(size)])

# vmap: one message for all examples.
batch = value(rank, (5, size * 2, 3), "float64")
for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "scatter"):
    one = getattr(ops, name)
    same(lamella.vmap(one)(batch), lamella.stack([one(x) for x in batch]))
    same(
        lamella.vmap(one, in_dims=1, out_dims=1)(batch.transpose(0, 1)),
        lamella.stack([one(x) for x in batch], 1),
    )

    kept = batch.clone()
    if hasattr(ops, name + "_"):
        inplace = getattr(ops, name + "_")
        lamella.vmap(lambda x, inplace=inplace: inplace(x) * 1)(kept)
        same(kept, lamella.stack([one(x) for x in batch]))
got = lamella.vmap(lambda x: ops.gather(x, size - 1))(batch)
same(got, lamella.stack([ops.gather(x, size - 1) for x in batch]))
uneven = [2 * size - 1] + [1] * (size - 1)
for name in ("reduce_scatter", "scatter"):
    one = getattr(ops, name)
    whole = value(rank, (5, sum(uneven), 3), "bfloat16")
    got = lamella.vmap(lambda x, one=one: one(x, sizes=uneven))(whole)
    same(got, lamella.stack([one(x, sizes=uneven) for x in whole]))
for name in ("all_gather", "gather"):
    one, part = getattr(ops, name), value(rank, (5, uneven[rank], 3), "float16")
    got = lamella.vmap(lambda x, one=one: one(x, sizes=uneven))(part)
    same(got, lamella.stack([one(x, sizes=uneven) for x in part]))
if size > 1 and rank < 2:
    mine = lamella.ones(5, 3) * rank
    if rank == 0:
        lamella.vmap(lambda x: ops.send(x, 1))(mine + 7)
    else:
        same(lamella.vmap(lambda x: ops.recv(x, 0))(mine), lamella.full([5, 3], 7.0))

# Meta, traces, and opcheck, whose gradients are those of a group of one.
meta = lamella.empty([size, 3], device="meta")
assert ops.all_gather(meta).shape == (size * size, 3)
assert ops.reduce_scatter(meta).shape == (1, 3)
graph = lamella.trace(lambda x: ops.all_reduce(x * 2) + 1, inputs[rank])
same(graph(inputs[rank]), ops.all_reduce(inputs[rank] * 2) + 1)
compiled = lamella.compile(lambda x: ops.all_reduce(x * 2) + 1)
same(compiled(inputs[rank]), ops.all_reduce(inputs[rank] * 2) + 1)
alone = dist.new_group([rank]).number
x = inputs[rank].clone().requires_grad_()
for name in (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "gather",
    "scatter",
):
    opcheck(getattr(ops, name).default, (x,), {"group": alone})

# Errors, to the letter.
ones = lamella.ones(size, 2)
refused(
    "all_reduce: expected 'op' to be sum, product, min, max or mean, got average",
    ops.all_reduce,
    ones,
    "average",
)
refused(
    "all_reduce: expected 'self' to have a dtype with an order for op min, got complex64",
    ops.all_reduce,
    ones.to(lamella.complex64),
    "min",
)
refused(
    "all_reduce: expected 'self' to have a floating-point or complex dtype for op mean, "
    "got int64",
    ops.all_reduce,
    lamella.tensor([1]),
    "mean",
)
refused(
    f"broadcast: expected 'root' to be a rank of the group's {size}, got {size}",
    ops.broadcast,
    ones,
    size,
)
refused(
    "all_gather: expected 'group' to be one of new_group(), got 4000",
    ops.all_gather,
    ones,
    None,
    4000,
)
refused(
    f"all_gather: expected 'self' to have 7 rows, as 'sizes' says, got {size}",
    ops.all_gather,
    ones,
    [7] * size,
)
refused(
    "all_gather: expected 'self' to have rows, got a tensor without dimensions",
    ops.all_gather,
    lamella.tensor(1.0),
)
refused(
    "wait: expected 'work' to be one that was begun and not waited for, got 123456",
    ops.wait,
    123456,
)
if size > 1:
    refused(
        f"reduce_scatter: expected 'self' to have as many rows for each of the {size} ranks, or "
        "the sizes to be given, got 1 rows",
        ops.reduce_scatter,
        ones[:1],
    )
    refused(f"new_group: expected 'ranks' to be below {size}, got [{size}]", ops.new_group, [size])

# PyTorch's lists and objects.
parts = [lamella.empty(r + 1) for r in range(size)]
dist.all_gather(parts, lamella.full([rank + 1], float(rank)))
for r, part in enumerate(parts):
    same(part, lamella.full([r + 1], float(r)))
dist.reduce_scatter(mine := lamella.zeros(2), [lamella.full([2], float(r)) for r in range(size)])
same(mine, lamella.full([2], float(rank * size)))
dist.gather(
    lamella.tensor([rank]),
    parts := [lamella.tensor([0]) for _ in range(size)] if rank == 0 else None,
)
assert rank or [p.item() for p in parts] == list(range(size))
dist.scatter(
    got := lamella.tensor([0]),
    [lamella.tensor([r * r]) for r in range(size)] if rank == 0 else None,
)
assert got.item() == rank * rank
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
assert objects == [{"rank": r, "text": "x" * r} for r in range(size)]
dist.broadcast_object_list(box := [rank, "a"], src=size - 1)
assert box == [size - 1, "a"]
dist.barrier()
dist.barrier(async_op=True).wait()
dist.destroy_process_group()
assert not dist.is_initialized()
refused(
    "all_reduce: expected the job to have been started with init_process_group()",
    ops.all_reduce,
    ones,
)
print("rank", rank, "done")
