"""Indexing, joining, rearranging, sorting against PyTorch."""

import pytest
from operator_cases import ALL, REAL, WHOLE, check, error_of, make, torch

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


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_index_dtypes(dtype):
    x = make(4, 5, dtype=dtype)
    check("index.Tensor", x, [I])
    check("index_put", x, [I], make(5, dtype=dtype), dtype != torch.bool, meta=False)
    check("index_select", x, 1, torch.tensor([0, 4, 2]))
    check("gather", x, 1, torch.tensor([[0, 1], [2, 3]]))
    check("scatter.src", x, 0, torch.tensor([[0, 1, 2]]), make(2, 5, dtype=dtype))
    check("scatter.value", x, 0, torch.tensor([[0, 1, 2]]), 1)
    check("scatter_add", x, 0, torch.tensor([[0, 0, 2]]), make(2, 5, dtype=dtype))
    check("take", x, torch.tensor([0, 7, -1]))
    check("cat", [x, x], 1)
    check("flip", x, [0, 1])
    check("masked_select", x, make(4, 5, dtype=torch.bool), meta=False)
    check("masked_fill.Scalar", x, make(5, dtype=torch.bool), 1)
    check("nonzero", x, meta=False)
    check("index_fill.int_Scalar", x, 0, torch.tensor([1, 3]), 1)


ONE_INDEX = [
    ("index_select", X, 0, torch.tensor([3, 1])),
    ("index_select", T, 2, torch.tensor([3, 1, 1])),
    ("index_select", X, -1, torch.tensor([], dtype=torch.int64)),
    ("index_select", make(), 0, torch.tensor([0])),
    ("gather", X, 2, torch.zeros(4, 5, 2, dtype=torch.int64)),
    ("gather", T, 0, torch.tensor([[[1, 2], [3, 0]]])),
    ("gather", make(3), 0, torch.tensor([2, 2, 0, 1])),
    ("gather", make(), 0, torch.tensor(0)),
    ("scatter.src", X, 1, torch.tensor([[[4], [2]]]), make(2, 3, 2)),
    ("scatter.value", T, 2, torch.tensor([[[1, 2]]]), 9.0),
    ("scatter.reduce", X, 0, torch.tensor([[[1, 1]]]), make(1, 1, 2)),
    ("scatter_add", X, 0, torch.tensor([[[1, 1], [1, 1]]]), make(1, 2, 2)),
    ("index_add", X, 1, torch.tensor([0, 0, 4]), make(4, 3, 6)),
    ("index_copy", X, 1, torch.tensor([0, 4]), make(4, 2, 6)),
    ("index_fill.int_Scalar", X, 1, torch.tensor([0, -1]), 2.0),
    ("index_fill.int_Tensor", X, 1, torch.tensor([0, 1]), torch.tensor(2.0)),
    ("take", T, torch.tensor([[0, 100], [-1, 5]])),
    ("put_", T, torch.tensor([0, 100, 5]), make(3)),
    ("put_", make(3, 4), torch.tensor([0, 0, 5]), make(3), True),
    ("take_along_dim", X, torch.tensor([[[0]], [[1]], [[2]], [[3]]]), 1),
    ("masked_fill.Scalar", X, make(5, 6, dtype=torch.bool), -1.0),
    ("masked_fill_.Scalar", T, make(5, 6, dtype=torch.bool), -1.0),
    ("masked_fill.Tensor", make(3, 1), make(3, 4, dtype=torch.bool), torch.tensor(2.0)),
]


@pytest.mark.parametrize("case", ONE_INDEX, ids=lambda c: c[0])
def test_one_index(case):
    keywords = {"reduce": "add"} if case[0] == "scatter.reduce" else {}
    check(*case, **keywords)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_scatter_reduce(reduce, include_self, dtype):
    index = torch.tensor([[0, 1, 0, 3], [2, 2, 2, 0]])
    args = (make(4, 4, dtype=dtype), 0, index, make(2, 4, dtype=dtype), reduce)
    check("scatter_reduce.two", *args, include_self=include_self)


