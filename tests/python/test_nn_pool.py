"""Pooling, columns, padding and interpolation, and their backwards, against PyTorch."""

from operator_cases import check, error_of, make, torch


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
