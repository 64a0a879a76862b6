"""Every rank: collectives of tensors on "cuda", with fake or real NCCL and GPUs.

Results are compared with the same collective of CPU tensors.
Usage: ranks_nccl.py LIBRARY, the fake library, or the one that gives tensors GPU memory.
"""

import ctypes
import os
import sys

import numpy as np

import lamella
import lamella.distributed as dist

# On a machine with several GPUs every rank has its own.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
fake = ctypes.CDLL(sys.argv[1])
stand_in = hasattr(fake, "fake_launched")
if stand_in:
    fake.fake_launched.restype = ctypes.c_char_p
assert dist.is_nccl_available()
dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist


def launched():
    """Calls of NCCL and CUDA since the last time, each with its stream."""
    return fake.fake_launched().decode().split()


def value(rows, dtype):
    random = np.random.default_rng([rank, rows])
    numbers = random.integers(0, 2 if dtype == "bool" else 5, (rows, 3))
    if dtype.startswith("complex"):
        numbers = numbers + 1j * random.integers(0, 5, (rows, 3))
    return lamella.from_numpy(numbers).to(getattr(lamella, dtype))


def same(got, expected, what):
    assert got.dtype == expected.dtype and got.shape == expected.shape, what
    if got.numel() and got.dtype.is_floating_point:
        got, expected = got.double(), expected.double()
    assert got.tolist() == expected.tolist(), (what, got, expected)


def compare(name, x, *more, begin=None, **keywords):
    """The operator, and the same begun, on both devices."""
    what = (name, x.dtype, more, keywords)
    expected = getattr(ops, name)(x, *more, **keywords)
    got = getattr(ops, name)(x.to("cuda"), *more, **keywords)
    assert got.device.type == "cuda", what
    same(got.cpu(), expected, what)
    out = lamella.empty(expected.shape, dtype=x.dtype, device="cuda")
    work = ops.start(name, x.to("cuda"), out, **(keywords if begin is None else begin))
    ops.wait(work)
    same(out.cpu(), expected, what)


sizes = [3 * r for r in range(size)]  # the first rank has none
total, root = sum(sizes), size - 1
REDUCED = "uint8 int8 int32 int64 float16 bfloat16 float32 float64 bool complex64 complex128"
for dtype in REDUCED.split():
    words = ["sum"]
    words += [] if dtype.startswith("complex") else ["product", "min", "max"]
    words += ["mean"] if "float" in dtype or "complex" in dtype else []
    for op in words:
        # Means of MPI divide sums that are rounded; so do those of the stand-in.
        for fixed in (False, True):
            compare("all_reduce", value(7, dtype), op=op, deterministic=fixed)
            compare("reduce_scatter", value(2 * size, dtype), op=op, deterministic=fixed)
            compare(
                "reduce_scatter",
                value(total, dtype),
                begin={"op": op, "rows": sizes, "deterministic": fixed},
                op=op,
                sizes=sizes,
                deterministic=fixed,
            )
for dtype in [*REDUCED.split(), "int16", "float8_e4m3fn"]:
    compare("all_gather", value(2, dtype))
    compare("all_gather", value(sizes[rank], dtype), sizes=sizes, begin={"rows": sizes})
    compare("broadcast", value(4, dtype), root=root, begin={"peer": root})
    compare("gather", value(2, dtype), root=root, begin={"peer": root})
    compare(
        "gather",
        value(sizes[rank], dtype),
        root=root,
        sizes=sizes,
        begin={"peer": root, "rows": sizes},
    )
    compare("scatter", value(2 * size, dtype), root=root, begin={"peer": root})
    compare(
        "scatter",
        value(total, dtype),
        root=root,
        sizes=sizes,
        begin={"peer": root, "rows": sizes},
    )
    compare("all_to_all", value(2 * size, dtype))
    gives = [rank + s for s in range(size)]  # rows to rank s; so many come from it, too
    compare(
        "all_to_all",
        value(sum(gives), dtype),
        send_sizes=gives,
        receive_sizes=gives,
        begin={"rows": gives, "send_rows": gives},
    )

