"""Searching, counting and distinct values, against PyTorch."""

import numpy as np
import pytest
from operator_cases import check, error_of, lamella, make, run, to_lamella, torch


def test_sides():
    line, values = make(7).sort()[0], make(3, 4, seed=1)
    for side in ("left", "right"):
        check("searchsorted.Tensor", line, line, side=side)
        check("searchsorted.Tensor", line, values.t(), side=side, out_int32=True, strides=False)
        check("bucketize.Scalar", float(line[2]), line, right=side == "right")
    shuffled = make(3, 5)
    check("searchsorted.Tensor", shuffled, values, sorter=shuffled.argsort(-1))


@pytest.mark.parametrize("first", ["cpu", "meta"])
def test_devices_are_not_mixed(first):
    second = "meta" if first == "cpu" else "cpu"
    for elements, tests in (((2,), (1,)), ((1,), (2,)), ((3, 4), (50,))):
        with pytest.raises(RuntimeError, match="^isin: expected all tensors to be on one device"):
            lamella.isin(lamella.ones(elements, device=first), lamella.ones(tests, device=second))
    a, b = lamella.ones(2, 3, device=first), lamella.ones(2, 3, device=second)
    with pytest.raises(RuntimeError, match="^linalg_cross: expected all tensors to be on one"):
        lamella.linalg.cross(a, b)
    with pytest.raises(RuntimeError, match="^prelu: expected all tensors to be on one device"):
        lamella.prelu(a, b[0, :1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_searchsorted_nan(dtype, right, count):
    # NaN comes after all numbers, as NumPy sorts; PyTorch's binary search does not.
    line = np.array([1.0, 3.0] + [np.nan] * count)
    values = np.array([0.5, 1.0, 2.0, 3.0, np.inf, -np.nan, np.nan])
    expected = np.searchsorted(line, values, "right" if right else "left").tolist()
    edges, given = to_lamella(torch.tensor(line, dtype=dtype)), torch.tensor(values, dtype=dtype)
    assert lamella.searchsorted(edges, to_lamella(given), right=right).tolist() == expected
    assert lamella.bucketize(to_lamella(given), edges, right=right).tolist() == expected
    for value, place in zip(values.tolist(), expected):
        assert lamella.searchsorted(edges, value, right=right).item() == place
    order = lamella.arange(len(line) - 1, -1, -1)
    turned = lamella.searchsorted(edges.flip(0), to_lamella(given), right=right, sorter=order)
    assert turned.tolist() == expected


def test_histc():
    values = make(50)
    check("histc", torch.full((4,), 3.0), 5)
    for dtype in (torch.float16, torch.bfloat16):
        check("histc", values.to(dtype), 6, -2, 2)
    check("histc", torch.tensor([1.0, float("nan"), 2.0]), 4, 0, 3)


def test_contents_are_checked():
    line, values = make(3), make(2)
    for sorter, got in (([0, 1, 5], 5), ([-1, 0, 1], -1), ([0, 2**62, 1], 2**62)):
        assert error_of("searchsorted.Tensor", line, values, sorter=torch.tensor(sorter)) == (
            f"searchsorted: expected the elements of 'sorter' to be in [0, 3), got {got}"
        )
    check("searchsorted.Tensor", torch.tensor([1.0, 2, 3]), values, sorter=torch.tensor([0, 0, 0]))
    most = 2**63 - 1
    for repeats in ([2**62] * 4, [most, most, 2], [most, 1]):
        assert error_of("repeat_interleave.Tensor", torch.tensor(repeats)) == (
            f"repeat_interleave: expected the sum of 'repeats' to be at most {most}, got more"
        )
    assert error_of("bincount", torch.tensor([0, most])) == (
        f"bincount: expected 'self' below {most}, got {most}"
    )


def test_histc_over_a_range_whose_width_overflows():
    x = torch.tensor([-1e308, 0.5e308, 1e308], dtype=torch.float64)
    for limits in ({}, {"min": -1.7e308, "max": 1.7e308}):
        counts = run(lamella, "histc", [to_lamella(x), 4], limits)
        assert counts.tolist() == ([1, 0, 1, 1] if limits else [1, 0, 0, 2])
    least = torch.tensor([0, 5e-324], dtype=torch.float64)
    assert run(lamella, "histc", [to_lamella(least), 2], {}).tolist() == [1, 1]


def test_unique_consecutive_of_one_dimension():
    x = torch.tensor([1.0, 1, 2])
    for dim in (0, -1, None):
        for flags in ((False, False), (True, True)):
            check("unique_consecutive", x, *flags, dim, meta=False)


@pytest.mark.parametrize("number", [300, 2**62, 2**63 - 1, -129], ids=str)
def test_numbers_that_the_sequence_cannot_hold(number):
    # They wrap, as elsewhere beside a tensor.
    sequence = torch.tensor([1, 20, 50, 100], dtype=torch.int8)
    check("searchsorted.Scalar", sequence, number)
    check("bucketize.Scalar", number, sequence)


@pytest.mark.parametrize("flags", [(False, False), (True, True)])
def test_unique_rows(flags):
    values = make(4, 6, dtype=torch.int64, low=0, high=3)
    rows = torch.cat([values[:, :2], values[1:3, :2]])
    check("unique_dim", rows, 0, True, *flags, meta=False, strides=False)
    check("unique_dim", rows.t().contiguous(), 1, True, *flags, meta=False, strides=False)
    check("unique_dim_consecutive", rows, 0, *flags, meta=False, strides=False)
