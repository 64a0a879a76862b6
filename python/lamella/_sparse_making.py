"""Sparse tensors made of their parts, or of dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella._sparse_tensor import SparseTensor, check

__all__ = ["sparse_coo_tensor", "sparse_csr_tensor"]


def _made(value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    made = value if isinstance(value, Tensor) else lamella.tensor(value)
    return made if dtype is None and device is None else made.to(device=device, dtype=dtype)


def _inside(function: str, name: str, places: Tensor, sizes: Sequence[int]) -> None:
    if places.numel() == 0:
        return
    for d, size in enumerate(sizes):
        low, high = (int(bound) for bound in lamella.aminmax(places[d]))
        check(
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
    check(function, places.dim() == 2, f"'indices' to be a matrix, got {list(places.shape)}")
    check(
        function,
        stored.dim() >= 1 and stored.size(0) == places.size(1),
        f"'values' to have {places.size(1)} rows, one for each column of 'indices', got "
        f"{list(stored.shape)}",
    )
    if size is None:
        check(function, places.numel() > 0 or places.size(0) == 0, "a 'size' without indices")
        size = [*(int(line.max()) + 1 for line in places.unbind(0)), *stored.shape[1:]]
    count = places.size(0)
    check(
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
    check(
        function,
        crow.dim() == columns.dim() == stored.dim() == 1 and crow.numel() > 0,
        "'crow_indices', 'col_indices' and 'values' to be vectors, got "
        f"{list(crow.shape)}, {list(columns.shape)} and {list(stored.shape)}",
    )
    for name, part in (("crow_indices", crow), ("col_indices", columns)):
        check(
            function,
            part.dtype in (lamella.int64, lamella.int32),
            f"'{name}' to be int32 or int64, got {part.dtype}",
        )
    count = stored.size(0)
    check(
        function,
        columns.size(0) == count,
        f"'col_indices' to have {count} elements, one for each value, got {columns.size(0)}",
    )
    bounds = [int(crow[0]), int(crow[-1])]
    check(
        function,
        bounds == [0, count] and bool((crow.diff() >= 0).all()),
        f"'crow_indices' to grow from 0 to {count}, got {bounds[0]} to {bounds[1]}",
    )
    if size is None:
        size = [crow.size(0) - 1, int(columns.max()) + 1 if count else 0]
    check(
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
    check("to_sparse", layout in (None, lamella.sparse_coo), f"sparse_coo or _csr, got {layout}")
    count = self.dim() if sparse_dim is None else sparse_dim
    check(
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
    check("to_sparse_csr", self.dim() == 2, f"a matrix, got a tensor of shape {list(self.shape)}")
    return to_sparse(self).to_sparse_csr()


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Any:
    """A matrix of `shape` with the rows of `diagonals` along its diagonals: row i along that of
    number `offsets[i]`, above the main one where it is positive. Element j of a row stands in
    column j. The offsets must differ."""
    function = "sparse.spdiags"
    rows = diagonals.reshape(1, -1) if diagonals.dim() == 1 else diagonals
    number = offsets.reshape(-1)
    check(function, rows.dim() == 2, f"'diagonals' of 1 or 2 dimensions, got {list(rows.shape)}")
    check(function, len(shape) == 2, f"'shape' of 2 sizes, got {list(shape)}")
    check(
        function,
        number.size(0) == rows.size(0),
        f"'offsets' to have {rows.size(0)} elements, one for each diagonal, got {number.size(0)}",
    )
    check(function, number.unique().size(0) == number.size(0), "'offsets' that differ")
    check(
        function,
        layout in (None, lamella.sparse_coo, lamella.sparse_csr),
        f"'layout' sparse_coo or sparse_csr, got {layout}",
    )
    column = lamella.arange(rows.size(1), device=rows.device).expand(rows.shape)
    row = column - number.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    places = lamella.stack([row[inside], column[inside]])
    found = SparseTensor(places, rows[inside], shape).coalesce()
    return found.to_sparse_csr() if layout == lamella.sparse_csr else found
