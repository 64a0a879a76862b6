"""torch.nn.attention.flex_attention: attention whose scores and masks are given by functions.

The functions are called once, with indices that broadcast to (batch, head, query, key), and
attention is computed from the whole score matrix: the results equal PyTorch's, but the memory grows
with queries times keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import lamella
from lamella import Tensor

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """The further results of flex_attention(): log-sum-exp and maximum of the scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results that were requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask function that lets every query attend to every key."""
    return batch.new_ones((), dtype=lamella.bool)


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The intersection of mask functions."""

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        made = noop_mask(b, h, q, kv)
        for mask in mask_mods:
            made = made & mask(b, h, q, kv)
        return made

    return both


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The union of mask functions."""

    def either(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        made = ~noop_mask(b, h, q, kv)
        for mask in mask_mods:
            made = made | mask(b, h, q, kv)
        return made

    return either


def _indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """The index of each dimension, shaped so that the indices broadcast with each other."""
    count = len(sizes)
    return [
        lamella.arange(size, device=device).view([-1 if i == d else 1 for i in range(count)])
        for d, size in enumerate(sizes)
    ]


def _is_score(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_argcount == 5


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The values of a mask or score function for each batch, head, query and key."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    at = _indices(sizes, device)
    if _is_score(mod_fn):
        scores = mod_fn(lamella.zeros(sizes, device=device), *at)
        return lamella.where(lamella.isneginf(scores), False, True)
    return mod_fn(*at).expand(sizes)


class BlockMask:
    """A mask function, and the blocks of queries and keys that it touches."""

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: Callable[..., Tensor],
    ) -> None:
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[..., Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        **options: Any,
    ) -> BlockMask:
        """Builds the mask from the column numbers of the blocks in each row of blocks."""
        size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = kv_indices.size(-2) * size[0], kv_indices.size(-1) * size[1]
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            size,
            mask_mod or noop_mask,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(batches, heads, queries, keys)."""
        return (*self.kv_num_blocks.shape[:-1], *self.seq_lengths)

    def _blocks(self) -> tuple[Tensor, Tensor]:
        """The blocks that are partly unmasked, and those that are fully unmasked."""
        columns = -(-self.seq_lengths[1] // self.BLOCK_SIZE[1])

        def dense(counts: Tensor | None, indices: Tensor | None) -> Tensor:
            if counts is None or indices is None:
                return lamella.zeros((*self.kv_num_blocks.shape, columns), dtype=lamella.bool)
            used = lamella.arange(indices.size(-1)) < counts.unsqueeze(-1)
            made = lamella.zeros((*counts.shape, columns + 1), dtype=lamella.bool)
            made.scatter_(-1, lamella.where(used, indices, columns).long(), True)
            return made[..., :columns]

        return (
            dense(self.kv_num_blocks, self.kv_indices),
            dense(self.full_kv_num_blocks, self.full_kv_indices),
        )

    def to_dense(self) -> Tensor:
        """1 for each block that is not fully masked, else 0."""
        part, whole = self._blocks()
        return (part | whole).to(lamella.int32)

    def sparsity(self) -> float:
        """The share of masked blocks, in percent."""
        dense = self.to_dense()
        return 100.0 * (1.0 - float(dense.sum()) / dense.numel())

    def numel(self) -> int:
        """The number of (query, key) pairs."""
        return math.prod(self.shape)

    def to(self, device: Any) -> BlockMask:
        """The mask itself, because there is only one device."""
        return self

    def _allowed(self, device: Any) -> Tensor:
        """True for each batch, head, query and key that is not masked."""
        batch, heads = self.kv_num_blocks.shape[:2]
        rows, columns = self.seq_lengths
        part, whole = (
            blocks.repeat_interleave(self.BLOCK_SIZE[0], -2)[..., :rows, :].repeat_interleave(
                self.BLOCK_SIZE[1], -1
            )[..., :columns]
            for blocks in self._blocks()
        )
        return whole | (part & create_mask(self.mask_mod, batch, heads, rows, columns, device))

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    **options: Any,
) -> BlockMask:
    """Finds the blocks that a mask function leaves partly or fully unmasked."""
    size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    device = None if str(device).startswith("cuda") else device
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    grown = lamella.nn.functional.pad(
        mask.to(lamella.int64), (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN)
    )
    counts = grown.view(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    whole = counts == size[0] * size[1]
    part = counts > 0
    if separate_full_blocks:
        part = part & ~whole

    def numbers(blocks: Tensor) -> tuple[Tensor, Tensor]:
        order = lamella.argsort(blocks.to(lamella.int32), dim=-1, descending=True, stable=True)
        return blocks.sum(-1).to(lamella.int32), order.to(lamella.int32)

    full: tuple[Any, Any] = numbers(whole) if separate_full_blocks else (None, None)
    number, indices = numbers(part)
    return BlockMask((Q_LEN, KV_LEN), number, indices, full[0], full[1], size, mask_mod)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(query key' scale)) value, over the keys that the mask does not exclude.

    query: (batch, heads, queries, size); key and value: (batch, heads, keys, size), with fewer
    heads if `enable_gqa`. Rows without keys give zeros.
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError("NYI: query, key, and value must be 4D tensors")
    if not enable_gqa and query.size(-3) != key.size(-3):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got "
            f"Hq={query.size(-3)} and Hkv={key.size(-3)}. Try setting enable_gqa=True for GQA."
        )
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = (query @ key.transpose(-2, -1)) * (
        1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    )
    if score_mod is not None:
        scores = score_mod(scores, *_indices(tuple(scores.shape), query.device))
    if block_mask is not None:
        allowed = block_mask._allowed(query.device)
        rows, columns = scores.shape[-2:]
        scores = scores.masked_fill(~allowed[..., :rows, :columns], -math.inf)
    scores = scores.to(lamella.promote_types(scores.dtype, lamella.float32))
    weights = lamella.softmax(scores, -1)
    # The softmax of a row of only -inf would be NaN.
    weights = weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0)
    made = weights.to(value.dtype) @ value
    if return_aux is not None:
        lse = lamella.logsumexp(scores, -1) if return_aux.lse else None
        return made, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (made, lamella.logsumexp(scores, -1)) if return_lse else made
