"""Indexing, joining, rearranging, sorting against PyTorch."""

import pytest
from operator_cases import check, error_of, make, torch

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


ERRORS = [
    (("index.Tensor", X, [torch.tensor([4])]), "index: expected 'index' in [-4, 3], got 4"),
    (
        ("index.Tensor", X, [torch.tensor([0, 1]), torch.tensor([0, 1, 2])]),
        "index: expected 'indices' to be broadcastable together, got [2] and [3]",
    ),
    (
        ("index.Tensor", X, [make(3, 5, dtype=torch.bool)]),
        "index: expected a mask to fit dimension 0 of [4, 5, 6], got one of [3, 5]",
    ),
    (
        ("index_select", X, 0, torch.tensor([4])),
        "index_select: expected 'index' in [0, 3], got 4",
    ),
    (
        ("gather", X, 0, torch.tensor([0])),
        "gather: expected 'index' to have 3 dimensions as 'self' does, got [1]",
    ),
    (
        ("scatter.src", make(3), 0, torch.tensor([0, 1]), make(1)),
        "scatter: expected 'index' to be no larger than 'src', got [2] for [1]",
    ),
    (
        ("cat", [make(2, 3), make(2, 4)], 0),
        "cat: expected 'tensors' to be of shape [*, 3], got [2, 4] at position 1",
    ),
    (("cat", [], 0), "cat: expected 'tensors' not to be empty"),
    (
        ("stack", [make(2), make(3)], 0),
        "stack: expected 'tensors' to be of shape [2], got [3] at position 1",
    ),
    (("topk", make(3), 4), "topk: expected 'k' in [0, 3], got 4"),
    (
        ("masked_fill_.Scalar", make(3), make(3), 1.0),
        "masked_fill_: expected 'mask' to be bool, got float32",
    ),
    (("flip", X, [0, 0]), "flip: expected 'dims' to be distinct, got [0, 0]"),
    (
        ("index_put_", make(3), [torch.tensor([0])], make(1, dtype=torch.float64)),
        "index_put_: expected 'values' to be float32, got float64",
    ),
]


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index):
    call, text = ERRORS[index]
    assert error_of(*call) == text
