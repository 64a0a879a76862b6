"""Pooling, columns, padding and interpolation, and their backwards, against PyTorch."""

from operator_cases import check, make, torch


def test_max_pool_of_nan_and_formats():
    x = make(1, 2, 6, 6)
    x[0, 0, 1, 1] = float("nan")
    x[0, 1] = float("-inf")
    check("max_pool2d_with_indices", x, [2, 2])
    last = make(2, 3, 6, 6).to(memory_format=torch.channels_last)
    check("max_pool2d_with_indices", last, [2, 2])
    check("avg_pool2d", last, [2, 2])
    check("_adaptive_avg_pool2d", last, [3, 2])


def test_padding_that_removes():
    x = make(2, 3, 4, 5)
    for kind in ("reflection", "replication"):
        grad = check(f"{kind}_pad2d", x, [-1, 2, 1, -1])
        check(f"{kind}_pad2d_backward", grad, x, [-1, 2, 1, -1])
    check("pad", x, [-1, 2, 2, -1], "circular", strides=False)


def test_columns():
    x = make(2, 3, 7, 8)
    for k, d, p, s in (([2, 3], [1, 1], [0, 0], [1, 1]), ([3, 2], [2, 1], [1, 1], [2, 3])):
        columns = check("im2col", x, k, d, p, s)
        check("im2col", x[0], k, d, p, s)
        check("col2im", columns, [7, 8], k, d, p, s)
        check("col2im", columns[0], [7, 8], k, d, p, s)


def test_lines():
    for ceil in (False, True):
        for given in (make(2, 3, 10), make(3, 10)):
            check("max_pool1d_with_indices", given, [3], [2], [0], [1], ceil, strides=False)
            check("avg_pool1d", given, [3], [2], [1], ceil, False, strides=False)
