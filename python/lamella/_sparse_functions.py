"""Products, sums and other functions of sparse tensors, for lamella.sparse and the methods of
SparseTensor; answer() dispatches lamella's functions to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor, _sparse_shapes
from lamella._sparse_tensor import _OF_BLOCKS, SparseTensor, _strides, check

# Dtypes of the kernel for products; products of other dtypes sum gathered rows.
_PRODUCT_DTYPES = (lamella.float32, lamella.float64, lamella.complex64, lamella.complex128)


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, either of which may be sparse; it is sparse if both are.

    reduce: "sum", "mean", "amax" or "amin" reduces the products of a row, over the elements that
    the sparse matrix stores."""
    function = "sparse.mm"
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return lamella.mm(mat1, mat2)
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        check(
            function,
            isinstance(mat, Tensor) and mat.dim() in (1 + (name == "mat1"), 2),
            f"'{name}' to be a matrix",
        )
    check(
        function,
        mat1.shape[1] == mat2.shape[0],
        f"'mat2' to have {mat1.shape[1]} rows, got {mat2.shape[0]}",
    )
    check(function, mat1.dtype == mat2.dtype, f"'mat2' to be {mat1.dtype}, got {mat2.dtype}")
    if not isinstance(mat1, SparseTensor):
        check(function, reduce is None, "a sparse 'mat1' with 'reduce'")
        return mm(mat2.t(), mat1.t()).t()
    if isinstance(mat2, SparseTensor):
        check(function, reduce is None, "a dense 'mat2' with 'reduce'")
        return _sparse_product(mat1, mat2)
    if reduce in (None, "sum") and mat1._coalesced and mat1.dtype in _PRODUCT_DTYPES:
        own = mat1.to_sparse_csr()
        made: Tensor = lamella.ops.aten._csr_mm(own._crow, own._places, own._stored, mat2)
        return made
    mat1 = mat1.to_sparse()
    rows, columns = mat1._places.unbind(0)
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
    """The product of two sparse matrices: multiplies each element of the first by all elements of
    the second in the row that is the first one's column."""
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
    return found.to_sparse_csr() if mat1._crow is not None else found


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
    check(
        "bmm",
        not isinstance(mat2, SparseTensor) and mat2.dim() == 3,
        "a dense 'mat2' of 3 dimensions",
    )
    batch, rows, columns = input.shape
    check(
        "bmm",
        tuple(mat2.shape[:2]) == (batch, columns),
        f"'mat2' of {batch} matrices with {columns} rows, got {list(mat2.shape)}",
    )
    which, row, column = input._places.unbind(0)
    # A block-diagonal matrix of the matrices of the batch.
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
    return add(mat.mul(beta), product)


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> SparseTensor:
    """alpha * (mat1 @ mat2) + beta * input at the indices that `input` stores. Only these elements
    of the product are computed."""
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
    check(function, own.layout not in _OF_BLOCKS, f"a layout without blocks, got {own.layout}")
    rows, columns = own._coordinates().unbind(0)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return own._with(products.mul(alpha).add(own._stored.mul(beta)))


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:  # noqa: A001
    """The sum of all elements, or over dimensions: sparse if sparse dimensions remain, else
    dense."""
    if not isinstance(input, SparseTensor):
        return lamella.sum(input, dim, keepdim, dtype=dtype)
    own = input.to_sparse().to(dtype) if dtype is not None else input.to_sparse()
    if dim is None:
        return own._stored.sum()
    dims = {d % own.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    count = own.sparse_dim()
    dense = [d - count + 1 for d in sorted(dims) if d >= count]
    stored = own._stored.sum(dense, keepdim) if dense else own._stored
    left = [d for d in range(count) if d not in dims]
    shape = [1 if d in dims else size for d, size in enumerate(own.shape)]
    if not keepdim:
        shape = [size for d, size in enumerate(own.shape) if d not in dims]
        if not left:
            return stored.sum(0)
        return SparseTensor(own._places[left], stored, shape).coalesce()
    kept = lamella.tensor([int(d in left) for d in range(count)], device=own.device)
    found = SparseTensor(own._places * kept.unsqueeze(1), stored, shape).coalesce()
    return _as_in(found, input) if input.layout not in _OF_BLOCKS else found


def _groups(own: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """For each element the number of its line along `dim`, and the number of such lines. A line has
    the elements whose indices differ only in `dim`."""
    key = lamella.zeros(own._nnz(), dtype=lamella.int64, device=own.device)
    for d in range(own.sparse_dim()):
        if d != dim:
            key = key * own.shape[d] + own._places[d]
    lines, number = lamella.unique(key, return_inverse=True)
    return number, int(lines.size(0))


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of softmax() along a dimension. Elements that are not stored count as -inf."""
    return _softmax("log_softmax", input, dim, dtype)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """softmax() along a dimension. Elements that are not stored count as -inf, so that they are not
    stored in the result."""
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


def _keys(own: SparseTensor) -> Tensor:
    """The flat index of each stored element over the sparse dimensions; ascending if the tensor is
    coalesced."""
    steps = _strides(own.shape[: own.sparse_dim()])
    made = lamella.zeros(own._nnz(), dtype=lamella.int64, device=own.device)
    for line, step in zip(own._places, steps):
        made = made + line * step
    return made


def _found(places: SparseTensor, own: SparseTensor) -> tuple[Tensor, Tensor]:
    """For two coalesced tensors of layout sparse_coo: for each index of `places` the number of the
    element that `own` stores there, and whether there is one."""
    wanted, keys = _keys(places), _keys(own)
    number = lamella.searchsorted(keys, wanted).clamp(max=max(keys.size(0) - 1, 0))
    if keys.size(0) == 0:
        return number, lamella.zeros_like(number, dtype=lamella.bool)
    return number, keys[number] == wanted


def _as_in(own: SparseTensor, like: SparseTensor) -> SparseTensor:
    """`own` in the layout, and with the block size, of `like`."""
    if like._crow is None:
        return own
    blocks = tuple(like._stored.shape[1:3]) if like.layout in _OF_BLOCKS else None
    return own.to_sparse(layout=like.layout, blocksize=blocks)


def sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor at the indices that `mask` stores, in its layout."""
    function = "sparse_mask"
    check(function, isinstance(mask, SparseTensor), "'mask' to be sparse")
    check(
        function,
        tuple(self.shape) == tuple(mask.shape),
        f"'mask' of shape {list(self.shape)}, got {list(mask.shape)}",
    )
    own = mask.to_sparse().coalesce()
    if not isinstance(self, SparseTensor):
        return _as_in(own._with(_picked(self, own)), mask)
    mine = self.to_sparse().coalesce()
    check(
        function,
        mine.sparse_dim() == own.sparse_dim(),
        f"'mask' of {mine.sparse_dim()} sparse dimensions, got {own.sparse_dim()}",
    )
    number, there = _found(own, mine)
    zeros = mine._stored.new_zeros(own._nnz(), *mine._stored.shape[1:])
    if mine._nnz():
        there = there.reshape([-1] + [1] * mine.dense_dim())
        zeros = lamella.where(there, mine._stored[number], zeros)
    return _as_in(own._with(zeros), mask)


def _picked(dense: Tensor, own: SparseTensor) -> Tensor:
    """The elements of a dense tensor at the indices of a tensor of layout sparse_coo."""
    if own.sparse_dim() == 0:
        return dense.unsqueeze(0).expand(own._nnz(), *dense.shape)
    return dense[tuple(own._places.unbind(0))]


def _check_same(function: str, one: Any, other: Any) -> None:
    check(
        function,
        tuple(other.shape) == tuple(one.shape),
        f"'other' of shape {list(one.shape)}, got {list(other.shape)}",
    )
    if isinstance(one, SparseTensor) and isinstance(other, SparseTensor):
        check(
            function,
            one.sparse_dim() == other.sparse_dim(),
            f"'other' with {one.sparse_dim()} sparse dimensions, got {other.sparse_dim()}",
        )


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """The sum: sparse of two sparse tensors of the same shape, dense with a dense one."""
    for value in (input, other):
        check("add", isinstance(value, Tensor), f"a tensor, got {type(value).__name__}")
    if not isinstance(other, SparseTensor):
        return other.mul(alpha).add(input.to_dense())
    if not isinstance(input, SparseTensor):
        return input.add(other.to_dense(), alpha=alpha)
    _check_same("add", input, other)
    mine, theirs = input.to_sparse(), other.to_sparse()
    joined = SparseTensor(
        lamella.cat([mine._places, theirs._places], 1),
        lamella.cat([mine._stored, theirs._stored.mul(alpha)]),
        input.shape,
    )
    return _as_in(joined.coalesce(), input)


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    product = mm(input, weight.t())
    return product if bias is None else add(bias.expand(product.shape), product)


def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(input, other, alpha=-alpha)


def mul(input: Any, other: Any) -> SparseTensor:
    """The product with a number or a tensor; it stores what all sparse factors store."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if not isinstance(other, Tensor) or (other.dim() == 0 and not isinstance(other, SparseTensor)):
        found: SparseTensor = input._with(input._stored.mul(other))
        return found
    own = input.to_sparse().coalesce()
    if isinstance(other, SparseTensor):
        _check_same("mul", input, other)
        theirs = other.to_sparse().coalesce()
        number, there = _found(own, theirs)
        kept = there.nonzero().reshape(-1)
        stored = own._stored[kept] * theirs._stored[number[kept]]
        made = SparseTensor(own._places[:, kept], stored, own.shape, None, True)
        return _as_in(made, input)
    shape = [max(a, b) for a, b in zip(other.shape[::-1], own.shape[::-1])]
    check(
        "mul",
        other.dim() <= own.dim() and shape == list(own.shape[::-1][: other.dim()]),
        f"'other' to be broadcastable to {list(own.shape)}, got {list(other.shape)}",
    )
    return _as_in(own._with(own._stored.mul(_picked(other.expand(own.shape), own))), input)


def check_divisor(other: Any) -> None:
    check(
        "div",
        not isinstance(other, SparseTensor) and (not isinstance(other, Tensor) or not other.dim()),
        "'other' to be a number",
    )


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """The quotient by a number."""
    check_divisor(other)
    own = input if rounding_mode is None or input._crow is not None else input.coalesce()
    found: SparseTensor = own._with(own._stored.div(other, rounding_mode=rounding_mode))
    return found


def pow(input: SparseTensor, exponent: Any) -> SparseTensor:  # noqa: A001
    """The power by a positive number, which maps 0 to 0."""
    check(
        "pow",
        not isinstance(exponent, Tensor) and exponent > 0,
        "'exponent' to be a positive number, which maps 0 to 0",
    )
    own = input if input._crow is not None else input.coalesce()
    return own._with(own._stored.pow(exponent))


def _empty(
    input: SparseTensor, size: Sequence[int], dtype: Any, device: Any, requires_grad: bool
) -> SparseTensor:
    """A sparse tensor without stored elements, in the layout of another one."""
    dense = input.dense_dim() if len(size) == input.dim() else 0
    count = len(size) - dense
    device = input.device if device is None else device
    stored = lamella.empty(0, *size[count:], dtype=dtype or input.dtype, device=device)
    places = lamella.empty(count, 0, dtype=lamella.int64, device=device)
    made = SparseTensor(places, stored.requires_grad_(requires_grad), size, None, True)
    return _as_in(made, input)


def zeros_like(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """A sparse tensor without stored elements, in the layout of another one; with `layout`
    `strided` a dense tensor of zeros."""
    if layout == lamella.strided:
        dtype, device = dtype or input.dtype, device or input.device
        return lamella.zeros(input.shape, dtype=dtype, device=device, requires_grad=requires_grad)
    return _empty(input, input.shape, dtype, device, requires_grad)


def _new_zeros(input: SparseTensor, *size: Any, **options: Any) -> SparseTensor:
    sizes = size[0] if size and not isinstance(size[0], int) else size
    requires_grad = options.get("requires_grad", False)
    return _empty(input, sizes, options.get("dtype"), options.get("device"), requires_grad)


def _write_sum(dense: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if isinstance(dense, SparseTensor):
        return dense.add_(other, alpha=alpha)
    return _sparse_written().into_dense_(dense, other, alpha)


def _write_difference(dense: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    return _write_sum(dense, other, alpha=-alpha)


def _write_product(own: Tensor, other: Any) -> Tensor:
    return own.mul_(other if isinstance(own, SparseTensor) else other.to_dense())


def _write_copy(dense: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    return dense.copy_(src if isinstance(dense, SparseTensor) else src.to_dense())


def _sparse_written() -> Any:  # that module imports this one
    module: Any = lamella.sparse
    return module._sparse_written


# The implementations of lamella's functions for sparse arguments. Functions that are not listed are
# methods of SparseTensor.
_ANSWERS: dict[str, Any] = {
    "add": add, "add_": _write_sum, "addmm": addmm, "bmm": bmm, "copy_": _write_copy,
    "empty_like": zeros_like, "linear": _linear, "matmul": matmul, "mm": mm, "mul": mul,
    "mul_": _write_product, "mv": mv, "new_empty": _new_zeros, "new_zeros": _new_zeros,
    "sparse_mask": sparse_mask, "spmm": mm, "sub": _sub, "sub_": _write_difference,
    "zeros_like": zeros_like, **_sparse_shapes.JOINS,
}  # fmt: skip
_ANSWERS.update({"__iadd__": _write_sum, "__isub__": _write_difference, "__imul__": _write_product})


def answer(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs one of lamella's functions that was called with a sparse tensor among its arguments."""
    found: Any = _ANSWERS.get(name)
    if found is None and args and isinstance(args[0], SparseTensor):
        found = SparseTensor.__dict__.get(name)
    if not callable(found):
        raise NotImplementedError(
            f"{name}: expected dense tensors, got a sparse one that it does not support: "
            "to_dense() it"
        )
    return found(*args, **kwargs)
