"""Pooling, columns, padding and interpolation, and their backwards, against PyTorch."""

import pytest
from operator_cases import REAL, WHOLE, check, error_of, make, torch

SMALL = {torch.float16: (5e-3, 5e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (1e-5, 1e-5)}
WINDOWS = [
    # kernel, stride, padding, dilation
    (2, 2, 0, 1),
    (3, 2, 1, 1),
    (3, 1, 1, 2),
    (2, 3, 1, 1),
]


@pytest.mark.parametrize("dtype", REAL + WHOLE, ids=str)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("ceil", [False, True])
def test_max_pool(ceil, window, dtype):
    k, s, p, d = window
    for dims, shape in ((2, (2, 3, 8, 9)), (2, (3, 7, 6)), (3, (2, 2, 6, 7, 8))):
        x = make(*shape, dtype=dtype)
        how = ([k] * dims, [s] * dims, [p] * dims, [d] * dims, ceil)
        name = f"max_pool{dims}d_with_indices"
        values, indices = check(name, x, *how)
        if dtype.is_floating_point:
            grad = make(*values.shape, dtype=dtype, seed=1)
            tolerance = SMALL.get(dtype)
            check(f"{name}_backward", grad, x, *how, indices, tolerance=tolerance, strides=False)
    x = make(2, 3, 9, dtype=dtype)
    if dtype.is_floating_point:
        check("max_pool1d", x, [k], [s], [p], [d], ceil, strides=False)
    check("max_pool1d_with_indices", x[0], [k], [], [p], [d], ceil, strides=False)


def test_max_pool_of_nan_and_formats():
    x = make(1, 2, 6, 6)
    x[0, 0, 1, 1] = float("nan")
    x[0, 1] = float("-inf")
    check("max_pool2d_with_indices", x, [2, 2])
    last = make(2, 3, 6, 6).to(memory_format=torch.channels_last)
    check("max_pool2d_with_indices", last, [2, 2])
    check("avg_pool2d", last, [2, 2])
    check("_adaptive_avg_pool2d", last, [3, 2])


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("divisor", [None, 3])
def test_avg_pool(divisor, count_padding, ceil, dtype):
    tolerance = SMALL.get(dtype)
    for k, s, p in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 1)):
        for dims, shape in ((2, (2, 3, 8, 9)), (2, (3, 7, 6)), (3, (2, 2, 6, 7, 8))):
            if dims == 3 and dtype in (torch.float16, torch.bfloat16):
                continue  # PyTorch has none
            x = make(*shape, dtype=dtype)
            how = ([k] * dims, [s] * dims, [p] * dims, ceil, count_padding, divisor)
            values = check(f"avg_pool{dims}d", x, *how, tolerance=tolerance)
            grad = make(*values.shape, dtype=dtype, seed=1)
            name = f"avg_pool{dims}d_backward"
            check(name, grad, x, *how, tolerance=tolerance, strides=False)
        if divisor is None:
            x = make(2, 3, 9, dtype=dtype)
            how = ([k], [s], [p], ceil, count_padding)
            check("avg_pool1d", x, *how, tolerance=tolerance, strides=False)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_adaptive(dtype):
    tolerance = SMALL.get(dtype)
    for dims, shape, size in (
        (2, (2, 3, 7, 9), [3, 4]),
        (2, (3, 7, 9), [1, 1]),
        (2, (1, 2, 3, 3), [5, 4]),
        (3, (2, 2, 5, 6, 7), [2, 3, 4]),
    ):
        x = make(*shape, dtype=dtype)
        values = check(f"_adaptive_avg_pool{dims}d", x, size, tolerance=tolerance)
        check(f"adaptive_avg_pool{dims}d", x, size, tolerance=tolerance, strides=False)
        grad = make(*values.shape, dtype=dtype, seed=1)
        name = f"_adaptive_avg_pool{dims}d_backward"
        check(name, grad, x, tolerance=tolerance, strides=False)
        values, indices = check(f"adaptive_max_pool{dims}d", x, size)
        name = f"adaptive_max_pool{dims}d_backward"
        check(name, grad, x, indices, tolerance=tolerance, strides=False)
    check("adaptive_avg_pool1d", make(2, 3, 8), [3], strides=False)
    check("adaptive_max_pool1d", make(2, 3, 8), [3], strides=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
def test_columns(dtype):
    x = make(2, 3, 7, 8, dtype=dtype)
    for k, d, p, s in (([2, 3], [1, 1], [0, 0], [1, 1]), ([3, 2], [2, 1], [1, 1], [2, 3])):
        columns = check("im2col", x, k, d, p, s)
        check("im2col", x[0], k, d, p, s)
        check("col2im", columns, [7, 8], k, d, p, s)
        check("col2im", columns[0], [7, 8], k, d, p, s)


@pytest.mark.parametrize("dtype", [*REAL, torch.complex64], ids=str)
@pytest.mark.parametrize("kind", ["reflection", "replication"])
def test_padding(kind, dtype):
    paddings = [[2, 1], [1, 2, 0, 3], [1, 0, 2, 1, 1, 1], [-1, 2, 1, -1]]
    for padding in paddings:
        dims = len(padding) // 2
        for lead in ((2, 3), (3,)):
            x = make(*lead, *[4, 5, 4][:dims], dtype=dtype)
            name = f"{kind}_pad{dims}d"
            values = check(name, x, padding)
            grad = make(*values.shape, dtype=dtype, seed=1)
            check(f"{name}_backward", grad, x, padding, tolerance=SMALL.get(dtype))
    check("reflection_pad2d", make(2, 3, 4, 5), [1, 1, 1, 1])


def test_pad_by_mode():
    x = make(2, 3, 4, 5)
    for mode in ("constant", "reflect", "replicate", "circular"):
        check("pad", x, [1, 2, 2, 1], mode, strides=False)
    check("pad", x, [-1, 2, 2, -1], "circular", strides=False)
    check("pad", make(2, 3, 4), [3, 1], "circular", strides=False)
    check("pad", make(1, 2, 3, 4, 5), [1, 2, 2, 1, 1, 1], "circular", strides=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_interpolation(dtype):
    tolerance = SMALL.get(dtype, (1e-6, 1e-6))
    kinds = {1: "linear", 2: "bilinear", 3: "trilinear"}
    for dims, shape in ((1, (2, 3, 7)), (2, (2, 3, 5, 6)), (3, (1, 2, 3, 4, 5))):
        x = make(*shape, dtype=dtype)
        for size in ([2 * n + 1 for n in shape[2:]], [n - 1 for n in shape[2:]], list(shape[2:])):
            for name in (f"upsample_nearest{dims}d", f"_upsample_nearest_exact{dims}d"):
                values = check(name, x, size, *[None] * dims)
                grad = make(*values.shape, dtype=dtype, seed=1)
                args = (grad, size, list(shape), *[None] * dims)
                check(f"{name}_backward", *args, tolerance=tolerance, strides=False)
            for corners in (False, True):
                name = f"upsample_{kinds[dims]}{dims}d"
                values = check(name, x, size, corners, *[None] * dims, tolerance=tolerance)
                grad = make(*values.shape, dtype=dtype, seed=1)
                args = (grad, size, list(shape), corners, *[None] * dims)
                check(f"{name}_backward", *args, tolerance=tolerance, strides=False)
        factors = [1.7] * dims
        check(f"upsample_nearest{dims}d.vec", x, None, factors)
        check(f"upsample_{kinds[dims]}{dims}d.vec", x, None, False, factors, tolerance=tolerance)


def test_errors():
    text = error_of("max_pool2d", make(3, 4), [2, 2])
    assert text == "max_pool2d: expected 'self' to have 3 or 4 dimensions, got [3, 4]"
    text = error_of("max_pool2d", make(1, 1, 4, 4), [2, 2], [2, 2], [2, 2])
    assert text == (
        "max_pool2d: expected 'padding' to be at most half of the window of 2, got [2, 2]"
    )
    text = error_of("avg_pool2d", make(1, 1, 4, 4), [5, 5])
    assert text == (
        "avg_pool2d: expected an output of at least one element, got 'self' [1, 1, 4, 4] "
        "with a window of 5"
    )
    text = error_of("reflection_pad1d", make(1, 2, 3), [3, 0])
    assert text == (
        "reflection_pad1d: expected 'padding' to be smaller than the dimension, got [3, 0] "
        "for [1, 2, 3]"
    )
    text = error_of("pad", make(2, 3), [1, 1], "mirror")
    assert text == (
        "pad: expected 'mode' to be constant, reflect, replicate or circular, got 'mirror'"
    )
