"""Embeddings: tables of vectors."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn import init
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


def _row(name: str, padding_idx: int | None, count: int) -> int | None:
    """The index of a row as a non-negative number."""
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise ValueError(
            f"{name}: expected 'padding_idx' to be a row of {count}, got {padding_idx}"
        )
    return padding_idx % count


def _table(module: Any, weight: Any, device: Any, dtype: Any, requires_grad: bool) -> Parameter:
    shape = (module.num_embeddings, module.embedding_dim)
    if weight is None:
        return Parameter(lamella.empty(shape, device=device, dtype=dtype), requires_grad)
    if tuple(weight.shape) != shape:
        raise ValueError(
            f"{module._get_name()}: expected '_weight' to have the shape {list(shape)}, got "
            f"{list(weight.shape)}"
        )
    return Parameter(weight, requires_grad)


class _Table(Module):
    """The base of Embedding and EmbeddingBag."""

    weight: Tensor
    padding_idx: int | None

    def reset_parameters(self) -> None:
        """Draws new values."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with lamella.no_grad():
                self.weight[self.padding_idx].fill_(0)


def _rows_and_columns(name: str, embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise ValueError(
            f"{name}: expected 'embeddings' to have 2 dimensions, got {embeddings.dim()}"
        )
    return embeddings.size(0), embeddings.size(1)


def _unusual(table: Any) -> list[str]:
    """The texts of the options in a table's repr that differ from their defaults."""
    defaults = {"max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}
    return [f"{n}={getattr(table, n)}" for n, d in defaults.items() if getattr(table, n) != d]


class Embedding(_Table):
    """A table [num_embeddings, embedding_dim]; indices [...] give vectors [..., embedding_dim].

    The row padding_idx is initialised with zeros and has no gradient.
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row("Embedding", padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self.weight = _table(self, _weight, device, dtype, not _freeze)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A module over an existing table."""
        rows, columns = _rows_and_columns("Embedding", embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input: Tensor) -> Tensor:
        """input: integers of any shape."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        parts += _unusual(self)
        return ", ".join(parts + (["sparse=True"] if self.sparse else []))


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows of a table [num_embeddings, embedding_dim] that each bag
    of indices selects.

    The row padding_idx is skipped and has no gradient.
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row("EmbeddingBag", padding_idx, num_embeddings)
        self.weight = _table(self, _weight, device, dtype, True)
        if _weight is None:
            self.reset_parameters()
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A module over an existing table."""
        rows, columns = _rows_and_columns("EmbeddingBag", embeddings)
        made = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """input: integers [N, L], or [L] with `offsets` [N] at which the bags begin."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}", *_unusual(self)]
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)
