"""Sparse tensors beside PyTorch's: layouts, products, sums, gradients to dense tensors, errors."""

import warnings

import numpy as np
import pytest
import torch
from operator_cases import lamella

warnings.filterwarnings("ignore", ".*[Ss]parse.*")
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64]


def holes(*shape, dtype=torch.float64, seed=0):
    """A dense tensor of which about two thirds are 0."""
    generator = torch.Generator().manual_seed(seed)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(-3, 4, shape, generator=generator).to(dtype)
    x = torch.randn(shape, dtype=dtype, generator=generator)
    return x * (torch.rand(shape, generator=generator) < 0.35)


def mine(x):
    return lamella.from_numpy(x.detach().resolve_conj().numpy())


def same(ours, theirs, tolerance=1e-5):
    """Of the same layout, with the same parts."""
    if not isinstance(theirs, torch.Tensor) or theirs.layout == torch.strided:
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance)
        return
    assert str(ours.layout).partition(".")[2] == str(theirs.layout).partition(".")[2]
    assert tuple(ours.shape) == tuple(theirs.shape)
    if theirs.layout == torch.sparse_csr:
        names = ("crow_indices", "col_indices", "values")
    else:
        theirs, names = theirs.coalesce(), ("indices", "values")
        assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())
        ours = ours.coalesce()
    for name in names:
        got, expected = getattr(ours, name)(), getattr(theirs, name)()
        np.testing.assert_allclose(
            got.detach().numpy(), expected.detach().numpy(), rtol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int8, torch.bool, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 2), (6,), (0, 3), ()])
def test_layouts(dtype, shape):
    x = holes(*shape).to(dtype) if dtype == torch.bool else holes(*shape, dtype=dtype)
    y = mine(x)
    for count in range(1 if shape else 0, len(shape) + 1):
        same(y.to_sparse(count), x.to_sparse(count))
        np.testing.assert_array_equal(y.to_sparse(count).to_dense().numpy(), x.numpy())
    if len(shape) == 2:
        same(y.to_sparse_csr(), x.to_sparse_csr())
        np.testing.assert_array_equal(y.to_sparse_csr().to_dense().numpy(), x.numpy())
        same(y.to_sparse_csr().to_sparse(), x.to_sparse_csr().to_sparse())
        same(y.to_sparse().t(), x.to_sparse().t())


