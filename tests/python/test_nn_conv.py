"""Convolution, its backward, and linear maps, against PyTorch."""

import itertools

import pytest
from operator_cases import check, lamella, make, run, to_lamella, torch

LOOSE = {
    torch.float32: (2e-4, 2e-4),
    torch.float64: (1e-9, 1e-9),
    torch.bfloat16: (6e-2, 2e-1),
    torch.float16: (1e-2, 5e-2),
}


def test_masks():
    x, w, g = make(2, 3, 5, 5), make(4, 3, 3, 3), make(2, 4, 3, 3)
    for mask in itertools.product([True, False], repeat=3):
        how = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1, list(mask))
        args = [to_lamella(a) for a in (g, x, w, [4], *how)]
        got = run(lamella, "convolution_backward", args, {})
        assert [t is not None for t in got] == list(mask)
        args = [to_lamella(a) for a in (make(6, 5), make(6, 3), make(3, 5), list(mask))]
        got = run(lamella, "linear_backward", args, {})
        assert [t is not None for t in got] == list(mask)


def test_channels_last():
    x = make(2, 6, 7, 8).to(memory_format=torch.channels_last)
    w = make(4, 6, 3, 3)
    how = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    for dtype in (torch.float32, torch.float64):
        out = check("convolution", x.to(dtype), w.to(dtype), None, *how, tolerance=LOOSE[dtype])
        args = (out, x.to(dtype), w.to(dtype), [4], *how, [True] * 3)
        check("convolution_backward", *args, tolerance=LOOSE[torch.float32], strides=False)


def test_empty_batch():
    how = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    x, w = make(0, 3, 5, 5), make(4, 3, 3, 3)
    out = check("convolution", x, w, make(4), *how)
    check("convolution_backward", out, x, w, [4], *how, [True] * 3)


@pytest.mark.parametrize("dtype", LOOSE, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_steps_that_are_never_taken(transposed, dtype):
    # A stride beyond the only window, and a dilation of a kernel of one; PyTorch crashes on large
    # ones.
    most = 2**63 - 1
    name = "conv_transpose1d" if transposed else "conv1d"
    x, w = make(2, 3, 1 if transposed else 4, dtype=dtype), make(3, 3, 2, dtype=dtype, seed=1)

    def ours(*how):
        return torch.from_dlpack(run(lamella, name, [to_lamella(x), to_lamella(w), None, *how], {}))

    check(name, x, w, None, [7], tolerance=LOOSE[dtype])
    assert torch.equal(ours([most]), ours([7]))
    x, w = make(2, 3, 4, dtype=dtype), make(3, 3, 1, dtype=dtype, seed=1)
    how = ([1], [0], [0], 1) if transposed else ([1], [0])
    check(name, x, w, None, *how, [7], tolerance=LOOSE[dtype])
    assert torch.equal(ours(*how, [most]), ours(*how, [7]))


# An output padding below the dilation may be as large as the stride, or larger.
@pytest.mark.parametrize("dtype", LOOSE, ids=str)
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "extra", "dilation"),
    [
        ((2, 2, 5), (2, 3, 3), [1], [0], [1], [2]),
        ((2, 2, 4, 5), (2, 3, 2, 2), [1, 1], [0, 0], [1, 1], [2, 2]),
        ((2, 2, 4, 5), (2, 3, 3, 3), [1, 2], [2, 3], [2, 3], [3, 4]),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), [2, 2, 1], [0, 1, 0], [2, 2, 2], [3, 3, 3]),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), [1, 1, 1], [1, 1, 1], [0, 0, 0], [3, 2, 3]),
    ],
)
def test_transposed_with_dilation(shape, kernel, stride, padding, extra, dilation, dtype):
    x = make(*shape, dtype=dtype, low=-1, high=1)
    w = make(*kernel, dtype=dtype, low=-1, high=1, seed=1)
    b = make(kernel[1], dtype=dtype, seed=2)
    how = (stride, padding, dilation, True, extra, 1)
    out = check("convolution", x, w, b, *how, tolerance=LOOSE[dtype])
    if dtype in (torch.float32, torch.float64):
        grad = make(*out.shape, dtype=dtype, low=-1, high=1, seed=3)
        args = (grad, x, w, [kernel[1]], *how, [True] * 3)
        check("convolution_backward", *args, tolerance=LOOSE[dtype], strides=False)
    if dtype == torch.float32 and len(shape) == 4:
        last = x.contiguous(memory_format=torch.channels_last)
        check("convolution", last, w, b, *how, tolerance=LOOSE[dtype])
