"""Attention of many heads, from projections to projections, as one function."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.functional_layers import dropout

__all__ = ["multi_head_attention_forward"]


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(f"multi_head_attention_forward: expected {text}")


def _additive(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask to be added to scores; a boolean one is True where a key does not count."""
    if mask is None or mask.dtype != lamella.bool:
        return mask
    return lamella.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(
        mask, float("-inf")
    )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of `num_heads` heads: projections of `query` [L, N, E], `key` and `value`
    [S, N, E], or all without N, the attention of each head, and a projection of what all heads
    found. Returns that, and the weights: of each head [N, heads, L, S], or their mean [N, L, S],
    or None without `need_weights`."""
    functional: Any = lamella.nn.functional
    batched = query.dim() == 3
    _check(query.dim() in (2, 3), f"'query' to have 2 or 3 dimensions, got {query.dim()}")
    _check(
        key.dim() == value.dim() == query.dim(),
        f"'key' and 'value' to have {query.dim()} dimensions, got {key.dim()} and {value.dim()}",
    )
    if not batched:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, count, width = query.shape
    _check(
        width == embed_dim_to_check,
        f"'query' to have {embed_dim_to_check} features, got {width}",
    )
    _check(
        num_heads > 0 and width % num_heads == 0,
        f"'num_heads' to divide {width}, got {num_heads}",
    )
    _check(
        tuple(key.shape[:2]) == tuple(value.shape[:2]),
        f"'value' to have the first sizes of 'key', {tuple(key.shape)}, got {tuple(value.shape)}",
    )
    _check(attn_mask is not None or not is_causal, "'attn_mask' with 'is_causal', got none")
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal else _additive(attn_mask, query)
    padding = _additive(key_padding_mask, query)

    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
        _check(
            all(w is not None for w in weights),
            "weights of 'query', 'key' and 'value' with 'use_separate_proj_weight'",
        )
    else:
        _check(in_proj_weight is not None, "'in_proj_weight', got none")
        weights = list(in_proj_weight.chunk(3))  # type: ignore[union-attr]
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    q, k, v = (functional.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases))

    def wider(t: Tensor | None) -> Tensor | None:
        return None if t is None else functional.pad(t, (0, 1))

    _check((bias_k is None) == (bias_v is None), "both 'bias_k' and 'bias_v' or none of them")
    if bias_k is not None and bias_v is not None:
        _check(static_k is None and static_v is None, "no static keys and values with biases")
        k = lamella.cat([k, bias_k.expand(1, count, width)])
        v = lamella.cat([v, bias_v.expand(1, count, width)])
        mask, padding = wider(mask), wider(padding)

    def heads(t: Tensor) -> Tensor:
        return t.reshape(t.size(0), count, num_heads, width // num_heads).permute(1, 2, 0, 3)

    def given(t: Tensor) -> Tensor:
        return t.reshape(count, num_heads, t.size(1), width // num_heads)

    q = heads(q)
    k = heads(k) if static_k is None else given(static_k)
    v = heads(v) if static_v is None else given(static_v)
    if add_zero_attn:
        k, v = (functional.pad(t, (0, 0, 0, 1)) for t in (k, v))
        mask, padding = wider(mask), wider(padding)
    keys = k.size(2)
    if mask is not None:
        shapes = [(length, keys), (count * num_heads, length, keys)]
        _check(
            tuple(mask.shape) in shapes,
            f"'attn_mask' to have the shape {shapes[0]} or {shapes[1]}, got {tuple(mask.shape)}",
        )
        if mask.dim() == 3:
            mask = mask.reshape(count, num_heads, length, keys)
    if padding is not None:
        _check(
            tuple(padding.shape) == (count, keys),
            f"'key_padding_mask' to have the shape {(count, keys)}, got {tuple(padding.shape)}",
        )
        padding = padding.reshape(count, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    drop = dropout_p if training else 0.0
    found: Tensor | None = None
    if need_weights:
        scores = (q * (width // num_heads) ** -0.5) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
        found = dropout(scores.softmax(-1), drop)
        joined = found @ v
    else:
        joined = functional.scaled_dot_product_attention(q, k, v, mask, drop, causal)
    joined = joined.permute(2, 0, 1, 3).reshape(length, count, width)
    result = functional.linear(joined, out_proj_weight, out_proj_bias)
    if found is not None and average_attn_weights:
        found = found.mean(1)
    if not batched:
        result = result.squeeze(1)
        found = None if found is None else found.squeeze(0)
    return result, found
