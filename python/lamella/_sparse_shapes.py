"""Functions that change the shape or layout of sparse tensors: permuting, indexing, joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella._sparse_tensor import _BY_COLUMNS, _OF_BLOCKS, SparseTensor, check


def _dim(function: str, own: SparseTensor, dim: int, more: int = 0) -> int:
    count = own.dim() + more
    check(function, -count <= dim < count, f"'dim' in [{-count}, {count - 1}], got {dim}")
    return dim % count


def permute(input: SparseTensor, dims: Sequence[int]) -> SparseTensor:
    """Permutes the dimensions: the sparse ones among themselves, and the dense ones."""
    own, function = input.to_sparse(), "permute"
    order = [_dim(function, own, d) for d in dims]
    check(function, sorted(order) == list(range(own.dim())), f"each dimension once, got {dims}")
    count = own.sparse_dim()
    check(
        function,
        all(d < count for d in order[:count]),
        f"the {count} sparse dimensions first, got {list(dims)}",
    )
    stored = own._stored.permute([0, *(d - count + 1 for d in order[count:])])
    return SparseTensor(own._places[order[:count]], stored, [own.shape[d] for d in order])


def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Exchanges two dimensions, which must be both sparse or both dense."""
    first, second = (_dim("transpose", input, d) for d in (dim0, dim1))
    count = input.sparse_dim()
    check(
        "transpose",
        (first < count) == (second < count),
        f"two sparse or two dense dimensions, got {dim0} and {dim1} with {count} sparse ones",
    )
    order = list(range(input.dim()))
    order[first], order[second] = second, first
    if input._crow is None:
        return permute(input, order)
    # The same indices, read by columns instead of rows (or the reverse), are the transpose.
    stored = input._stored.transpose(1, 2) if input.layout in _OF_BLOCKS else input._stored
    layout = _TURNED[input.layout]
    shape = [input.shape[d] for d in order]
    return SparseTensor(input._places, stored, shape, input._crow, True, layout)


# The layout of the transpose for each compressed layout.
_TURNED = {
    lamella.sparse_csr: lamella.sparse_csc,
    lamella.sparse_csc: lamella.sparse_csr,
    lamella.sparse_bsr: lamella.sparse_bsc,
    lamella.sparse_bsc: lamella.sparse_bsr,
}


def without_blocks(input: SparseTensor) -> SparseTensor:
    """A tensor with a layout of blocks in the layout sparse_coo."""
    high, wide = input._stored.shape[1:3]
    rows, columns = input._coordinates().unbind(0)
    row = rows.reshape(-1, 1, 1) * high + lamella.arange(high, device=input.device).unsqueeze(1)
    column = columns.reshape(-1, 1, 1) * wide + lamella.arange(wide, device=input.device)
    shape = (input._nnz(), high, wide)
    places = lamella.stack([t.expand(shape).reshape(-1) for t in (row, column)])
    return SparseTensor(places, input._stored.reshape(-1), input.shape).coalesce()


