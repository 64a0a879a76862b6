"""Every rank: large sums, which ranks of one machine compute in shared memory."""

import numpy as np

import lamella
import lamella.distributed as dist

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist
DTYPES = """uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
bool""".split()


def value(r, count, dtype):
    """The input of rank r; every rank can compute it."""
    random = np.random.default_rng([r, count])
    if dtype in ("bool", "uint8"):
        return lamella.tensor(random.integers(0, 2, count)).to(getattr(lamella, dtype))
    numbers = random.standard_normal(count) * 3
    if dtype.startswith("complex"):
        numbers = numbers + 1j * random.standard_normal(count)
    return lamella.from_numpy(numbers).to(getattr(lamella, dtype))


def fold(values, op):
    """The ranks' values, one after the other, as the bits of a sum depend on the order."""
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


def same(got, expected, exact=True, what=""):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if exact:
        assert lamella.equal(got, expected), what
    else:
        assert lamella.allclose(got, expected, rtol=1e-6, atol=1e-6), what


# Counts around what goes through the window at a time, and parts that ranks share unevenly.
for dtype in DTYPES:
    is_complex = dtype.startswith("complex")
    for count in (8193, 300_001) if dtype in ("int8", "bfloat16", "float32") else (70_001,):
        everyone = [value(r, count, dtype) for r in range(size)]
        mine = everyone[rank]
        names = ["sum", "product"]
        names += [] if is_complex else ["min", "max"]
        names += ["mean"] if is_complex or "float" in dtype else []
        for op in names:
            expected = fold(everyone, op)
            exact = not (is_complex and op in ("product", "mean"))
            same(ops.all_reduce(mine, op), expected, exact, (dtype, count, op))
            # Each rank gets its part, which is uneven, and empty on the first of many.
            sizes = [count // (size + 1)] * size
            sizes[0] = 0 if size > 2 else sizes[0]
            sizes[-1] += count - sum(sizes)
            begin = sum(sizes[:rank])
            part = expected[begin : begin + sizes[rank]]
            same(ops.reduce_scatter(mine, op, sizes), part, exact, (dtype, count, op, sizes))
            work = ops.start(
                "reduce_scatter", mine, out := lamella.empty_like(part), op=op, rows=sizes
            )
            ops.wait(work)
            same(out, part, exact, (dtype, count, op, sizes))
        total = fold(everyone, "sum")
        same(ops.all_reduce_(mine.clone(), "sum", 0, True), total)
        dist.all_reduce(kept := mine.clone(), async_op=True).wait()
        same(kept, total)
strided = value(rank, 20_000, "float32").reshape(100, 200).t()
same(
    ops.all_reduce(strided),
    fold([value(r, 20_000, "float32").reshape(100, 200).t() for r in range(size)], "sum"),
)

wholes = [value(r, 6000 * size, "float32").reshape(size * 20, 300) for r in range(size)]
whole, summed = wholes[rank], fold(wholes, "sum")
same(ops.reduce_scatter(whole), summed[rank * 20 : rank * 20 + 20])
same(ops.reduce_scatter(whole.t().contiguous().t()), summed[rank * 20 : rank * 20 + 20])

# NaN of any rank wins.
x = lamella.zeros(5000)
x[rank] = float("nan")
for op in ("sum", "min", "max", "mean"):
    assert ops.all_reduce(x, op).isnan().tolist() == [i < size for i in range(5000)]

# Works of several groups, waited for in another order, with blocking sums behind and between them.
everyone = [value(r, 400_000, "float32") for r in range(size)]
total, rest = fold(everyone, "sum"), dist.new_group(list(range(size))[::-1], sort_ranks=False)
for _ in range(5):
    tensors = [everyone[rank].clone() for _ in range(4)]
    works = [
        dist.all_reduce(t, group=rest if i % 2 else None, async_op=True)
        for i, t in enumerate(tensors)
    ]
    same(ops.all_reduce(everyone[rank]), total)
    for i in (2, 1, 3, 0):
        works[i].wait()
    same(tensors[0], total)
    same(tensors[2], total)
    same(tensors[1], fold(everyone[::-1], "sum"))
    same(tensors[3], tensors[1])

# Ranks that pass other shapes are told so, and go on.
if size > 1:
    for async_op in (False, True):
        try:
            work = dist.all_reduce(lamella.ones(4000 + rank % 2), "max", async_op=async_op)
            if work is not None:
                work.wait()
        except RuntimeError as error:
            told = ", ".join(
                f"rank {r} passes {4000 + r % 2} elements of float32 (max)" for r in range(size)
            )
            assert str(error) == (
                f"all_reduce: expected all ranks of the group to pass the same; {told}"
            ), error
        else:
            raise AssertionError("expected different shapes to be refused")
        same(ops.all_reduce(everyone[rank]), total)

    def refused(call):
        try:
            call()
        except RuntimeError as error:
            return str(error)
        raise AssertionError("expected an error")

    x = lamella.ones(4000)
    all_pass = [f"rank {r} passes 4000 elements of float32 (sum)" for r in range(size)]
    sizes = [4000 - size + 1] + [1] * (size - 1)
    assert refused(lambda: ops.reduce_scatter(x, "sum", sizes if rank == 0 else sizes[::-1])) == (
        "reduce_scatter: expected all ranks of the group to pass the same; "
        + ", ".join(all_pass)
        + ", with other sizes or to another operator"
    )
    text = refused(lambda: ops.all_reduce(x) if rank == 0 else ops.reduce_scatter(x, "sum", sizes))
    assert f"; {all_pass[0]} to all_reduce, {all_pass[1]}" in text, text
    same(ops.all_reduce(everyone[rank]), total)
dist.destroy_process_group()
print("rank", rank, "done")
