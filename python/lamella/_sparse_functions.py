"""Products, sums and other functions of sparse tensors: lamella.sparse and their methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor, _sparse_shapes
from lamella._sparse_tensor import SparseTensor, check

# Those that products have a kernel for; others are sums of gathered rows.
_PRODUCT_DTYPES = (lamella.float32, lamella.float64, lamella.complex64, lamella.complex128)


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices of which the first, or either, may be sparse: dense with a dense
    one, sparse of two sparse ones. With `reduce` ("sum", "mean", "amax", "amin") the products of
    a row are reduced by that, over those that the sparse matrix stores."""
    function = "sparse.mm"
    if isinstance(mat1, Tensor) and isinstance(mat2, Tensor):
        return lamella.mm(mat1, mat2)
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        check(
            function,
            isinstance(mat, (Tensor, SparseTensor)) and mat.dim() in (1 + (name == "mat1"), 2),
            f"'{name}' to be a matrix",
        )
    check(
        function,
        mat1.shape[1] == mat2.shape[0],
        f"'mat2' to have {mat1.shape[1]} rows, got {mat2.shape[0]}",
    )
    check(function, mat1.dtype == mat2.dtype, f"'mat2' to be {mat1.dtype}, got {mat2.dtype}")
    if isinstance(mat1, Tensor):
        check(function, reduce is None, "a sparse 'mat1' with 'reduce'")
        return mm(mat2.t(), mat1.t()).t()
    if isinstance(mat2, SparseTensor):
        check(function, reduce is None, "a dense 'mat2' with 'reduce'")
        return _sparse_product(mat1, mat2)
    if reduce in (None, "sum") and mat1._coalesced and mat1.dtype in _PRODUCT_DTYPES:
        own = mat1.to_sparse_csr()
        made: Tensor = lamella.ops.aten._csr_mm(own._crow, own._places, own._stored, mat2)
        return made
    rows, columns = mat1._coordinates().unbind(0)
    stored = mat1._stored if mat2.dim() == 1 else mat1._stored.unsqueeze(1)
    parts = mat2.index_select(0, columns) * stored
    shape = (mat1.shape[0], *mat2.shape[1:])
    zeros = lamella.zeros(shape, dtype=parts.dtype, device=parts.device)
    if reduce is None or reduce == "sum":
        return zeros.index_add(0, rows, parts)
    check(
        function,
        reduce in ("mean", "amax", "amin"),
        f"'reduce' to be sum, mean, amax or amin, got {reduce}",
    )
    places = rows.reshape([-1] + [1] * (parts.dim() - 1)).expand(parts.shape)
    return zeros.scatter_reduce(0, places, parts, reduce, include_self=False)


def _sparse_product(mat1: SparseTensor, mat2: SparseTensor) -> SparseTensor:
    """Each element of the first meets the row of the second that its column names."""
    csr = mat1._crow is not None
    left, right = mat1.to_sparse(), mat2.to_sparse_csr()
    rows, columns = left._places.unbind(0)
    first = right._crow.to(lamella.int64)  # type: ignore[union-attr]
    counts = first.diff()[columns]
    which = lamella.arange(left._nnz(), device=left.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    inner = lamella.arange(which.size(0), device=left.device) - before[which]
    other = first[columns[which]] + inner
    places = lamella.stack([rows[which], right._places[other].to(lamella.int64)])
    stored = left._stored[which] * right._stored[other]
    found = SparseTensor(places, stored, [mat1.shape[0], mat2.shape[1]]).coalesce()
    return found.to_sparse_csr() if csr else found


def mv(input: Any, vec: Tensor) -> Tensor:
    """The product of a sparse matrix and a vector."""
    check("mv", vec.dim() == 1, f"'vec' to be a vector, got shape {list(vec.shape)}")
    made: Tensor = mm(input, vec)
    return made


def bmm(input: Any, mat2: Any) -> Tensor:
    """The products of the matrices of a batch, [b, n, m] and sparse, with those of `mat2`,
    [b, m, p]."""
    check(
        "bmm",
        isinstance(input, SparseTensor) and input.dim() == input.sparse_dim() == 3,
        "'input' to be sparse in 3 dimensions",
    )
    check("bmm", isinstance(mat2, Tensor) and mat2.dim() == 3, "a dense 'mat2' of 3 dimensions")
    batch, rows, columns = input.shape
    check(
        "bmm",
        tuple(mat2.shape[:2]) == (batch, columns),
        f"'mat2' of {batch} matrices with {columns} rows, got {list(mat2.shape)}",
    )
    which, row, column = input._places.unbind(0)
    # One matrix with the matrices of the batch along its diagonal.
    places = lamella.stack([which * rows + row, which * columns + column])
    wide = SparseTensor(
        places, input._stored, [batch * rows, batch * columns], None, input._coalesced
    )
    product: Tensor = mm(wide, mat2.reshape(batch * columns, mat2.shape[2]))
    return product.reshape(batch, rows, mat2.shape[2])


def matmul(input: Any, other: Any) -> Any:
    """The product of matrices, of a matrix and a vector, or of batches of matrices."""
    if input.dim() == 3 and other.dim() == 3 and isinstance(input, SparseTensor):
        return bmm(input, other)
    if input.dim() == 1 and other.dim() == 2:
        return mm(other.t(), input)
    return mm(input, other)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2), where `mat1` or `mat2` is sparse."""
    product = mm(mat1, mat2).mul(alpha)
    if isinstance(mat, Tensor) and isinstance(product, SparseTensor):
        return product.add(mat.mul(beta))
    return mat.mul(beta).add(product)


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> SparseTensor:
    """alpha * (mat1 @ mat2) at the places of `input`, plus beta * input. Only these elements of
    the product are computed."""
    function = "sparse.sampled_addmm"
    check(function, isinstance(input, SparseTensor), "'input' to be sparse")
    check(function, mat1.dim() == mat2.dim() == 2, "'mat1' and 'mat2' to be matrices")
    wanted = (mat1.shape[0], mat2.shape[1])
    check(
        function,
        mat1.shape[1] == mat2.shape[0] and tuple(input.shape) == wanted,
        f"matrices whose product has the shape {list(input.shape)} of 'input', got "
        f"{list(mat1.shape)} and {list(mat2.shape)}",
    )
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        check(function, mat.dtype == input.dtype, f"'{name}' to be {input.dtype}, got {mat.dtype}")
    own = input.coalesce()
    rows, columns = own._coordinates().unbind(0)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return own._with(products.mul(alpha).add(own._stored.mul(beta)))


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:  # noqa: A001
    """The sum of all elements, or over dimensions: sparse where sparse dimensions are left, else
    dense."""
    own = input.to_sparse().to(dtype) if dtype is not None else input.to_sparse()
    if dim is None:
        return own._stored.sum()
    dims = {d % own.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    count = own.sparse_dim()
    dense = [d - count + 1 for d in sorted(dims) if d >= count]
    stored = own._stored.sum(dense) if dense else own._stored
    left = [d for d in range(count) if d not in dims]
    if not left:
        return stored.sum(0)
    shape = [size for d, size in enumerate(own.shape) if d not in dims]
    return SparseTensor(own._places[left], stored, shape).coalesce()


def _groups(own: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """For each element the number of its line along `dim`, and how many lines there are."""
    key = lamella.zeros(own._nnz(), dtype=lamella.int64, device=own.device)
    for d in range(own.sparse_dim()):
        if d != dim:
            key = key * own.shape[d] + own._places[d]
    lines, number = lamella.unique(key, return_inverse=True)
    return number, int(lines.size(0))


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of softmax() along a dimension. What is not stored counts as -inf."""
    return _softmax("log_softmax", input, dim, dtype)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """softmax() along a dimension. What is not stored counts as -inf, and stays so."""
    return _softmax("softmax", input, dim, dtype)


