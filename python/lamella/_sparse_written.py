"""In-place operators of sparse tensors, and adding a sparse tensor in place to a dense one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor, _sparse_functions
from lamella._sparse_tensor import SparseTensor, check


def _check_writable(own: SparseTensor) -> None:
    leaf = own._stored.is_leaf and own._stored.requires_grad and lamella.is_grad_enabled()
    check("sparse", not leaf, "no leaf that requires gradients to be written in place")


def written(own: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Replaces the elements of `own` by those of `other`, of the same shape; returns `own`."""
    _check_writable(own)
    is_leaf = own._stored.is_leaf and own._stored.requires_grad
    fits = lamella.can_cast(other.dtype, own.dtype)
    check("sparse", fits, f"a result of dtype {own.dtype}, got {other.dtype}")
    other = other.to(own.dtype)
    if other.layout != own.layout:
        other = other.to_sparse(layout=own.layout)
    grad = own._stored.grad if is_leaf else None
    own._take(other)
    if is_leaf:
        own._stored = own._stored.detach().requires_grad_()
        if grad is not None and grad.shape == own._stored.shape:
            own._stored.grad = grad
    return own


def add_(own: SparseTensor, other: Any, alpha: Any) -> SparseTensor:
    check("add_", isinstance(other, SparseTensor), "'other' to be sparse")
    return written(own, own.add(other, alpha=alpha))


def mul_(own: SparseTensor, other: Any) -> SparseTensor:
    if isinstance(other, SparseTensor) or (isinstance(other, Tensor) and other.dim() > 0):
        return written(own, own.mul(other))
    _check_writable(own)
    own._stored.mul_(other)  # in place, so that aliases such as detach() see the change
    return own


def div_(own: SparseTensor, other: Any) -> SparseTensor:
    _sparse_functions.check_divisor(other)
    _check_writable(own)
    own._stored.div_(other)
    return own


def zero_(own: SparseTensor) -> SparseTensor:
    crow = None if own._crow is None else lamella.zeros_like(own._crow)
    return written(own, own._of(own._places[..., :0], own._stored[:0], crow)._coalesced_(True))


def copy_(own: SparseTensor, other: Any) -> SparseTensor:
    check("copy_", isinstance(other, SparseTensor), "'src' to be sparse")
    check(
        "copy_",
        own.shape == other.shape,
        f"'src' of shape {list(own.shape)}, got {list(other.shape)}",
    )
    return written(own, other.clone().to(own.device, own.dtype))


def resize_as_(own: SparseTensor, other: Any) -> SparseTensor:
    check(
        "resize_as_",
        isinstance(other, SparseTensor) and other.layout == own.layout,
        f"'other' of layout {own.layout}",
    )
    if own.shape == other.shape:
        return own
    return sparse_resize_(own, other.shape, other.sparse_dim(), other.dense_dim(), True)


def sparse_resize_(
    own: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool
) -> SparseTensor:
    """Changes the shape. clear: drops all elements; if False, no dimension may shrink or change
    between sparse and dense."""
    function = "sparse_resize_and_clear_" if clear else "sparse_resize_"
    own._is_coo(function)
    check(
        function,
        sparse_dim + dense_dim == len(size),
        f"'size' of {sparse_dim + dense_dim} dimensions, got {len(size)}",
    )
    if clear or own._nnz() == 0:
        places = own._places.new_zeros(sparse_dim, 0)
        made = SparseTensor(places, own._stored.new_zeros(0, *size[sparse_dim:]), size, None, True)
    else:
        check(
            function,
            (sparse_dim, dense_dim) == (own.sparse_dim(), own.dense_dim())
            and all(new >= old for new, old in zip(size, own.shape)),
            f"a size of {own.sparse_dim()} sparse and {own.dense_dim()} dense dimensions not below "
            f"{list(own.shape)}, got {list(size)}",
        )
        stored = own._stored
        if stored.shape[1:] != size[sparse_dim:]:
            stored = stored.new_zeros(stored.size(0), *size[sparse_dim:])
            stored[tuple(slice(old) for old in own._stored.shape)] = own._stored
        made = SparseTensor(own._places, stored, size, None, own._coalesced)
    _check_writable(own)
    own.data = made
    return own


def into_dense_(dense: Tensor, other: SparseTensor, alpha: Any) -> Tensor:
    """dense += alpha * other, which touches only the elements that `other` stores."""
    check(
        "add_",
        tuple(dense.shape) == tuple(other.shape),
        f"'other' of shape {list(dense.shape)}, got {list(other.shape)}",
    )
    own = other.to_sparse()
    stored = own._stored.to(dense.dtype)
    if own.sparse_dim() == 1:
        if isinstance(alpha, Tensor):
            stored, alpha = stored * alpha, 1
        return dense.index_add_(0, own._places[0], stored, alpha=alpha)
    if own.sparse_dim() == 0:
        return dense.add_(stored.sum(0), alpha=alpha)
    stored = stored * alpha
    return dense.index_put_(tuple(own._places.unbind(0)), stored, accumulate=True)
