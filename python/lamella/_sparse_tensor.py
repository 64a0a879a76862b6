"""Sparse tensors: a layout above dense kernels.

A SparseTensor holds the places of its elements (`sparse_coo`: a matrix of coordinates;
`sparse_csr`: where each row begins, and columns) and their values, all of them dense tensors, and
each function of it is operators on these. So values carry the gradients, in any order and mode:
`x.to_sparse()` gathers from `x`, `to_dense` scatters into zeros, and a product gathers rows of its
dense side. What is not stored is no part of a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor

__all__ = ["SparseTensor", "sparse_coo_tensor", "sparse_csr_tensor"]

_ZEROS_STAY = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "expm1",
    "floor", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
)  # fmt: skip

# Those that products have a kernel for; others are sums of gathered rows.
_PRODUCT_DTYPES = (lamella.float32, lamella.float64, lamella.complex64, lamella.complex128)


def _check(function: str, condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(f"{function}: expected {text}")


def _strides(sizes: Sequence[int]) -> list[int]:
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step *= size
    return steps[::-1]


class SparseTensor:
    """A tensor of which only some elements, or dense parts, are stored. It is no Tensor: operators
    that its methods and lamella.sparse's functions do not know take `x.to_dense()`."""

    __slots__ = ("_places", "_stored", "_crow", "_coalesced", "shape")

    def __init__(
        self,
        places: Tensor,
        stored: Tensor,
        shape: Sequence[int],
        crow: Tensor | None = None,
        coalesced: bool = False,
    ) -> None:
        self._places, self._stored, self._crow = places, stored, crow
        self._coalesced = coalesced or crow is not None
        self.shape = lamella.Size(shape)

    # ---- What it is ------------------------------------------------------------------------------

    @property
    def layout(self) -> Any:
        return lamella.sparse_coo if self._crow is None else lamella.sparse_csr

    @property
    def is_sparse(self) -> bool:
        return self._crow is None

    @property
    def is_sparse_csr(self) -> bool:
        return self._crow is not None

    @property
    def dtype(self) -> Any:
        return self._stored.dtype

    @property
    def device(self) -> Any:
        return self._stored.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return self._stored.requires_grad

    @property
    def grad(self) -> SparseTensor | None:
        """The gradients of the values, where this one has them."""
        return None if self._stored.grad is None else self._with(self._stored.grad)

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparse_dim(self) -> int:
        return int(self._places.size(0)) if self._crow is None else 2

    def dense_dim(self) -> int:
        return self._stored.dim() - 1

    def _nnz(self) -> int:
        return int(self._stored.size(0))

    def is_coalesced(self) -> bool:
        return self._coalesced

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._stored.requires_grad_(requires_grad)
        return self

    def detach(self) -> SparseTensor:
        return self._with(self._stored.detach())

    def clone(self) -> SparseTensor:
        return self._with(self._stored.clone())

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """With the values' dtype and the device changed as Tensor.to does."""
        stored = self._stored.to(*args, **kwargs)
        places = self._places.to(stored.device)
        crow = None if self._crow is None else self._crow.to(stored.device)
        return SparseTensor(places, stored, self.shape, crow, self._coalesced)

    def _with(self, stored: Tensor) -> SparseTensor:
        return SparseTensor(self._places, stored, self.shape, self._crow, self._coalesced)

    # ---- Its parts -------------------------------------------------------------------------------

    def _is(self, function: str, csr: bool) -> None:
        if (self._crow is not None) != csr:
            wanted = lamella.sparse_csr if csr else lamella.sparse_coo
            raise RuntimeError(
                f"{function}: expected a tensor of layout {wanted}, got {self.layout}"
            )

    def indices(self) -> Tensor:
        self._is("indices", False)
        _check("indices", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._places

    def values(self) -> Tensor:
        _check("values", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._stored

    def _indices(self) -> Tensor:
        self._is("_indices", False)
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def crow_indices(self) -> Tensor:
        self._is("crow_indices", True)
        return self._crow  # type: ignore[return-value]

    def col_indices(self) -> Tensor:
        self._is("col_indices", True)
        return self._places

    def _coordinates(self) -> Tensor:
        """[sparse dimensions, elements], of either layout."""
        if self._crow is None:
            return self._places
        counts = self._crow.diff()
        rows = lamella.arange(self.shape[0], device=self.device).repeat_interleave(counts)
        return lamella.stack([rows, self._places.to(lamella.int64)])

    # ---- Between layouts -------------------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The same tensor with each place once, in order; values of a place that stands more than
        once are summed."""
        if self._coalesced:
            return self
        self._is("coalesce", False)
        sparse = self.shape[: self.sparse_dim()]
        steps = lamella.tensor(_strides(sparse), dtype=lamella.int64, device=self.device)
        keys = (self._places * steps.unsqueeze(1)).sum(0)
        unique, inverse = lamella.unique(keys, return_inverse=True)
        stored = lamella.zeros(
            (unique.size(0), *self._stored.shape[1:]), dtype=self.dtype, device=self.device
        ).index_add(0, inverse, self._stored)
        places = [
            unique.div(max(step, 1), rounding_mode="floor").remainder(max(size, 1))
            for size, step in zip(sparse, _strides(sparse))
        ]
        found = lamella.stack(places) if places else self._places[:, : unique.size(0)]
        return SparseTensor(found, stored, self.shape, None, True)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """All elements; those that are not stored are 0."""
        zeros = lamella.zeros(self.shape, dtype=self.dtype, device=self.device)
        places = tuple(self._coordinates().unbind(0))
        dense = (
            zeros.index_put(places, self._stored, accumulate=True)
            if places
            else zeros.add(self._stored.sum(0, dtype=self.dtype))
        )
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
        if layout in (lamella.sparse_csr,):
            return self.to_sparse_csr()
        if self._crow is None:
            return self
        return SparseTensor(self._coordinates(), self._stored, self.shape, None, True)

    def to_sparse_coo(self) -> SparseTensor:
        return self.to_sparse()

    def to_sparse_csr(self) -> SparseTensor:
        if self._crow is not None:
            return self
        _check(
            "to_sparse_csr",
            self.dim() == 2 and self.sparse_dim() == 2,
            f"a matrix, got a tensor of shape {list(self.shape)}",
        )
        own = self.coalesce()
        rows = lamella.arange(self.shape[0] + 1, device=self.device)
        crow = lamella.searchsorted(own._places[0].contiguous(), rows)
        return SparseTensor(own._places[1], own._stored, self.shape, crow)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        places = self.to_sparse().coalesce()
        first, second = (d % self.dim() for d in (dim0, dim1))
        count = places.sparse_dim()
        _check("transpose", max(first, second) < count, "dimensions that are sparse")
        order, shape = list(range(count)), list(self.shape)
        order[first], order[second] = second, first
        shape[first], shape[second] = shape[second], shape[first]
        return SparseTensor(places._places[order], places._stored, shape)

    def t(self) -> SparseTensor:
        _check("t", self.dim() == 2, f"a matrix, got a tensor of shape {list(self.shape)}")
        return self.transpose(0, 1)

    # ---- Arithmetic ------------------------------------------------------------------------------

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """The sum: sparse with a sparse tensor of the same shape, dense with a dense one."""
        if isinstance(other, Tensor):
            return other.mul(alpha).add(self.to_dense())
        _check("add", isinstance(other, SparseTensor), f"a tensor, got {type(other).__name__}")
        _check(
            "add",
            tuple(other.shape) == tuple(self.shape),
            f"'other' of shape {list(self.shape)}, got {list(other.shape)}",
        )
        mine, theirs = self.to_sparse(), other.to_sparse()
        _check(
            "add",
            mine.sparse_dim() == theirs.sparse_dim(),
            f"'other' with {mine.sparse_dim()} sparse dimensions, got {theirs.sparse_dim()}",
        )
        joined = SparseTensor(
            lamella.cat([mine._places, theirs._places], 1),
            lamella.cat([mine._stored, theirs._stored.mul(alpha)]),
            self.shape,
        )
        return joined.to_sparse_csr() if self._crow is not None else joined.coalesce()

    def mul(self, other: Any) -> SparseTensor:
        """The product with a number or a tensor: at the places that this one stores."""
        if isinstance(other, SparseTensor):
            other = other.to_dense()
        if isinstance(other, Tensor) and other.dim() > 0:
            own = self.coalesce()
            shape = [max(a, b) for a, b in zip(other.shape[::-1], self.shape[::-1])]
            _check(
                "mul",
                other.dim() <= self.dim() and shape == list(self.shape[::-1][: other.dim()]),
                f"'other' to be broadcastable to {list(self.shape)}, got {list(other.shape)}",
            )
            picked = other.expand(self.shape)[tuple(own._coordinates().unbind(0))]
            return own._with(own._stored.mul(picked))
        return self._with(self._stored.mul(other))

    def div(self, other: Any) -> SparseTensor:
        _check(
            "div",
            not isinstance(other, SparseTensor)
            and (not isinstance(other, Tensor) or not other.dim()),
            "'other' to be a number",
        )
        return self._with(self._stored.div(other))

    def sum(self, dim: Any = None, dtype: Any = None) -> Any:
        """The sum of all elements, or over dimensions: sparse where sparse ones are left."""
        return sum(self, dim, dtype)

    def mm(self, mat2: Tensor) -> Tensor:
        return mm(self, mat2)

    matmul = __matmul__ = mm

    def __add__(self, other: Any) -> Any:
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.add(other, alpha=-1)

    def __mul__(self, other: Any) -> SparseTensor:
        return self.mul(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.div(other)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._stored)

    def __repr__(self) -> str:
        names = ("indices", "values") if self._crow is None else ("crow_indices", "col_indices")
        parts = (self._places,) if self._crow is None else (self._crow, self._places)
        shown = [f"{name}={part}" for name, part in zip(names, parts)]
        return (
            f"sparse_tensor({', '.join(shown)}, values={self._stored}, size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout={self.layout})"
        )


def _unary(name: str) -> Any:
    def function(self: SparseTensor) -> SparseTensor:
        own = self.coalesce()
        return own._with(getattr(own._stored, name)())

    function.__name__ = name
    function.__doc__ = f"`{name}` of what is stored; it leaves zeros as they are."
    return function


for _name in _ZEROS_STAY:
    setattr(SparseTensor, _name, _unary(_name))


# ---- Making one ----------------------------------------------------------------------------------


def _made(value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    made = value if isinstance(value, Tensor) else lamella.tensor(value)
    return made if dtype is None and device is None else made.to(device=device, dtype=dtype)


def _inside(function: str, name: str, places: Tensor, sizes: Sequence[int]) -> None:
    if places.numel() == 0:
        return
    for d, size in enumerate(sizes):
        low, high = int(places[d].min()), int(places[d].max())
        _check(
            function,
            low >= 0 and high < size,
            f"'{name}' of dimension {d} in [0, {size - 1}], got {low if low < 0 else high}",
        )


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor of `values` [elements, dense dimensions...] at the columns of `indices`
    [sparse dimensions, elements]. `size` is by default the smallest that holds them. Values of a
    place that stands more than once are summed. Indices are checked."""
    function = "sparse_coo_tensor"
    stored = _made(values, dtype, device)
    places = _made(indices, lamella.int64, stored.device)
    if places.numel() == 0 and places.dim() == 1:
        places = places.reshape(0 if size is None else len(size) - stored.dim() + 1, -1)
    _check(function, places.dim() == 2, f"'indices' to be a matrix, got {list(places.shape)}")
    _check(
        function,
        stored.dim() >= 1 and stored.size(0) == places.size(1),
        f"'values' to have {places.size(1)} rows, one for each column of 'indices', got "
        f"{list(stored.shape)}",
    )
    if size is None:
        _check(function, places.numel() > 0 or places.size(0) == 0, "a 'size' without indices")
        size = [*(int(line.max()) + 1 for line in places.unbind(0)), *stored.shape[1:]]
    count = places.size(0)
    _check(
        function,
        len(size) == count + stored.dim() - 1 and list(size[count:]) == list(stored.shape[1:]),
        f"'size' of {count} sparse dimensions and {list(stored.shape[1:])}, got {list(size)}",
    )
    _inside(function, "indices", places, size[:count])
    if requires_grad:
        stored = stored.detach().requires_grad_()
    return SparseTensor(places, stored, size, None, bool(is_coalesced))


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """A sparse matrix of `values` [elements]: row i has the elements from `crow_indices[i]` to
    `crow_indices[i + 1]`, in the columns that `col_indices` names. Indices are checked."""
    function = "sparse_csr_tensor"
    stored = _made(values, dtype, device)
    crow, columns = (_made(t, None, stored.device) for t in (crow_indices, col_indices))
    _check(
        function,
        crow.dim() == columns.dim() == stored.dim() == 1 and crow.numel() > 0,
        "'crow_indices', 'col_indices' and 'values' to be vectors, got "
        f"{list(crow.shape)}, {list(columns.shape)} and {list(stored.shape)}",
    )
    for name, part in (("crow_indices", crow), ("col_indices", columns)):
        _check(
            function,
            part.dtype in (lamella.int64, lamella.int32),
            f"'{name}' to be int32 or int64, got {part.dtype}",
        )
    count = stored.size(0)
    _check(
        function,
        columns.size(0) == count,
        f"'col_indices' to have {count} elements, one for each value, got {columns.size(0)}",
    )
    bounds = [int(crow[0]), int(crow[-1])]
    _check(
        function,
        bounds == [0, count] and bool((crow.diff() >= 0).all()),
        f"'crow_indices' to grow from 0 to {count}, got {bounds[0]} to {bounds[1]}",
    )
    if size is None:
        size = [crow.size(0) - 1, int(columns.max()) + 1 if count else 0]
    _check(
        function,
        len(size) == 2 and size[0] == crow.size(0) - 1,
        f"'size' of {crow.size(0) - 1} rows and a number of columns, got {list(size)}",
    )
    _inside(function, "col_indices", columns.unsqueeze(0), size[1:])
    if requires_grad:
        stored = stored.detach().requires_grad_()
    return SparseTensor(columns, stored, size, crow)


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    """The elements, or with `sparse_dim` the dense parts behind so many dimensions, that are not
    all 0."""
    if layout == lamella.sparse_csr:
        return to_sparse_csr(self)
    _check("to_sparse", layout in (None, lamella.sparse_coo), f"sparse_coo or _csr, got {layout}")
    count = self.dim() if sparse_dim is None else sparse_dim
    _check(
        "to_sparse",
        0 <= count <= self.dim() and (count > 0 or self.dim() == 0),
        f"'sparse_dim' in [{min(self.dim(), 1)}, {self.dim()}], got {count}",
    )
    if self.dim() == 0:
        there = int(bool(self != 0))
        places = lamella.empty(0, there, dtype=lamella.int64, device=self.device)
        return SparseTensor(places, self.reshape(1)[:there], [], None, True)
    kept = self.detach() != 0
    if count < self.dim():
        kept = kept.flatten(count).any(-1)
    places = kept.nonzero().t()
    return SparseTensor(places, self[tuple(places.unbind(0))], self.shape, None, True)


def to_sparse_csr(self: Tensor) -> SparseTensor:
    """The elements of a matrix that are not 0, row by row."""
    _check("to_sparse_csr", self.dim() == 2, f"a matrix, got a tensor of shape {list(self.shape)}")
    return to_sparse(self).to_sparse_csr()


# ---- Functions of lamella.sparse -----------------------------------------------------------------


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices of which the first, or either, may be sparse: dense with a dense
    one, sparse of two sparse ones. With `reduce` ("sum", "mean", "amax", "amin") the products of
    a row are reduced by that, over those that the sparse matrix stores."""
    function = "sparse.mm"
    if isinstance(mat1, Tensor) and isinstance(mat2, Tensor):
        return lamella.mm(mat1, mat2)
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        _check(
            function,
            isinstance(mat, (Tensor, SparseTensor)) and mat.dim() in (1 + (name == "mat1"), 2),
            f"'{name}' to be a matrix",
        )
    _check(
        function,
        mat1.shape[1] == mat2.shape[0],
        f"'mat2' to have {mat1.shape[1]} rows, got {mat2.shape[0]}",
    )
    _check(function, mat1.dtype == mat2.dtype, f"'mat2' to be {mat1.dtype}, got {mat2.dtype}")
    if isinstance(mat1, Tensor):
        return mm(mat2.t(), mat1.t()).t()
    if isinstance(mat2, SparseTensor):
        _check(function, reduce is None, "a dense 'mat2' with 'reduce'")
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
    _check(
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


def addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) for a sparse `mat1`."""
    return mat.mul(beta).add(mm(mat1, mat2).mul(alpha))


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> SparseTensor:
    """alpha * (mat1 @ mat2) at the places of `input`, plus beta * input. Only these elements of
    the product are computed."""
    function = "sparse.sampled_addmm"
    _check(function, isinstance(input, SparseTensor), "'input' to be sparse")
    _check(function, mat1.dim() == mat2.dim() == 2, "'mat1' and 'mat2' to be matrices")
    wanted = (mat1.shape[0], mat2.shape[1])
    _check(
        function,
        mat1.shape[1] == mat2.shape[0] and tuple(input.shape) == wanted,
        f"matrices whose product has the shape {list(input.shape)} of 'input', got "
        f"{list(mat1.shape)} and {list(mat2.shape)}",
    )
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        _check(function, mat.dtype == input.dtype, f"'{name}' to be {input.dtype}, got {mat.dtype}")
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
