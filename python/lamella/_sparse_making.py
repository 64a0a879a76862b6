"""Makes sparse tensors from their indices and values, or from dense tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella._sparse_shapes import compressed
from lamella._sparse_tensor import _BY_COLUMNS, _OF_BLOCKS, SparseTensor, check

__all__ = [
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
]


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
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor of `values` [elements, dense dimensions...] at the columns of `indices`
    [sparse dimensions, elements]. `size` is by default the smallest that holds them; without
    `values`, the tensor has no stored elements. Values of repeated indices are summed. Indices are
    checked."""
    function = "sparse_coo_tensor"
    if values is None:
        size = indices if size is None else size
        check(function, size is not None, "'indices' and 'values', or a 'size'")
        indices = lamella.empty(len(size), 0, dtype=lamella.int64)
        values = lamella.empty(0, dtype=dtype)
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


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    layout: Any = None,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """A sparse matrix of `values` [elements], or with a layout of blocks [blocks, rows, columns].
    Row (column) i has the values from `compressed_indices[i]` to `compressed_indices[i + 1]`;
    `plain_indices` are their columns (rows). Indices are checked."""
    layout = lamella.sparse_csr if layout is None else layout
    function = f"{str(layout).rpartition('.')[2]}_tensor"
    by_columns, of_blocks = layout in _BY_COLUMNS, layout in _OF_BLOCKS
    outer, inner = (
        ("ccol_indices", "row_indices") if by_columns else ("crow_indices", "col_indices")
    )
    stored = _made(values, dtype, device)
    crow, columns = (_made(t, None, stored.device) for t in (compressed_indices, plain_indices))
    check(
        function,
        crow.dim() == columns.dim() == 1 and crow.numel() > 0 and stored.dim() == 1 + 2 * of_blocks,
        f"'{outer}', '{inner}' and 'values' to be vectors{' and blocks' * of_blocks}, got "
        f"{list(crow.shape)}, {list(columns.shape)} and {list(stored.shape)}",
    )
    for name, part in ((outer, crow), (inner, columns)):
        check(
            function,
            part.dtype in (lamella.int64, lamella.int32),
            f"'{name}' to be int32 or int64, got {part.dtype}",
        )
    count = stored.size(0)
    check(
        function,
        columns.size(0) == count,
        f"'{inner}' to have {count} elements, one for each value, got {columns.size(0)}",
    )
    bounds = [int(crow[0]), int(crow[-1])]
    check(
        function,
        bounds == [0, count] and bool((crow.diff() >= 0).all()),
        f"'{outer}' to grow from 0 to {count}, got {bounds[0]} to {bounds[1]}",
    )
    block = tuple(stored.shape[1:]) if of_blocks else (1, 1)
    lines, across = crow.size(0) - 1, 0 if by_columns else 1
    if size is None:
        size = [lines, int(columns.max()) + 1 if count else 0]
        size = [s * b for s, b in zip(size[::-1] if by_columns else size, block)]
    check(
        function,
        len(size) == 2 and size[1 - across] == lines * block[1 - across],
        f"'size' of {lines * block[1 - across]} {'columns' if by_columns else 'rows'} and a number "
        f"of {'rows' if by_columns else 'columns'}, got {list(size)}",
    )
    check(
        function,
        block[across] > 0 and size[across] % block[across] == 0,
        f"'size' that blocks of {list(block)} fill, got {list(size)}",
    )
    _inside(function, inner, columns.unsqueeze(0), [size[across] // block[across]])
    if requires_grad:
        stored = stored.detach().requires_grad_()
    return SparseTensor(columns, stored, size, crow, True, layout)


def _of_layout(layout: Any, outer: str, inner: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> SparseTensor:
        for theirs, ours in ((outer, "compressed_indices"), (inner, "plain_indices")):
            if theirs in kwargs:
                kwargs[ours] = kwargs.pop(theirs)
        kwargs["layout"] = layout
        return sparse_compressed_tensor(*args, **kwargs)

    function.__name__ = function.__qualname__ = f"{str(layout).rpartition('.')[2]}_tensor"
    function.__doc__ = f"sparse_compressed_tensor() of this layout: {outer}, {inner}, values, size."
    return function


sparse_csr_tensor = _of_layout(lamella.sparse_csr, "crow_indices", "col_indices")
sparse_csc_tensor = _of_layout(lamella.sparse_csc, "ccol_indices", "row_indices")
sparse_bsr_tensor = _of_layout(lamella.sparse_bsr, "crow_indices", "col_indices")
sparse_bsc_tensor = _of_layout(lamella.sparse_bsc, "ccol_indices", "row_indices")


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
) -> SparseTensor:
    """A sparse tensor of the elements that are not 0, or of the slices that are not 0 if only the
    first `sparse_dim` dimensions are sparse. The default layout is `sparse_coo`."""
    if layout is not None and layout != lamella.sparse_coo:
        function = f"to_{str(layout).rpartition('.')[2]}"
        check(function, self.dim() == 2, f"a matrix, got a tensor of shape {list(self.shape)}")
        return compressed(to_sparse(self), layout, blocksize)
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


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Any:
    """A sparse matrix of `shape` with row i of `diagonals` along the diagonal `offsets[i]`, which
    is above the main one if positive. Element j of a row is in column j. The offsets must
    differ."""
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
        layout in (None, lamella.sparse_coo, lamella.sparse_csr, lamella.sparse_csc),
        f"'layout' sparse_coo, sparse_csr or sparse_csc, got {layout}",
    )
    column = lamella.arange(rows.size(1), device=rows.device).expand(rows.shape)
    row = column - number.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    places = lamella.stack([row[inside], column[inside]])
    found = SparseTensor(places, rows[inside], shape).coalesce()
    return found.to_sparse(layout=layout)
