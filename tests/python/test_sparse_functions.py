"""Sparse tensors beside PyTorch's: batches, shapes, parts, joins, softmax, functions of lamella."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from operator_cases import lamella
from test_sparse import DTYPES, holes, mine, same

warnings.filterwarnings("ignore", ".*[Ss]parse.*")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_of_batches(dtype):
    x, d = holes(3, 5, 4, dtype=dtype), holes(3, 4, 2, dtype=dtype, seed=1)
    ours = mine(x).to_sparse()
    want = torch.bmm(x, d)
    for got in (
        lamella.bmm(ours, mine(d)),
        ours.bmm(mine(d)),
        ours @ mine(d),
        lamella.matmul(ours, mine(d)),
    ):
        same(got, want)
    twice = lamella.sparse_coo_tensor(
        lamella.cat([ours.indices(), ours.indices()], 1),
        lamella.cat([ours.values(), ours.values()]),
        (3, 5, 4),
    )
    same(lamella.bmm(twice, mine(d)), 2 * want)


def test_gradients_of_batches():
    places = [[0, 0, 1, 1], [0, 1, 1, 0], [2, 0, 1, 1]]
    values = lamella.rand(4, dtype=lamella.float64, requires_grad=True)
    dense = lamella.rand(2, 3, 2, dtype=lamella.float64, requires_grad=True)

    def product(v, d):
        return lamella.bmm(lamella.sparse_coo_tensor(places, v, (2, 2, 3)).coalesce(), d)

    assert lamella.autograd.gradcheck(product, (values, dense))
    assert lamella.autograd.gradgradcheck(product, (values, dense))


@pytest.mark.parametrize("shape, count", [((4, 5), 2), ((3, 4, 2), 3), ((3, 4, 2), 2), ((6,), 1)])
def test_shapes(shape, count):
    x = holes(*shape)
    ours, theirs = mine(x).to_sparse(count), x.to_sparse(count)
    for dim in range(-len(shape) - 1, len(shape) + 1):
        same(ours.unsqueeze(dim), theirs.unsqueeze(dim))
    for dim, size in enumerate(shape):
        index = torch.tensor([size - 1, 0, 0, 1])
        same(ours.index_select(dim, mine(index)), theirs.index_select(dim, index))
        for at in (0, -1):
            same(ours.select(dim, at), theirs.select(dim, at))
        same(ours.narrow(dim, 1, size - 1), theirs.narrow_copy(dim, 1, size - 1))
        same(lamella.cat([ours, ours], dim), torch.cat([theirs, theirs], dim))
        same(lamella.stack([ours, ours], dim), torch.stack([theirs, theirs], dim))
    same(ours[1], theirs[1])
    same(ours[1:], x[1:].to_sparse(count))
    assert len(ours) == shape[0]
    if count == 3:
        same(ours.permute(2, 0, 1), theirs.permute(2, 0, 1))
        same(ours[1, 0], theirs[1][0])
    if len(shape) == 2:
        same(ours.T, theirs.t())


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape, count", [((4, 5), 2), ((3, 4, 2), 3), ((3, 4, 2), 2)])
def test_softmax(name, shape, count):
    x = holes(*shape)
    for dim in range(len(shape)):
        ours = getattr(lamella.sparse, name)(mine(x).to_sparse(count), dim)
        same(ours, getattr(torch.sparse, name)(x.to_sparse(count), dim))
    values = lamella.rand(4, dtype=lamella.float64, requires_grad=True)

    def line(v):
        s = lamella.sparse_coo_tensor([[0, 0, 1, 1], [0, 2, 1, 2]], v, (2, 3)).coalesce()
        return getattr(lamella.sparse, name)(s, 1).values()

    assert lamella.autograd.gradcheck(line, (values,))


def test_diagonals_and_masks():
    rows, offsets = torch.randn(3, 4), torch.tensor([0, -1, 2])
    for shape in ((4, 4), (3, 5), (6, 4)):
        ours = lamella.sparse.spdiags(mine(rows), mine(offsets), shape)
        same(ours, torch.sparse.spdiags(rows, offsets, shape))
        csr = lamella.sparse.spdiags(mine(rows), mine(offsets), shape, lamella.sparse_csr)
        same(csr, torch.sparse.spdiags(rows, offsets, shape, torch.sparse_csr))
    x, mask = holes(4, 5), holes(4, 5, seed=1)
    same(mine(x).sparse_mask(mine(mask).to_sparse()), x.sparse_mask(mask.to_sparse().coalesce()))


LAYOUTS = {"csr": (), "csc": (), "bsr": ((2, 3),), "bsc": ((2, 3),)}


@pytest.mark.parametrize("layout, block", LAYOUTS.items(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts_by_rows_and_columns(layout, block, dtype):
    names = ("crow_indices", "col_indices")
    if layout in ("csc", "bsc"):
        names = ("ccol_indices", "row_indices")
    for shape in ((4, 6), (0, 3), (2, 0)) if dtype != torch.int64 else ((4, 6),):
        x = holes(*shape, dtype=dtype)
        theirs = getattr(x, f"to_sparse_{layout}")(*block)
        ours = getattr(mine(x), f"to_sparse_{layout}")(*block)
        for name in (*names, "values"):
            got, expected = getattr(ours, name)(), getattr(theirs, name)()
            np.testing.assert_array_equal(got.numpy(), expected.numpy(), err_msg=name)
        parts = [mine(getattr(theirs, name)()) for name in (*names, "values")]
        again = getattr(lamella, f"sparse_{layout}_tensor")(*parts, shape)
        same(ours.to_dense(), x)
        same(again.to_dense(), x)
        same((ours * 2).to_dense(), x * 2)
        same((ours + ours).to_dense(), x + x)
        same(ours.t().to_dense(), x.t())
        same(ours.to_sparse().to_dense(), x)
        same((ours * mine(x)).to_dense(), x * x)
        assert (ours * mine(x)).layout == ours.layout == (ours + ours).layout
        d = holes(shape[1], 2, dtype=dtype, seed=3)
        same(ours @ mine(d), x @ d)


def test_gradients_of_layouts():
    def through(x, v):
        total = 0
        for layout, block in LAYOUTS.items():
            made = getattr(x, f"to_sparse_{layout}")(*block)
            total = total + (made * 3).to_dense().pow(2).sum() + (made @ v).sum()
        return total

    x = mine(holes(4, 6)) + 0.5
    v = lamella.rand(6, dtype=lamella.float64, requires_grad=True)
    assert lamella.autograd.gradcheck(through, (x.requires_grad_(), v))
    assert lamella.autograd.gradgradcheck(through, (x, v))


def test_where_both_are_stored():
    x, y = holes(4, 5), holes(4, 5, seed=1)
    s, t = mine(x).to_sparse(), mine(y).to_sparse()
    same(s * t, x.to_sparse() * y.to_sparse())
    same(s.sparse_mask(t), x.to_sparse().sparse_mask(y.to_sparse()))
    empty = lamella.zeros(4, 5, dtype=lamella.float64).to_sparse()
    assert (s * empty)._nnz() == 0 and not s.sparse_mask(empty)._nnz()
    same(empty.sparse_mask(t).to_dense(), torch.zeros(4, 5))
    large = lamella.sparse_coo_tensor([[5, 10**7], [7, 10**7]], [2.0, 3], (10**9, 10**9))
    assert (large * large).values().tolist() == [4, 9]


def test_written_in_place_and_kept():
    x = holes(4, 5)
    ours, theirs = mine(x).to_sparse(), x.to_sparse()
    for name, value in (("mul_", 3), ("div_", 2)):
        assert getattr(ours, name)(value) is ours
        same(ours, getattr(theirs, name)(value))
    same(ours.add_(ours.clone()), theirs.add_(theirs.clone()))
    same(ours.float(), theirs.float())
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        same(again, theirs)
    assert ours.zero_()._nnz() == 0 and not ours.to_dense().any()


def square():
    return lamella.ones(2, 2).to_sparse()


ERRORS = [
    (lambda: lamella.bmm(square(), lamella.ones(2, 2, 2)),
     "bmm: expected 'input' to be sparse in 3 dimensions"),
    (lambda: lamella.bmm(lamella.ones(2, 2, 2).to_sparse(), lamella.ones(2, 3, 2)),
     "bmm: expected 'mat2' of 2 matrices with 2 rows, got [2, 3, 2]"),
    (lambda: square().select(2, 0), "select: expected 'dim' in [-2, 1], got 2"),
    (lambda: square()[2], "select: expected 'index' in [-2, 1], got 2"),
    (lambda: square()[::2], "getitem: expected slices with steps of 1, got 2"),
    (lambda: square().index_select(0, lamella.tensor([2])),
     "index_select: expected 'index' in [0, 1], got 2"),
    (lambda: square().narrow(0, 1, 2),
     "narrow: expected 'start' and 'length' within 2, got 1 and 2"),
    (lambda: lamella.cat([square(), lamella.ones(2, 2)]), "cat: expected all tensors to be sparse"),
    (lambda: lamella.cat([square(), lamella.ones(3, 3).to_sparse()]),
     "cat: expected tensors of the shape [2, 2] but for dimension 0, got [3, 3]"),
    (lambda: square().pow(0),
     "pow: expected 'exponent' to be a positive number, which maps 0 to 0"),
    (lambda: square().requires_grad_().mul_(2),
     "sparse: expected no leaf that requires gradients to be written in place"),
    (lambda: lamella.sort(square()),
     "sort: expected dense tensors, got a sparse one that it does not support: to_dense() it"),
    (lambda: lamella.sparse.spdiags(lamella.ones(2, 2), lamella.tensor([1, 1]), (2, 2)),
     "sparse.spdiags: expected 'offsets' that differ"),
    (lambda: lamella.sparse.softmax(square(), 2),
     "sparse.softmax: expected 'dim' of 2 dimensions, got 2"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, text):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == text


def test_true_divide():
    x = lamella.tensor([[0, 2], [3, 0]]).to_sparse()
    found = lamella.true_divide(x, 2)
    assert found.layout == lamella.sparse_coo and found.dtype == lamella.float32
    assert found.to_dense().tolist() == [[0.0, 1.0], [1.5, 0.0]]
    y = x.to(lamella.float64)
    assert y.true_divide_(4) is y and y.to_dense().tolist() == [[0.0, 0.5], [0.75, 0.0]]