# Forms that write, tensors that are not contiguous, and groups.
x = value(2 * size, "float32")
same(ops.all_reduce_(y := x.to("cuda")).cpu(), ops.all_reduce(x), "all_reduce_")
same(y.cpu(), ops.all_reduce(x), "all_reduce_")
same(ops.all_to_all_(x.to("cuda")).cpu(), ops.all_to_all(x), "all_to_all_")
out = lamella.empty([3, 2 * size], device="cuda").t()
same(ops.all_reduce(x.to("cuda"), out=out).cpu(), ops.all_reduce(x), "all_reduce.out")
same(ops.all_reduce(x.to("cuda").t()).cpu(), ops.all_reduce(x.t()), "strided")
group = dist.new_group([*range(size)][::-1], sort_ranks=False).number
compare("all_gather", x, group=group)
same(
    lamella.vmap(lambda v: ops.all_reduce(v, "max"))(x.to("cuda")).cpu(),
    ops.all_reduce(x, "max"),
    "vmap",
)

# Gradients are collectives of the same device.
for name, more in (("all_reduce", {}), ("all_gather", {}), ("reduce_scatter", {"op": "mean"})):
    grads = []
    for device in ("cpu", "cuda"):
        leaf = x.clone().to(device).requires_grad_()
        made = getattr(ops, name)(leaf, **more)
        (made * made).sum().backward()
        grads.append(leaf.grad.cpu())
    same(grads[1], grads[0], name)

# PyTorch's names, with lists; messages, with tags, in any order.
parts = [lamella.empty(3, device="cuda") for _ in range(size)]
dist.all_gather(parts, lamella.full([3], float(rank), device="cuda"))
assert [p.tolist() for p in parts] == [[float(r)] * 3 for r in range(size)]
dist.all_to_all(parts, [lamella.full([3], rank + s / 8, device="cuda") for s in range(size)])
assert [p[0].item() for p in parts] == [r + rank / 8 for r in range(size)]
if size > 1:
    before, after = (rank - 1) % size, (rank + 1) % size
    works = [
        dist.irecv(one := lamella.empty(2, device="cuda"), before, tag=1),
        dist.irecv(two := lamella.empty(4, device="cuda"), before, tag=2),
        dist.isend(lamella.full([4], rank + 0.5, device="cuda"), after, tag=2),
        dist.isend(lamella.full([2], float(rank), device="cuda"), after, tag=1),
    ]
    for work in works:
        work.wait()
    assert one.tolist() == [before] * 2 and two.tolist() == [before + 0.5] * 4

# A collective is put into the current stream. One that is begun has a stream of its own, behind
# what was launched before, and the current stream goes on behind its end.
y = lamella.ones(3, device="cuda")
if stand_in:
    launched()
    dist.all_reduce(y)
    assert launched() == ["all_reduce@0"]
    work = dist.all_reduce(y, async_op=True)
    assert launched() == ["record@0", "wait0@1", "all_reduce@1", "record@1"]
    assert work.is_completed()
    work.wait()
    assert launched() == ["wait1@0"]
    assert y.tolist() == [size * size] * 3
else:
    dist.all_reduce(y)
    work = dist.all_reduce(y, async_op=True)
    work.wait()
    assert y.tolist() == [size * size] * 3
    # Many pending works finish in their order, whatever the order of the waits.
    parts = [lamella.full([1 << 20], float(rank + n), device="cuda") for n in range(8)]
    works = [dist.all_reduce(part, async_op=True) for part in parts]
    for work in reversed(works):
        work.wait()
    for n, part in enumerate(parts):
        assert (part.cpu() == sum(r + n for r in range(size))).all()


def error_of(call):
    try:
        call()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    raise AssertionError("expected an error")


assert error_of(lambda: ops.all_reduce(value(2, "int16").to("cuda"))) == (
    "all_reduce: expected 'self' to have a dtype that NCCL reduces so, got int16"
)
assert error_of(lambda: ops.start("all_reduce", y, lamella.ones(3))) == (
    "start: expected all tensors to be on one device, got 'input' on cuda:0 and 'output' on cpu"
)
if stand_in:
    assert launched() == []
dist.destroy_process_group()
if stand_in:
    fake.fake_set_devices(0)
    assert not dist.is_nccl_available()
    assert error_of(lambda: dist.init_process_group("nccl")) == (
        "init_process_group: expected NCCL, got none: no GPU is here: no CUDA-capable device is "
        "detected"
    )
print("rank", rank, "done")
