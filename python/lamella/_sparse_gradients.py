"""Sparse gradients of embeddings, which store only the rows that were looked up."""

from __future__ import annotations

import lamella
from lamella import Tensor
from lamella._sparse_tensor import SparseTensor, check
from lamella.library import Library


def embedding_sparse_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient of `embedding` for its weight [num_weights, columns]. It stores a row for each
    index, so that repeated indices have repeated rows, except for `padding_idx`."""
    check(
        "embedding_sparse_backward",
        not scale_grad_by_freq,
        "'scale_grad_by_freq' to be False for sparse gradients",
    )
    place = indices.reshape(-1)
    columns = grad.size(-1)
    values = grad.reshape(-1, columns)
    if padding_idx >= 0:
        kept = (place != padding_idx).nonzero().reshape(-1)
        place, values = place[kept], values.index_select(0, kept)
    places = place.to(lamella.int64).unsqueeze(0)
    return SparseTensor(places, values.contiguous(), (num_weights, columns))


# A composite operator, so that autograd records the operations on the values: decision 34.
_library = Library("lamella", "FRAGMENT")
_library.define(
    "embedding_sparse_backward(Tensor grad, Tensor indices, SymInt num_weights, "
    "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor"
)
_library.impl("embedding_sparse_backward", embedding_sparse_backward, "CompositeImplicitAutograd")
