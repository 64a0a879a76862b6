"""Prints sparse tensors, and takes them apart and rebuilds them for saving."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C, Tensor, _tensor_str
from lamella._sparse_making import sparse_compressed_tensor, sparse_coo_tensor
from lamella._sparse_tensor import _BY_COLUMNS, SparseTensor


def _part(name: str, part: Tensor, indent: int) -> str:
    head = f"{name}=tensor("
    if part.numel() == 0:
        return f"{head}[], size={tuple(part.shape)})"
    return head + _tensor_str._body(part.detach(), indent + len(head)) + ")"


def text(tensor: SparseTensor) -> str:
    """The text of a sparse tensor: its parts, each starting on a new line, then the suffixes."""
    prefix = "tensor("
    indent = len(prefix)
    if tensor._crow is None:
        named = [("indices", tensor._places)]
    else:
        names = ("ccol", "row") if tensor.layout in _BY_COLUMNS else ("crow", "col")
        named = [(f"{n}_indices", part) for n, part in zip(names, (tensor._crow, tensor._places))]
    named.append(("values", tensor._stored))
    parts = [_part(name, part, indent) for name, part in named]
    suffixes = [] if tensor.device.type == "cpu" else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    default = _C.get_default_dtype()
    if tensor.dtype not in (default, default.to_complex(), lamella.int64, lamella.bool):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    if not tensor.is_leaf:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    body = prefix + (",\n" + " " * indent).join(parts)
    return _tensor_str.with_suffixes(body, suffixes, indent, tensor._crow is None)


def parts(tensor: SparseTensor) -> tuple[Any, tuple[Any, ...]]:
    """The layout, and the parts with the size: the arguments of rebuild()."""
    stored = tensor._stored.detach()
    if tensor._crow is None:
        return tensor.layout, (tensor._places, stored, tensor.shape, tensor._coalesced)
    return tensor.layout, (tensor._crow, tensor._places, stored, tensor.shape)


def rebuild(layout: Any, parts: tuple[Any, ...]) -> SparseTensor:
    """The sparse tensor of saved parts, which are checked."""
    if layout == lamella.sparse_coo:
        indices, values, size, *rest = parts
        is_coalesced = bool(rest and rest[0])
        return sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced)
    return sparse_compressed_tensor(*parts, layout=layout)