def _softmax(function: str, input: SparseTensor, dim: int, dtype: Any) -> SparseTensor:
    full = f"sparse.{function}"
    check(full, isinstance(input, SparseTensor), "'input' to be sparse")
    check(full, -input.dim() <= dim < input.dim(), f"'dim' of {input.dim()} dimensions, got {dim}")
    own = input.to_sparse().coalesce()
    own = own if dtype is None else own.to(dtype)
    dim %= own.dim()
    count = own.sparse_dim()
    stored = own._stored
    if dim >= count:
        return own._with(getattr(lamella, function)(stored, dim - count + 1))
    number, lines = _groups(own, dim)
    places = number.reshape([-1] + [1] * (stored.dim() - 1)).expand(stored.shape)
    shape = (lines, *stored.shape[1:])
    most = lamella.full(shape, -float("inf"), dtype=stored.dtype, device=stored.device)
    most = most.scatter_reduce(0, places, stored.detach(), "amax").gather(0, places)
    shifted = stored - most
    powers = shifted.exp()
    sums = lamella.zeros(shape, dtype=stored.dtype, device=stored.device)
    total = sums.index_add(0, number, powers).index_select(0, number)
    return own._with(shifted - total.log() if function == "log_softmax" else powers / total)


def sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor at the places that `mask` stores."""
    check("sparse_mask", isinstance(mask, SparseTensor), "'mask' to be sparse")
    check(
        "sparse_mask",
        tuple(self.shape) == tuple(mask.shape),
        f"'mask' of shape {list(self.shape)}, got {list(mask.shape)}",
    )
    own = mask.coalesce()
    dense = self.to_dense() if isinstance(self, SparseTensor) else self
    return own._with(dense[tuple(own._coordinates().unbind(0))])


def _add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if isinstance(input, SparseTensor):
        return input.add(other, alpha=alpha)
    return other.mul(alpha).add(input)


def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add(input, other, alpha=-alpha)


def _mul(input: Any, other: Any) -> Any:
    return input.mul(other) if isinstance(input, SparseTensor) else other.mul(input)


# What lamella's functions call where an argument is sparse; others are methods of SparseTensor.
_ANSWERS = {
    "add": _add, "addmm": addmm, "bmm": bmm, "matmul": matmul, "mm": mm, "mul": _mul, "mv": mv,
    "sparse_mask": sparse_mask, "sub": _sub, **_sparse_shapes.JOINS,
}  # fmt: skip


def answer(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of one of lamella's functions with a sparse tensor among its arguments."""
    name = getattr(function, "__name__", "")
    found: Any = _ANSWERS.get(name)
    if found is None and args and isinstance(args[0], SparseTensor) and not name.startswith("_"):
        found = getattr(SparseTensor, name, None)
    check(
        name, callable(found), "no sparse tensor, which this function does not know: to_dense() it"
    )
    return found(*args, **kwargs)
