"""Indexing, joining, rearranging, sorting against PyTorch."""

import pytest
from operator_cases import check, make, torch

X = make(4, 5, 6)
T = make(6, 5, 4).permute(2, 1, 0)
I = torch.tensor([2, 0, -1])
J = torch.tensor([[0, 1, 2], [3, -1, 1]])
MASK = make(4, 5, dtype=torch.bool)

INDICES = [
    [I],
    [None, I],
    [None, None, I],
    [J],
    [None, J],
    [I, I],
    [I, None, I],
    [None, I, I],
    [J, I],
    [I.reshape(3, 1), J[0]],
    [MASK],
    [None, make(5, 6, dtype=torch.bool)],
    [make(4, dtype=torch.bool), None, torch.tensor([1])],
    [torch.tensor(2)],
    [torch.tensor([], dtype=torch.int64)],
    [I.to(torch.int32)],
    [MASK.to(torch.uint8)],
]


@pytest.mark.parametrize("index", range(len(INDICES)))
@pytest.mark.parametrize("source", ["contiguous", "permuted", "gaps"])
def test_index(index, source):
    x = {"contiguous": X, "permuted": T, "gaps": make(4, 5, 12)[:, :, ::2]}[source]
    indices = INDICES[index]
    masks = any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices)
    result = check("index.Tensor", x, indices, meta=not masks)
    # Places that occur twice take one of the values, so these are all the same.
    check("index_put_", x, indices, torch.full(result.shape, 3.0), meta=False)
    distinct = torch.arange(result.numel(), dtype=x.dtype).reshape(result.shape)
    check("index_put_", x, indices, distinct, True, meta=False)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_scatter_reduce(reduce, include_self, dtype):
    index = torch.tensor([[0, 1, 0, 3], [2, 2, 2, 0]])
    args = (make(4, 4, dtype=dtype), 0, index, make(2, 4, dtype=dtype), reduce)
    check("scatter_reduce.two", *args, include_self=include_self)
    lines = (make(4, 3, dtype=dtype), 0, torch.tensor([0, 2, 0]), make(3, 3, dtype=dtype, seed=1))
    if reduce != "sum":
        check("index_reduce", *lines, reduce, include_self=include_self)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool])
def test_index_add_takes_any_alpha(dtype):
    x, source = torch.ones(3, dtype=dtype), torch.ones(2, dtype=dtype)
    for alpha in (2.0, 1.75, 3):
        check("index_add", x, 0, torch.tensor([0, 2]), source, alpha=alpha)


def test_an_index_of_nothing_may_be_of_any_dtype():
    none = torch.empty(0, dtype=torch.uint8)
    check("gather", make(3), 0, none)
    check("scatter.src", make(3), 0, none, make(3))
    check("scatter.value", make(3), 0, none, 2.0)
    check("scatter_add", make(3), 0, none, make(3))
