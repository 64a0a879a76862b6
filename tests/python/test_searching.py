"""Searching, counting and distinct values, against PyTorch."""

import numpy as np
import pytest
from operator_cases import check, error_of, lamella, make, run, to_lamella, torch

NUMBERS = [torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    line = make(7, dtype=dtype).sort()[0]
    values = make(3, 4, dtype=dtype, seed=1)
    check("searchsorted.Tensor", line, values, right=right)
    check("searchsorted.Tensor", line, values.t(), right=right, out_int32=True, strides=False)
    check("searchsorted.Scalar", line, 2, right=right)
    check("bucketize.Tensor", values, line, right=right)
    check("bucketize.Scalar", 1, line, right=right)
    lines = make(3, 5, dtype=dtype).sort(-1)[0]
    check("searchsorted.Tensor", lines, values, right=right)
    shuffled = make(3, 5, dtype=dtype)
    check("searchsorted.Tensor", shuffled, values, right=right, sorter=shuffled.argsort(-1))
    check("searchsorted.Tensor", line, values, side="right" if right else "left")


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
    check("histc", values)
    check("histc", values, 10, -2, 2)
    check("histc", values.double(), 7, 0, 0)
    check("histc", torch.full((4,), 3.0), 5)
    for dtype in (torch.float16, torch.bfloat16):
        check("histc", values.to(dtype), 6, -2, 2)
    check("histc", torch.tensor([1.0, float("nan"), 2.0]), 4, 0, 3)


def test_bincount():
    numbers = torch.tensor([3, 0, 3, 1])
    check("bincount", numbers, meta=False)
    check("bincount", numbers, None, 7, meta=False)
    for dtype in (torch.float32, torch.float64, torch.int32):
        check("bincount", numbers, make(4, dtype=dtype), meta=False)
    check("bincount", torch.zeros(0, dtype=torch.int64), meta=False)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32, torch.float64])
@pytest.mark.parametrize("flags", [(False, False), (True, True), (True, False), (False, True)])
def test_unique(dtype, flags):
    values = (
        make(4, 6, dtype=dtype, low=0, high=3).round()
        if dtype.is_floating_point
        else make(4, 6, dtype=dtype, low=0, high=3)
    )
    check("_unique2", values, True, *flags, meta=False, strides=False)
    check("unique_consecutive", values, *flags, meta=False, strides=False)
    rows = torch.cat([values[:, :2], values[1:3, :2]])
    check("unique_dim", rows, 0, True, *flags, meta=False, strides=False)
    check("unique_dim", rows.t().contiguous(), 1, True, *flags, meta=False, strides=False)
    check("unique_dim_consecutive", rows, 0, *flags, meta=False, strides=False)
    check("unique_consecutive", rows, *flags, 0, meta=False, strides=False)
    check("unique_consecutive", values[0], *flags, 0, meta=False, strides=False)
    check("unique_consecutive", values[0], *flags, -1, meta=False, strides=False)


def test_isin():
    check("isin.Tensor_Tensor", make(3, 4, dtype=torch.int64), torch.tensor([1, -2]), meta=False)
    check("isin.Tensor_Tensor", make(5), make(2), invert=True, meta=False)
    check("isin.Tensor_Tensor", make(5), make(0), meta=False)
    check("isin.Tensor_Scalar", make(5, dtype=torch.int64), 2, meta=False)
    check("isin.Scalar_Tensor", 2, make(5, dtype=torch.int64), meta=False)


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_index_reduce(reduce, include_self):
    index = torch.tensor([0, 2, 0])
    for dtype in (torch.float32, torch.int64):
        base = make(4, 3, dtype=dtype)
        source = make(3, 3, dtype=dtype, seed=1)
        check("index_reduce", base, 0, index, source, reduce, include_self=include_self)
        check("index_reduce_", base, 0, index, source, reduce, include_self=include_self)
        check(
            "index_reduce",
            base.t(),
            1,
            index,
            source,
            reduce,
            include_self=include_self,
            strides=False,
        )


def test_others():
    check("msort", make(4, 3), strides=False)
    check("diagflat", make(2, 2), 1)
    check("sum_to_size", make(2, 3, 4), [3, 1])
    check("conj_physical_", make(3, dtype=torch.complex64))
    check("cdist", make(2, 3, 4), make(5, 4), strides=False)
    check("cdist", make(3, 4), make(5, 4), 1.0, strides=False)
    check("linalg_matrix_exp", make(2, 3, 3, dtype=torch.float64), strides=False)
    check("linalg_matrix_exp", make(3, 3, dtype=torch.complex128), strides=False)
    check("linalg_tensorinv", make(4, 6, 8, 3, dtype=torch.float64), strides=False)
    check(
        "linalg_tensorsolve",
        make(2, 3, 6, dtype=torch.float64),
        make(2, 3, dtype=torch.float64),
        strides=False,
    )
    check("linalg_vander", make(2, 3), N=4, strides=False)
    LU, pivots = torch.linalg.lu_factor(make(2, 4, 3, dtype=torch.float64))
    check("lu_unpack", LU, pivots, strides=False)
    a = make(3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    for upper in (False, True):
        for transpose in (False, True):
            check(
                "triangular_solve",
                make(3, 2, dtype=torch.float64),
                a,
                upper,
                transpose,
                strides=False,
            )
    tall = make(5, 3, dtype=torch.float64)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        check(
            "linalg_lstsq",
            tall,
            make(5, 2, dtype=torch.float64),
            driver=driver,
            strides=False,
            meta=False,
        )


def test_errors():
    assert error_of("searchsorted.Tensor", make(3), make(2), right=True, side="left") == (
        "searchsorted: expected 'side' and 'right' to agree, got 'left' and True"
    )
    assert error_of("bincount", torch.tensor([-1])) == (
        "bincount: expected 'self' of at least 0, got -1"
    )
    assert error_of("histc", make(3), 0) == "histc: expected 'bins' of at least 1, got 0"


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