def _blocks(function: str, own: SparseTensor, blocksize: Any) -> SparseTensor:
    """A coalesced sparse_coo matrix as a sparse_coo matrix of blocks: its values are [blocks, rows,
    columns]."""
    high, wide = blocksize
    rows, columns = own.shape
    check(
        function,
        high > 0 and wide > 0 and rows % high == 0 and columns % wide == 0,
        f"'blocksize' that divides {list(own.shape)}, got {list(blocksize)}",
    )
    row, column = own._places.unbind(0)
    key = row.div(high, rounding_mode="floor") * max(columns // wide, 1)
    key = key + column.div(wide, rounding_mode="floor")
    unique, number = lamella.unique(key, return_inverse=True)
    zeros = lamella.zeros(unique.size(0), high, wide, dtype=own.dtype, device=own.device)
    stored = zeros.index_put((number, row % high, column % wide), own._stored)
    across = max(columns // wide, 1)
    places = lamella.stack([unique.div(across, rounding_mode="floor"), unique % across])
    return SparseTensor(places, stored, (rows // high, columns // wide, high, wide), None, True)


def compressed(input: SparseTensor, layout: Any, blocksize: Any = None) -> SparseTensor:
    """A sparse matrix in a compressed layout, by rows or by columns."""
    function = f"to_{str(layout).rpartition('.')[2]}"
    check(function, layout in _TURNED, f"a sparse layout, got {layout}")
    if input.layout == layout and layout not in _OF_BLOCKS:
        return input
    check(
        function,
        input.dim() == 2 and input.sparse_dim() == 2,
        f"a matrix, got a tensor of shape {list(input.shape)}",
    )
    by_columns = layout in _BY_COLUMNS
    own = input.to_sparse()
    own = (own.t() if by_columns else own).coalesce()
    if layout in _OF_BLOCKS:
        check(function, blocksize is not None, "a 'blocksize'")
        sides = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
        own = _blocks(function, own, sides[::-1] if by_columns else sides)
    rows = lamella.arange(own.shape[0] + 1, device=own.device)
    crow = lamella.searchsorted(own._places[0].contiguous(), rows)
    stored = own._stored
    if layout in _OF_BLOCKS and by_columns:
        stored = stored.transpose(1, 2)
    return SparseTensor(own._places[1], stored, input.shape, crow, True, layout)


def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """Inserts a dimension of size 1 at `dim`."""
    own = input.to_sparse()
    dim = _dim("unsqueeze", own, dim, 1)
    shape = [*own.shape[:dim], 1, *own.shape[dim:]]
    count = own.sparse_dim()
    if dim > count:
        return SparseTensor(
            own._places, own._stored.unsqueeze(dim - count + 1), shape, None, own._coalesced
        )
    line = lamella.zeros((1, own._nnz()), dtype=lamella.int64, device=own.device)
    places = lamella.cat([own._places[:dim], line, own._places[dim:]])
    return SparseTensor(places, own._stored, shape, None, own._coalesced)


def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices of a dimension at the indices `index`, in their order."""
    own, function = input.to_sparse().coalesce(), "index_select"
    dim = _dim(function, own, dim)
    check(function, index.dim() <= 1, f"'index' to be a vector, got shape {list(index.shape)}")
    index = index.reshape(-1).to(lamella.int64)
    size, count = own.shape[dim], own.sparse_dim()
    if index.numel():
        low, high = int(index.min()), int(index.max())
        check(
            function,
            low >= 0 and high < size,
            f"'index' in [0, {size - 1}], got {low if low < 0 else high}",
        )
    shape = [*own.shape[:dim], index.size(0), *own.shape[dim + 1 :]]
    if dim >= count:
        stored = own._stored.index_select(dim - count + 1, index)
        return SparseTensor(own._places, stored, shape, None, True)
    sorted_places, order = own._places[dim].sort(stable=True)
    first = lamella.searchsorted(sorted_places, index)
    counts = lamella.searchsorted(sorted_places, index, right=True) - first
    which = lamella.arange(index.size(0), device=own.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    inner = lamella.arange(which.size(0), device=own.device) - before[which]
    element = order[first[which] + inner]
    lines = [which if d == dim else own._places[d][element] for d in range(count)]
    return SparseTensor(lamella.stack(lines), own._stored[element], shape).coalesce()


def narrow(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """`length` slices of a dimension, from `start` on."""
    own = input.to_sparse()
    dim = _dim("narrow", own, dim)
    size, count = own.shape[dim], own.sparse_dim()
    begin = start + size if start < 0 else start
    check(
        "narrow",
        0 <= begin and 0 <= length and begin + length <= size,
        f"'start' and 'length' within {size}, got {start} and {length}",
    )
    shape = [*own.shape[:dim], length, *own.shape[dim + 1 :]]
    if dim >= count:
        stored = own._stored.narrow(dim - count + 1, begin, length)
        return SparseTensor(own._places, stored, shape, None, own._coalesced)
    line = own._places[dim]
    kept = ((line >= begin) & (line < begin + length)).nonzero().reshape(-1)
    lines = [own._places[d][kept] - (begin if d == dim else 0) for d in range(count)]
    return SparseTensor(lamella.stack(lines), own._stored[kept], shape, None, own._coalesced)


def select(input: SparseTensor, dim: int, index: int) -> Any:
    """One slice of a dimension; a dense tensor if that was the only sparse dimension."""
    own = input.to_sparse()
    dim = _dim("select", own, dim)
    size, count = own.shape[dim], own.sparse_dim()
    check("select", -size <= index < size, f"'index' in [{-size}, {size - 1}], got {index}")
    part = narrow(own, dim, index % size, 1)
    shape = [*own.shape[:dim], *own.shape[dim + 1 :]]
    if dim >= count:
        stored = part._stored.squeeze(dim - count + 1)
        return SparseTensor(part._places, stored, shape, None, part._coalesced)
    if count == 1:
        return part._stored.sum(0, dtype=own.dtype)
    places = part._places[[d for d in range(count) if d != dim]]
    return SparseTensor(places, part._stored, shape, None, part._coalesced)


def subscript(input: SparseTensor, index: Any) -> Any:
    """input[index] for integers and slices of step 1."""
    items = index if isinstance(index, tuple) else (index,)
    found: Any = input
    dim = 0
    for item in items:
        check("getitem", dim < found.dim(), f"at most {input.dim()} indices, got {len(items)}")
        if isinstance(item, slice):
            start, stop, step = item.indices(found.shape[dim])
            check("getitem", step == 1, f"slices with steps of 1, got {step}")
            found = found.narrow(dim, start, max(stop - start, 0))
            dim += 1
        else:
            check(
                "getitem",
                hasattr(item, "__index__") and not isinstance(item, bool),
                f"numbers and slices, got {type(item).__name__}",
            )
            found = found.select(dim, int(item))
    return found


def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Concatenates sparse tensors along a dimension."""
    check("cat", len(tensors) > 0, "at least one tensor")
    for tensor in tensors:
        check("cat", isinstance(tensor, SparseTensor), "all tensors to be sparse")
    parts = [tensor.to_sparse() for tensor in tensors]
    first = parts[0]
    dim = _dim("cat", first, dim)
    count = first.sparse_dim()
    places, stored, at = [], [], 0
    total = sum(part.shape[dim] for part in parts)
    for part in parts:
        same = list(part.shape[:dim]) == list(first.shape[:dim]) and list(
            part.shape[dim + 1 :]
        ) == list(first.shape[dim + 1 :])
        check(
            "cat",
            part.dim() == first.dim() and same and part.sparse_dim() == count,
            f"tensors of the shape {list(first.shape)} but for dimension {dim}, got "
            f"{list(part.shape)}",
        )
        if dim < count:
            step = lamella.zeros((count, 1), dtype=lamella.int64, device=part.device)
            step[dim] = at
            places.append(part._places + step)
            stored.append(part._stored)
        else:
            line = dim - count + 1
            shape = list(part._stored.shape)
            before, behind = list(shape), list(shape)
            before[line], behind[line] = at, total - at - shape[line]
            zeros = [part._stored.new_zeros(size) for size in (before, behind)]
            places.append(part._places)
            stored.append(lamella.cat([zeros[0], part._stored, zeros[1]], line))
        at += part.shape[dim]
    shape = [*first.shape[:dim], total, *first.shape[dim + 1 :]]
    return SparseTensor(lamella.cat(places, 1), lamella.cat(stored), shape).coalesce()


def stack(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Stacks sparse tensors of equal shape along a new dimension."""
    check("stack", len(tensors) > 0, "at least one tensor")
    for tensor in tensors:
        check("stack", isinstance(tensor, SparseTensor), "all tensors to be sparse")
    return cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


def _vstack(tensors: Sequence[Any]) -> SparseTensor:
    return cat(tensors, 0)


def _hstack(tensors: Sequence[Any]) -> SparseTensor:
    return cat(tensors, min(1, tensors[0].dim() - 1))


JOINS = {
    "cat": cat, "concat": cat, "concatenate": cat, "hstack": _hstack, "row_stack": _vstack,
    "stack": stack, "vstack": _vstack,
}  # fmt: skip
