"""Backwards of views and selections, and the scatter forms of views, against PyTorch."""

import pytest
from operator_cases import check, make, torch

SHAPES = [(5,), (3, 4), (2, 3, 4), (3, 40, 5), (50,), (2, 0, 3)]
SLICES = [(0, None, 1), (1, None, 1), (0, -1, 1), (0, 100, 2), (1, -1, 1), (-2, -1, 1), (3, 1, 1)]


def reversed_strides(value):
    """The same values in the opposite order of dimensions."""
    order = list(range(value.dim() - 1, -1, -1))
    return value.permute(order).contiguous().permute(order)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_select(shape):
    for dim in range(-len(shape), len(shape)):
        for index in sorted({0, shape[dim] - 1, -1, -shape[dim], shape[dim] // 2}):
            if not -shape[dim] <= index < shape[dim]:
                continue
            part = torch.zeros(shape).select(dim, index)
            for grad in (make(*part.shape), reversed_strides(make(*part.shape))):
                check("select_backward", grad, shape, dim, index, strides=False)
                check("select_scatter", make(*shape), grad, dim, index)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("start, end, step", SLICES)
def test_slice(shape, start, end, step):
    for dim in range(-len(shape), len(shape)):
        index = [slice(None)] * len(shape)
        index[dim] = slice(start, end, step)
        part = torch.zeros(shape)[tuple(index)]
        last = shape[dim] if end is None else end
        for dtype in (torch.float32, torch.complex128, torch.bfloat16):
            grad = make(*part.shape, dtype=dtype)
            check("slice_backward", grad, shape, dim, start, last, step, strides=False)
        grad = reversed_strides(make(*part.shape))
        check("slice_backward", grad, shape, dim, start, last, step, strides=False)
        check("slice_scatter", make(*shape), grad, dim, start, end, step)


@pytest.mark.parametrize(
    "base, size, stride, offset",
    [
        (make(4, 4), (2, 2), (1, 2), 1),
        (make(4, 4).t(), (2, 2), (1, 2), None),
        (make(6, 4)[::2, :2], (2, 2), (8, 1), 1),
        (make(1, 6).expand(5, 6), (2, 2), (2, 1), None),
        (make(1, 6).expand(5, 6), (2, 2), (6, 2), 1),
    ],
)
def test_as_strided_scatter(base, size, stride, offset):
    check("as_strided_scatter", base, make(*size), size, stride, offset, meta=False)


def test_indexing():
    index = torch.tensor([0, 2, 2])
    check("index_select_backward", make(3, 3), (4, 3), 0, index)
    check("put", make(4, 4), index, make(3), True)
    check("put", make(4, 4), torch.tensor([[0], [-1]]), make(2))
    mask = torch.tensor([True, False, True])
    check("masked_scatter_backward", make(3, 3), mask.expand(3, 3), (3, 3), meta=False)
    check("masked_scatter_backward", make(3, 3), mask.expand(3, 3), (6,), meta=False)
    check("masked_select_backward", make(6), make(3, 3), mask)
    for keepdim in (True, False):
        index = torch.tensor([[1], [0], [3]]) if keepdim else torch.tensor([1, 0, 3])
        grad = make(*index.shape)
        check("value_selecting_reduction_backward", grad, 1, index, (3, 4), keepdim)
    check("value_selecting_reduction_backward", make(), 0, torch.tensor(0), (), False)


@pytest.mark.parametrize(
    "base",
    [
        make(5, 12)[:, ::2],
        make(5, 12).t()[::2],
        make(2, 5, 12)[:, 1:4, ::3].flatten(0, 1),
        make(1, 6).expand(5, 6),
    ],
    ids=["gaps", "transposed", "two gaps", "expanded"],
)
def test_scatter_into_gaps(base):
    check("slice_scatter", base, make(*base[1:3].shape), 0, 1, 3, meta=False)
    check("select_scatter", base, make(*base[:, 1].shape), 1, 1, meta=False)
    check("diagonal_scatter", base, make(*base.diagonal().shape), meta=False)
