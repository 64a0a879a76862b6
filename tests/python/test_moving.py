"""Copies, layouts, masks and indices against PyTorch.

Every element size, shapes around the widths of registers and pieces, special strides, and the same
bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operator_cases import lamella, same_bits, torch

# One dtype for each element size, and those whose sums have loops of their own.
SIZED = ["uint8", "int16", "float32", "float64", "complex128"]
SUMMED = [*SIZED, "int64", "int32", "float16", "bfloat16", "complex64", "bool"]
SIDES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 129]


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0, below: int = 100) -> torch.Tensor:
    random = np.random.default_rng(seed)
    made = torch.from_numpy(random.integers(-below, below, shape).astype("float64"))
    return made.to(getattr(torch, dtype))


def ours(tensor: torch.Tensor) -> Any:
    """The same memory, strides included."""
    return lamella.from_dlpack(tensor)


def same(result: Any, expected: torch.Tensor) -> None:
    got = torch.from_dlpack(result.contiguous())
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert torch.equal(got.nan_to_num(7), expected.nan_to_num(7))


def check(f: Callable[..., Any], *tensors: torch.Tensor) -> None:
    same(f(lamella, *map(ours, tensors)), f(torch, *tensors))


@pytest.mark.parametrize("dtype", SIZED)
@pytest.mark.parametrize("rows", SIDES)
def test_planes(dtype: str, rows: int) -> None:
    for columns in SIDES:
        x = numbers((rows, columns), dtype)
        check(lambda m, a: a.t().contiguous(), x)
        check(lambda m, a: m.flip(a, (1,)), x)
        check(lambda m, a: m.flip(a, (0, 1)), x)
        check(lambda m, a: a[:, : a.shape[1] // 2 + 1].contiguous(), x)
        check(lambda m, a: a[1:, 1:].t().contiguous(), x)
        check(lambda m, a: m.stack((a, a + a), -1), x)
        check(lambda m, a: m.cat((a, a, a), 0), x)
        check(lambda m, a: m.cat((a, a[:, :1], a), 1), x)
        check(lambda m, a: a.unsqueeze(2).expand(-1, -1, 3).contiguous(), x)


@pytest.mark.parametrize("dtype", SIZED)
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_steps(dtype: str, step: int) -> None:
    for n in [0, 1, step, 63, 64, 65, 1000]:
        x = numbers((n,), dtype)
        check(lambda m, a: a[::step].clone(), x)
        check(lambda m, a: a[::step] + a[: len(a[::step])], x)

        def write(m: Any, a: Any) -> Any:
            out = m.zeros(a.shape[0] * step, dtype=a.dtype)
            out[::step].copy_(a)
            return out

        check(write, x)


PERMUTED = [
    ((2, 3, 5, 7), (0, 2, 1, 3)),
    ((2, 17, 3, 2), (0, 2, 1, 3)),
    ((3, 4, 5, 6), (3, 2, 1, 0)),
    ((2, 3, 20, 33), (0, 2, 3, 1)),
    ((2, 20, 33, 3), (0, 3, 1, 2)),
    ((4, 1, 9, 2), (2, 0, 3, 1)),
    ((300, 20, 40), (2, 0, 1)),
    ((5, 4, 3, 2, 7), (4, 0, 2, 1, 3)),
]


@pytest.mark.parametrize("dtype", SIZED)
@pytest.mark.parametrize("shape, order", PERMUTED)
def test_permuted(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = numbers(shape, dtype)
    check(lambda m, a: a.permute(order).contiguous(), x)
    check(lambda m, a: a.permute(order)[..., 1:].contiguous(), x)
    if len(shape) == 4:
        check(lambda m, a: a.contiguous(memory_format=m.channels_last), x)


@pytest.mark.parametrize("dtype", SIZED)
@pytest.mark.parametrize("size, step", [(3, 1), (4, 4), (8, 4), (9, 2), (100, 50)])
def test_windows(dtype: str, size: int, step: int) -> None:
    check(lambda m, a: a.unfold(0, size, step).contiguous(), numbers((301,), dtype))


def test_copies_past_the_caches() -> None:
    for offset in [0, 1, 3]:
        x = torch.arange(6_000_000, dtype=torch.float32)[offset:]
        check(lambda m, a: a.clone(), x)
        check(lambda m, a: m.cat((a, a)), x)
        check(lambda m, a: a[: 1999 * 3000].view(1999, 3000).t().contiguous(), x)
        check(lambda m, a: a[: 1999 * 3000].view(1999, 3000)[:, 1:].contiguous(), x)


def test_overlapping_copies() -> None:
    for n in [5, 70, 1000]:

        def shift(m: Any, a: Any) -> Any:
            b = a.clone()
            b[1:].copy_(b[:-1].clone() if m is torch else b[:-1])
            b[:-2].copy_(b[2:].clone() if m is torch else b[2:])
            return b

        check(shift, numbers((n,), "float32"))


PAIRS = ["uint8", "int8", "int16", "int32", "int64", "float32", "float64", "float16", "bfloat16",
         "bool", "complex64"]  # fmt: skip


# PyTorch warns where a complex number loses its imaginary part.
CONVERSIONS = [(a, b) for a in PAIRS for b in PAIRS if a != "complex64" or b == "complex64"]


@pytest.mark.parametrize("dtype, to", CONVERSIONS)
def test_conversions(dtype: str, to: str) -> None:
    for n in [0, 1, 5, 11, 170, 171, 1000]:
        x = numbers((n, 3), dtype)
        if to == "uint8" and dtype != "bool":  # what is negative has no meaning there
            x = x.abs()
        check(lambda m, a: a.to(getattr(m, to)), x)
        check(lambda m, a: a[:, 1].to(getattr(m, to)), x)
        check(lambda m, a: a.t().to(getattr(m, to)), x)


SPECIAL = [float("nan"), float("inf"), -float("inf"), -0.0, 1e-40, 6e-8, 65519.0, 65520.0, 3.4e38]


@pytest.mark.parametrize("to", ["float32", "float64", "float16", "bfloat16", "bool"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_special_values_converted(dtype: str, to: str) -> None:
    x = torch.tensor(SPECIAL * 5, dtype=torch.float64).to(getattr(torch, dtype))
    result = torch.from_dlpack(ours(x).to(getattr(lamella, to)))
    expected = x.to(getattr(torch, to))
    assert torch.equal(result.isnan(), expected.isnan())
    assert torch.equal(result.signbit() & ~result.isnan(), expected.signbit() & ~expected.isnan())
    same(lamella.from_dlpack(result), expected)


# ---- Masks ----


@pytest.mark.parametrize("dtype", SIZED)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_masks(dtype: str, share: float) -> None:
    random = np.random.default_rng(1)
    for shape in [(0,), (1,), (63,), (64,), (65,), (1000,), (7, 11), (3, 70, 5), (128, 64)]:
        x, mask = numbers(shape, dtype), torch.from_numpy(random.random(shape) < share)
        check(lambda m, a, k: a[k], x, mask)
        check(lambda m, a, k: m.nonzero(k), x, mask)
        check(lambda m, a, k: m.masked_select(a, k), x, mask)
        check(lambda m, a, k: m.masked_fill(a, k, 1), x, mask)
        check(lambda m, a, k: m.masked_scatter(a, k, a.flatten()), x, mask)
        check(lambda m, a, k: m.masked_select(a.flip(0), k), x, mask)
        check(lambda m, a, k: a.clone().index_put_((k,), a.flatten()[: int(k.sum())]), x, mask)
        if len(shape) > 1:
            check(lambda m, a, k: a.transpose(0, 1)[k.transpose(0, 1)], x, mask)
            check(lambda m, a, k: a[k.reshape(len(k), -1)[:, 0]], x, mask)
            check(lambda m, a, k: m.masked_fill(a, k[..., :1], 1), x, mask)
            check(lambda m, a, k: m.nonzero(a), x, mask)
        if len(shape) == 3:
            check(lambda m, a, k: a[k[:, :, 0]], x, mask)
            check(lambda m, a, k: a[:, k[0]], x, mask)
            check(lambda m, a, k: a.transpose(1, 2)[k[:, :, 0][:, :5]], x, mask)


def test_masked_select_into_gaps() -> None:
    x, mask = numbers((100,), "float32"), torch.arange(100) % 3 == 0
    out = lamella.zeros(68)
    lamella.masked_select(ours(x), ours(mask), out=out[::2])
    assert out[::2].tolist() == x[mask].tolist() and not out[1::2].any()


# ---- Indices ----


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("dtype", SIZED)
def test_indices(dtype: str, kind: str) -> None:
    random = np.random.default_rng(2)
    for width in [1, 2, 3, 4, 5, 8, 9, 17, 33, 64, 65, 200]:
        x = numbers((11, width), dtype)
        i = torch.from_numpy(random.integers(0, 11, 40)).to(getattr(torch, kind))
        j = torch.from_numpy(random.integers(0, width, 40)).to(getattr(torch, kind))
        check(lambda m, a, i, j: m.index_select(a, 0, i), x, i, j)
        check(lambda m, a, i, j: m.index_select(a, 1, j), x, i, j)
        check(lambda m, a, i, j: m.index_select(a.t(), 1, i), x, i, j)
        check(lambda m, a, i, j: a[i - 11], x, i, j)
        check(lambda m, a, i, j: a[i, j], x, i, j)
        check(lambda m, a, i, j: a[i - 11, j], x, i, j)
        check(lambda m, a, i, j: a[i.view(8, 5)[:, ::2]], x, i, j)
        check(lambda m, a, i, j: a[i.view(40, 1), j.view(1, 40)[:, :3] - a.shape[1]], x, i, j)
        check(lambda m, a, i, j: a[:, j], x, i, j)
        check(lambda m, a, i, j: a[..., j[::2]], x, i, j)
        if kind == "int32":
            continue
        check(lambda m, a, i, j: m.take(a, i * a.shape[1] + j - a.numel()), x, i, j)
        at = torch.from_numpy(random.integers(0, 11, (5, width)))
        check(lambda m, a, i, j, k: m.gather(a, 0, k), x, i, j, at)
        check(lambda m, a, i, j, k: m.gather(a.t(), 1, k.t()), x, i, j, at)
        check(lambda m, a, i, j, k: m.gather(a, 0, k[:1].expand(4, -1)), x, i, j, at)


def test_gather_over_its_index() -> None:
    index = lamella.tensor([2, 0, 1])
    lamella.gather(lamella.tensor([5, 6, 7]), 0, index, out=index)
    assert index.tolist() == [7, 5, 6]


@pytest.mark.parametrize("dtype", SUMMED)
def test_sums_at_indices(dtype: str) -> None:
    random = np.random.default_rng(3)
    for width in [1, 3, 8, 33, 300]:
        # Small numbers, whose sums are exact in every type.
        x, y = numbers((6, width), dtype, 0, 3), numbers((40, width), dtype, 1, 3)
        i = torch.from_numpy(random.integers(0, 6, 40))
        at = torch.from_numpy(random.integers(0, 6, (40, width)))
        check(lambda m, a, b, i: m.index_add(a, 0, i, b), x, y, i)
        check(lambda m, a, b, i: m.index_add(a.t(), 1, i, b.t()), x, y, i)
        check(lambda m, a, b, i: m.index_copy(a, 0, i[:1], b[:1]), x, y, i)
        check(lambda m, a, b, i: m.index_put(a, (i - 6,), b, accumulate=True), x, y, i)
        check(lambda m, a, b, i: m.index_put(a, (i[:3], i[:3] * 0), b[0, 0], True), x, y, i)
        check(lambda m, a, b, k: m.scatter_add(a, 0, k, b), x, y, at)
        check(lambda m, a, b, k: m.scatter_add(a, 0, k[:, :1].expand_as(k), b), x, y, at)
        check(lambda m, a, b, k: m.scatter(a, 0, k[:1], b), x, y, at)
        if dtype not in ("bool", "complex128", "complex64"):
            check(lambda m, a, b, k: m.scatter_reduce(a, 0, k, b, "amax"), x, y, at)


OUTSIDE: list[tuple[str, Callable[..., Any]]] = [
    ("index_select: expected 'index' in [0, 3], got 4", lambda x, i: lamella.index_select(x, 0, i)),
    ("gather: expected 'index' in [0, 3], got 4", lambda x, i: lamella.gather(x, 0, i)),
    ("take: expected 'index' in [-4, 3], got 4", lambda x, i: lamella.take(x, i)),
    ("index_add: expected 'index' in [0, 3], got 4", lambda x, i: x.index_add_(0, i, i.float())),
    ("index_put_: expected 'index' in [-4, 3], got 4", lambda x, i: x.index_put_((i,), i.float())),
    ("scatter_add: expected 'index' in [0, 3], got 4",
     lambda x, i: x.scatter_add_(0, i, i.float())),
]  # fmt: skip


@pytest.mark.parametrize("text, call", OUTSIDE)
@pytest.mark.parametrize("before", [1, 100, 200_000])
def test_the_first_index_outside_is_named(text: str, call: Callable[..., Any], before: int) -> None:
    x = lamella.arange(4, dtype=lamella.float32)
    index = lamella.cat((lamella.zeros(before, dtype=lamella.int64), lamella.tensor([4, -9, 7])))
    with pytest.raises(IndexError) as error:
        call(x, index)
    assert str(error.value) == text
    assert x.tolist() == [0, 1, 2, 3]


SUMS: list[Callable[..., Any]] = [
    lambda x, i, y: x.index_add(0, i[:, 0], y),
    lambda x, i, y: x.scatter_add(0, i, y),
    lambda x, i, y: x.index_put((i[:, 0],), y, accumulate=True),
    lambda x, i, y: x.index_put((i[:, 0], i[:, 1]), y[:, 0], accumulate=True),
    lambda x, i, y: x.flatten().index_add(0, i.flatten(), y.flatten()),
    lambda x, i, y: lamella.ops.aten.embedding_dense_backward(y, i[:, 0], 50, -1, False),
]


@pytest.mark.parametrize("call", SUMS)
def test_sums_have_the_same_bits_for_any_number_of_threads(call: Callable[..., Any]) -> None:
    random = np.random.default_rng(4)
    x = lamella.from_numpy(random.standard_normal((50, 70)).astype("float32"))
    y = lamella.from_numpy(random.standard_normal((4000, 70)).astype("float32"))
    i = lamella.from_numpy(random.integers(0, 50, (4000, 70)))
    same_bits(lambda: call(x, i, y))


WHOLE = [(0, 1000, 1), (5, -300, -7), (0, 1, 1), (-3, 4, 2)]
LONG = (-3, 100_000, 2)
RANGES = [
    *((*r, dtype) for r in WHOLE for dtype in ("int64", "int32", "int16", "float32", "float16")),
    *((*LONG, dtype) for dtype in ("int64", "int32", "float32", "float64")),
    *((0.5, 100.25, 0.25, dtype) for dtype in ("float32", "float64", "float16", "bfloat16")),
]


@pytest.mark.parametrize("start, end, step, dtype", RANGES)
def test_ranges(start: float, end: float, step: float, dtype: str) -> None:
    same(
        lamella.arange(start, end, step, dtype=getattr(lamella, dtype)),
        torch.from_numpy(np.arange(start, end, step)).to(getattr(torch, dtype)),
    )