def test_masks():
    check("masked_select", X, make(5, 6, dtype=torch.bool), meta=False)
    check("masked_select", T, make(4, 5, 6, dtype=torch.bool), meta=False)
    check("masked_scatter", X, make(5, 6, dtype=torch.bool), make(200))
    check("nonzero", make(3, 4, dtype=torch.bool), meta=False)
    check("nonzero", T > 0, meta=False)
    check("nonzero", torch.tensor(3), meta=False)
    check("nonzero_numpy", make(3, 4, dtype=torch.bool), meta=False)


JOINS = [
    ("cat", [X, X[:2]], 0),
    ("cat", [X, X[:, :2]], 1),
    ("cat", [T, X], -1),
    ("cat", [make(0), X], 0),
    ("cat", [make(2, dtype=torch.int32), make(3)], 0),
    ("cat", [make(2, dtype=torch.bool), make(3, dtype=torch.int8)], 0),
    ("cat", [make(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)] * 2, 1),
    ("stack", [make(2, 3), make(2, 3)], 0),
    ("stack", [make(2, 3), make(2, 3)], -1),
    ("hstack", [make(2), make(3)]),
    ("hstack", [make(2, 3), make(2, 1)]),
    ("vstack", [make(3), make(3)]),
    ("dstack", [make(3), make(3)]),
    ("column_stack", [make(3), make(3, 2)]),
    ("repeat", make(2, 3), [2, 1, 3]),
    ("repeat", make(2, 3), [0, 2]),
    ("tile", make(2, 3), [2]),
    ("repeat_interleave.self_int", make(2, 3), 2, 1),
    ("repeat_interleave.self_int", make(2, 3), 2),
    ("repeat_interleave.self_Tensor", make(2, 3), torch.tensor([1, 2]), 0),
    ("flip", T, [0, 2]),
    ("flip", X, [-1]),
    ("fliplr", make(3, 4)),
    ("flipud", make(3, 4)),
    ("roll", X, [1], [0]),
    ("roll", X, [1, -2], [0, 2]),
    ("roll", X, [7]),
    ("rot90", make(3, 4)),
    ("rot90", make(3, 4), 3, [0, 1]),
    ("diag", make(3), 1),
    ("diag", make(3, 4), -1),
]


@pytest.mark.parametrize("case", JOINS, ids=lambda c: c[0])
def test_joining_and_rearranging(case):
    check(*case, meta=case[0] != "repeat_interleave.self_Tensor")


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


def test_one_hot():
    check("one_hot", torch.tensor([[0, 2], [1, 1]]), meta=False)
    check("one_hot", torch.tensor([0, 2]), 5, meta=False)


@pytest.mark.parametrize("dtype", [torch.bool] + WHOLE + REAL, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype, descending):
    x = make(7, 40, dtype=dtype)
    check("sort.stable", x, stable=True, dim=1, descending=descending)
    check("sort.stable", x, stable=True, dim=0, descending=descending)
    check("sort.stable", x.t(), stable=True, dim=0, descending=descending)
    check("argsort.stable", x, stable=True, dim=-1, descending=descending)


def test_sort_places_nan_last_and_keeps_zeros_in_order():
    x = torch.tensor([0.0, float("nan"), -0.0, float("inf"), -float("inf"), float("nan"), 1.0])
    for dtype in REAL:
        for descending in (False, True):
            check("sort.stable", x.to(dtype), stable=True, descending=descending)
    check("sort", make())
    check("sort.stable", make(0, 3), stable=True)
    check("sort.stable", make(3, 0), stable=True)


@pytest.mark.parametrize("dtype", WHOLE + REAL, ids=str)
def test_topk(dtype):
    x = torch.randperm(100, generator=torch.Generator().manual_seed(0)).reshape(4, 25).to(dtype)
    for largest in (True, False):
        check("topk", x, 3, 1, largest, True)
        check("topk", x, 2, 0, largest, True)
    check("topk", x, 0)
    check("topk", x, 25)


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
