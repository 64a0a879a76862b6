"""Products of int8 with int32 sums (_int_mm): exact for all shapes, layouts and machines."""

import os
import subprocess
import sys

import pytest
from operator_cases import check, compare, lamella, same_bits, to_lamella, torch

# Whole and broken tiles, groups and vectors; few rows; nothing to add.
SHAPES = [(1, 1, 1), (3, 5, 2), (17, 65, 33), (64, 64, 64), (4, 130, 96), (1, 256, 100),
          (70, 7, 50), (9, 1030, 49), (2, 0, 3), (0, 4, 3), (5, 8, 0)]  # fmt: skip


def whole(shape, dtype, seed):
    info = torch.iinfo(dtype)
    numbers = torch.Generator().manual_seed(seed)
    made = torch.randint(info.min, info.max + 1, shape, generator=numbers, dtype=dtype)
    if made.numel() > 2:
        made.view(-1)[:2] = info.min  # the sum with the largest parts
    return made


def layouts(x):
    wide = torch.zeros(x.shape[0], 2 * x.shape[1], dtype=x.dtype)
    wide[:, ::2] = x
    return {"rows": x, "columns": x.t().contiguous().t(), "spread": wide[:, ::2]}


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_torch(shape, dtype):
    m, k, n = shape
    a, b = whole((m, k), dtype, 1), whole((k, n), torch.int8, 2)
    expected = (a.long() @ b.long()).int()
    for x in layouts(a).values():
        for y in map(to_lamella, layouts(b).values()):
            for _ in range(3):  # the second keeps the packed form of y, the third reads it
                compare(lamella._int_mm(to_lamella(x), y), expected)
    check("_int_mm", a, b)


def test_out_and_meta():
    a, b = (to_lamella(whole(s, torch.int8, i)) for i, s in enumerate(((5, 7), (7, 3))))
    out = lamella.empty(5, 3, dtype=lamella.int32)
    assert lamella.ops.aten._int_mm.out(a, b, out=out) is out
    assert out.tolist() == lamella._int_mm(a, b).tolist()
    wide = lamella.zeros(5, 6, dtype=lamella.int32)
    lamella.ops.aten._int_mm.out(a, b, out=wide[:, ::2])
    assert wide[:, ::2].tolist() == out.tolist() and wide[:, 1].tolist() == [0] * 5
    meta = lamella._int_mm(a.to("meta"), b.to("meta"))
    assert meta.shape == (5, 3) and meta.dtype == lamella.int32


PROGRAM = """
import lamella, numpy
random = numpy.random.default_rng(0)
for m, k, n in ((33, 130, 70), (3, 200, 64), (1, 5, 9)):
    for dtype in (numpy.int8, numpy.uint8):
        info = numpy.iinfo(dtype)
        a = random.integers(info.min, info.max + 1, (m, k)).astype(dtype)
        b = random.integers(-128, 128, (k, n)).astype(numpy.int8)
        got = lamella._int_mm(lamella.from_numpy(a), lamella.from_numpy(b)).numpy()
        assert (got == a.astype(int) @ b.astype(int)).all(), (m, k, n, dtype)
"""


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_other_machines(capability):
    if "LAMELLA_SANITIZED" in os.environ:
        pytest.skip("the sanitizers' build has this machine's capability alone")
    env = {**os.environ, "LAMELLA_CPU_CAPABILITY": capability}
    subprocess.run([sys.executable, "-c", PROGRAM], env=env, check=True)


def test_threads_give_the_same():
    a, b = (
        to_lamella(whole((300, 200), torch.int8, 1)),
        to_lamella(whole((200, 500), torch.int8, 2)),
    )
    same_bits(lambda: lamella._int_mm(a, b))


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (1, 2)], ids=str)
def test_vmap(dims):
    sizes = ((3, 5), (5, 2))
    shapes = [s if d is None else (*s[:d], 4, *s[d:]) for s, d in zip(sizes, dims)]
    a, b = (to_lamella(whole(s, torch.int8, i)) for i, s in enumerate(shapes))
    got = lamella.vmap(lamella._int_mm, dims)(a, b)
    for i in range(4):
        x, y = (t if d is None else t.select(d, i) for t, d in zip((a, b), dims))
        assert got[i].tolist() == lamella._int_mm(x, y).tolist()
