"""Helpers of torch.nn.functional that copies of MultiheadAttention call."""

from __future__ import annotations

import warnings
from typing import Any

from lamella import Tensor
from lamella.nn.functional import linear
from lamella.nn.functional_attention import _projected, added_mask


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor, or None for None."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError(f"_none_or_dtype: expected a Tensor or None, got {type(input).__name__}")
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add to the scores. Warns if the other mask has another dtype."""
    if mask is not None and check_other and other_type not in (None, mask.dtype):
        warnings.warn(
            f"'{mask_name}' is of {mask.dtype} and '{other_name}' of {other_type}; masks of one "
            "dtype are to be preferred",
            stacklevel=2,
        )
    return added_mask(mask, mask_name, target_type)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Projects query, key and value by the three weights that w [3 * E, E] packs."""
    return _projected(q, k, v, list(w.chunk(3)), b, w)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Projects query, key and value, each by its own weight."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """True if query, key and value are batched. AssertionError if shapes or masks do not match."""
    dims = query.dim()
    if dims not in (2, 3) or key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            "_mha_shape_check: expected 'query', 'key' and 'value' to have 2 or 3 dimensions, all "
            f"the same, got {dims}, {key.dim()} and {value.dim()}"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"_mha_shape_check: expected 'key_padding_mask' to have {dims - 1} dimensions, got "
            f"{key_padding_mask.dim()}"
        )
    if attn_mask is None:
        return dims == 3
    expected = (num_heads, query.size(0), key.size(0))
    wrong = dims == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != expected
    if attn_mask.dim() not in (2, 3) or wrong:
        raise AssertionError(
            f"_mha_shape_check: expected 'attn_mask' to have 2 dimensions or the shape "
            f"{list(expected)}, got {list(attn_mask.shape)}"
        )
    return dims == 3


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    """AssertionError unless the mask is [bsz, src_len]."""
    if tuple(key_padding_mask.shape[:2]) != (bsz, src_len):
        raise AssertionError(
            "_check_key_padding_mask: expected 'key_padding_mask' to have the shape "
            f"{[bsz, src_len]}, got {list(key_padding_mask.shape)}"
        )


def _verify_batch_size(size: Any) -> None:
    """ValueError if a channel has only one value."""
    count = size[0]
    for each in size[2:]:
        count *= each
    if count == 1:
        raise ValueError(
            "batch_norm: expected more than 1 value per channel when training, got the size "
            f"{list(size)}"
        )