def test_places_that_stand_twice():
    places, values = [[0, 1, 0, 2], [2, 0, 2, 1]], [[3.0, 1], [4, 1], [5, 2], [6, 0]]
    theirs = torch.sparse_coo_tensor(places, values, (3, 4, 2))
    ours = lamella.sparse_coo_tensor(places, values, (3, 4, 2))
    assert not ours.is_coalesced() and ours._nnz() == 4
    same(ours, theirs)
    same(ours.to_dense(), theirs.to_dense())
    same(lamella.sparse_coo_tensor(places, values), torch.sparse_coo_tensor(places, values))
    same(ours.t() if ours.dim() == 2 else ours.transpose(0, 1), theirs.transpose(0, 1))
    again = ours.coalesce()
    assert again.is_coalesced() and again.coalesce() is again
    csr = [0, 2, 2, 3], [0, 2, 1], [1.0, 2, 3]
    same(lamella.sparse_csr_tensor(*csr, (3, 4)), torch.sparse_csr_tensor(*csr, (3, 4)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_products(dtype, layout):
    a, b = holes(5, 7, dtype=dtype), holes(7, 3, dtype=dtype, seed=1)
    s, t = getattr(mine(a), layout)(), getattr(a, layout)()
    same(lamella.sparse.mm(s, mine(b)), a @ b)
    same(s @ mine(b), a @ b)
    same(s @ mine(b[:, 0]), a @ b[:, 0])
    for product in (s.mm, lambda b: lamella.mm(s, b), lambda b: lamella.matmul(s, b)):
        same(product(mine(b)), a @ b)
    same(lamella.mv(s, mine(b[:, 0])), a @ b[:, 0])
    same(mine(b).t() @ s.t(), b.t() @ a.t())
    same(lamella.addmm(mine(a @ b), s, mine(b), beta=2, alpha=3), 5 * (a @ b))
    same(lamella.sparse.addmm(mine(a @ b), s, mine(b), beta=2, alpha=3), 5 * (a @ b))
    same(lamella.sparse.mm(mine(b.mT.contiguous()), s.t()), b.mT @ a.mT)
    product = lamella.sparse.mm(s, getattr(mine(b), layout)())
    assert product.layout == s.layout
    same(product.to_dense(), a @ b)
    same((s + s).to_dense(), a + a)
    if layout == "to_sparse":
        same(lamella.add(mine(a), s, alpha=2), a + 2 * a)
        same(s - s * 3, t - t * 3)
        for name, *more in (("mul", 3), ("sum",), ("abs",), ("transpose", 0, 1)):
            same(getattr(lamella, name)(s, *more), getattr(torch, name)(t, *more))
    same((s - mine(a)), a - a)
    same((s * 3).to_dense(), 3 * a)
    same(s * s, (t.to_dense() * t.to_dense()).to_sparse() if layout == "to_sparse" else t * t)
    same((s * mine(holes(7, dtype=dtype))).to_dense(), a * holes(7, dtype=dtype))
    same((-s).to_dense(), -a)


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_products_of_rows(dtype, index):
    """Stripes of every width, rows without elements, and rows longer than the vectors' steps."""
    for rows, inner in ((1, 1), (9, 40), (3, 0), (0, 4)):
        a = holes(rows, inner, dtype=dtype)
        a[1::3] = 0
        s = a.to_sparse_csr()
        parts = [mine(t) for t in (s.crow_indices().to(index), s.col_indices().to(index))]
        ours = lamella.sparse_csr_tensor(*parts, mine(s.values()), (rows, inner))
        for width in (0, 1, 2, 7, 64, 101):
            b = torch.randn(inner, width, dtype=dtype)
            np.testing.assert_allclose((ours @ mine(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(
                (ours @ mine(b.mT.contiguous()).t()).numpy(), a @ b, rtol=1e-4, atol=1e-4
            )
        np.testing.assert_allclose(
            (ours @ lamella.ones(inner, dtype=ours.dtype)).numpy(), a.sum(1), rtol=1e-4, atol=1e-4
        )


def test_rows_are_checked():
    def call(crow=(0, 1, 2), columns=(0, 2), values=(1.0, 2.0), other=None, index=lamella.int64):
        other = lamella.ones(3, 2) if other is None else other
        parts = [lamella.tensor(list(t), dtype=index) for t in (crow, columns)]
        return lamella.ops.aten._csr_mm(*parts, lamella.tensor(list(values)), other)

    assert call().tolist() == [[1, 1], [2, 2]]
    outside = "_csr_mm: expected 'columns' to be in [0, 2]"
    grows = "_csr_mm: expected 'crow' to grow from 0 to 2, the number of values"
    for keywords, text in [
        ({"columns": (0, 3)}, outside),
        ({"columns": (0, -1)}, outside),
        ({"crow": (0, 1, 3)}, grows),
        ({"crow": (0, 3, 2)}, grows),
        ({"crow": (-9, 1, 2)}, grows),
        ({"values": (1.0,)}, "_csr_mm: expected 'values' to be of shape [2], got [1]"),
        ({"other": lamella.ones(3, 2, dtype=lamella.float64)},
         "_csr_mm: expected 'other' to be float32, got float64"),
        ({"other": lamella.ones(3, 2, 2)},
         "_csr_mm: expected 'other' to be a matrix or a vector, got [3, 2, 2]"),
        ({"index": lamella.int16}, "_csr_mm: expected 'crow' to be int32 or int64, got int16"),
    ]:  # fmt: skip
        with pytest.raises((RuntimeError, IndexError, TypeError)) as caught:
            call(**keywords)
        assert str(caught.value).startswith(text)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_mm_reduces(reduce):
    a, b = holes(6, 5), torch.randn(5, 4, dtype=torch.float64)
    s = a.to_sparse_csr().requires_grad_()
    d = b.clone().requires_grad_()
    theirs = torch.sparse.mm(s, d, reduce)
    ours_s, ours_d = mine(a).to_sparse_csr().requires_grad_(), mine(b).requires_grad_()
    ours = lamella.sparse.mm(ours_s, ours_d, reduce)
    same(ours, theirs)
    seed = torch.randn_like(theirs)
    theirs.backward(seed)
    ours.backward(mine(seed))
    same(ours_d.grad, d.grad)
    same(ours_s.grad.values(), s.grad.values())


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_sampled_addmm(dtype):
    a, b = torch.randn(5, 4, dtype=dtype), torch.randn(4, 6, dtype=dtype)
    x = holes(5, 6, dtype=dtype)
    theirs = torch.sparse.sampled_addmm(x.to_sparse_csr(), a, b, beta=0.2, alpha=0.6)
    ours = lamella.sparse.sampled_addmm(
        mine(x).to_sparse_csr(), mine(a), mine(b), beta=0.2, alpha=0.6
    )
    same(ours, theirs, 1e-4)


def test_sums():
    x = holes(4, 5, 3)
    s, t = mine(x).to_sparse(), x.to_sparse()
    same(lamella.sparse.sum(s), torch.sparse.sum(t))
    for dim in (0, 1, (0, 2), (0, 1, 2)):
        same(lamella.sparse.sum(s, dim), torch.sparse.sum(t, dim))
    same(lamella.sparse.sum(mine(x).to_sparse(2), 2), torch.sparse.sum(x.to_sparse(2), 2))
    same(s.sum((0, 1, 2)), x.sum())


def test_gradients_reach_dense_tensors():
    x, d = holes(5, 4), torch.randn(4, 3, dtype=torch.float64)
    for layout in ("to_sparse", "to_sparse_csr"):
        theirs, dense = x.clone().requires_grad_(), d.clone().requires_grad_()
        seed = torch.randn(5, 3, dtype=torch.float64)
        if layout == "to_sparse":
            torch.sparse.mm(theirs.to_sparse(), dense).backward(seed)
        else:
            ((theirs * (x != 0)) @ dense).backward(seed)
        ours, ours_dense = mine(x).requires_grad_(), mine(d).requires_grad_()
        lamella.sparse.mm(getattr(ours, layout)(), ours_dense).backward(mine(seed))
        same(ours.grad, theirs.grad)
        same(ours_dense.grad, dense.grad)
    values = lamella.rand(3, dtype=lamella.float64, requires_grad=True)

    def through(v, m):
        s = lamella.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], v, (2, 3))
        return (s.coalesce() @ m) * s.to_dense().sum() + lamella.sparse.sum(s.sin(), 0).to_dense()[
            0
        ]

    side = mine(torch.randn(3, 2, dtype=torch.float64)).requires_grad_()
    assert lamella.autograd.gradcheck(through, (values, side))
    assert lamella.autograd.gradgradcheck(through, (values, side))


def matrix():
    return lamella.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))


ERRORS = [
    (lambda: lamella.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)),
     "sparse_coo_tensor: expected 'indices' of dimension 0 in [0, 2], got 5"),
    (lambda: lamella.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
     "sparse_coo_tensor: expected 'indices' of dimension 0 in [0, 2], got -1"),
    (lambda: lamella.sparse_coo_tensor([[0, 1]], [1.0], (3,)),
     "sparse_coo_tensor: expected 'values' to have 2 rows, one for each column of 'indices', got "
     "[1]"),
    (lambda: lamella.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)),
     "sparse_coo_tensor: expected 'size' of 1 sparse dimensions and [], got [3, 3]"),
    (lambda: lamella.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2)),
     "sparse_csr_tensor: expected 'crow_indices' to grow from 0 to 2, got 0 to 1"),
    (lambda: lamella.sparse_csr_tensor([0, 1, 2], [0, 2], [1.0, 2.0], (2, 2)),
     "sparse_csr_tensor: expected 'col_indices' of dimension 0 in [0, 1], got 2"),
    (lambda: matrix().indices(),
     "indices: expected a coalesced tensor, got one that is not: coalesce() it"),
    (lambda: matrix().crow_indices(),
     "crow_indices: expected a tensor of layout lamella.sparse_csr or lamella.sparse_bsr, got "
     "lamella.sparse_coo"),
    (lambda: matrix() @ lamella.ones(3, 2), "sparse.mm: expected 'mat2' to have 2 rows, got 3"),
    (lambda: matrix() @ lamella.ones(2, 2, dtype=lamella.int64),
     "sparse.mm: expected 'mat2' to be lamella.float32, got lamella.int64"),
    (lambda: lamella.sparse.mm(matrix(), lamella.ones(2, 2), "prod"),
     "sparse.mm: expected 'reduce' to be sum, mean, amax or amin, got prod"),
    (lambda: lamella.sparse.sampled_addmm(matrix(), lamella.ones(2, 3), lamella.ones(3, 1)),
     "sparse.sampled_addmm: expected matrices whose product has the shape [2, 2] of 'input', got "
     "[2, 3] and [3, 1]"),
    (lambda: matrix() + lamella.sparse_coo_tensor([[0]], [1.0], (2,)),
     "add: expected 'other' of shape [2, 2], got [2]"),
    (lambda: matrix() * lamella.ones(3, 1),
     "mul: expected 'other' to be broadcastable to [2, 2], got [3, 1]"),
    (lambda: lamella.ones(3).to_sparse_csr(),
     "to_sparse_csr: expected a matrix, got a tensor of shape [3]"),
    (lambda: lamella.ones(3).to_sparse(2), "to_sparse: expected 'sparse_dim' in [1, 1], got 2"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, text):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == text
