"""Multi-head attention with its projections, which the layer MultiheadAttention calls."""

from __future__ import annotations

import math

import lamella
from lamella import _C, Tensor

__all__ = ["multi_head_attention_forward"]

_nn = _C._functions("nn")
_NAME = "multi_head_attention_forward"


def added_mask(mask: Tensor | None, name: str, dtype: lamella.dtype) -> Tensor | None:
    """The mask as numbers to add to the scores; a boolean mask becomes -inf where it is True."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != lamella.bool:
        raise RuntimeError(f"{_NAME}: expected '{name}' to be bool or floating, got {mask.dtype}")
    return lamella.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weights: list[Tensor],
    bias: Tensor | None,
    packed: Tensor | None,
) -> list[Tensor]:
    """The projections of query, key and value; equal tensors share one product."""
    biases: list[Tensor | None] = [None] * 3 if bias is None else list(bias.chunk(3))
    inputs = [query, key, value]
    if packed is None or key is not value:
        return [_nn["linear"](x, w, b) for x, w, b in zip(inputs, weights, biases)]
    width = query.size(-1)
    if query is key:
        return list(_nn["linear"](query, packed, bias).split(width, -1))
    rest = None if bias is None else bias[width:]
    both = _nn["linear"](key, packed[width:], rest).split(width, -1)
    return [_nn["linear"](query, weights[0], biases[0]), *both]


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
    """The outputs [L, N, E] of query [L, N, E] over key and value [S, N, *], or all without N, and
    with need_weights the weights [N, L, S], else None.

    attn_mask: [L, S] or [N * num_heads, L, S]; key_padding_mask: [N, S]. Either is True where
    attention is not allowed, or holds numbers that are added to the scores. is_causal: attn_mask is
    the causal mask. bias_k and bias_v: a further key and value; add_zero_attn: one more of zeros;
    static_k and static_v [N * num_heads, S, E / num_heads] replace the projected ones.
    """
    batched = query.dim() == 3
    if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"{_NAME}: expected 'query', 'key' and 'value' to have 2 or 3 dimensions, all the "
            f"same, got {query.dim()}, {key.dim()} and {value.dim()}"
        )
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    source = key.size(0)
    if width != embed_dim_to_check:
        raise AssertionError(
            f"{_NAME}: expected 'query' to have {embed_dim_to_check} numbers in its last "
            f"dimension, got {list(query.shape)}"
        )
    head = width // num_heads
    if head * num_heads != width:
        raise AssertionError(
            f"{_NAME}: expected 'embed_dim' to be divisible by {num_heads} heads, got {width}"
        )
    if key.shape[:2] != value.shape[:2] or key.size(1) != batch:
        raise AssertionError(
            f"{_NAME}: expected 'key' and 'value' to agree in their first dimensions, and with "
            f"'query' in the batch, got {list(query.shape)}, {list(key.shape)} and "
            f"{list(value.shape)}"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_NAME}: expected 'attn_mask' with is_causal")

    if use_separate_proj_weight:
        given = (q_proj_weight, k_proj_weight, v_proj_weight)
        weights = [weight for weight in given if weight is not None]
        if len(weights) != 3:
            raise AssertionError(
                f"{_NAME}: expected three weights with use_separate_proj_weight, got "
                f"{len(weights)}"
            )
        packed = None
    else:
        packed = in_proj_weight
        if packed is None:
            raise AssertionError(f"{_NAME}: expected 'in_proj_weight' to be a Tensor, got None")
        weights = list(packed.chunk(3))
    q, k, v = _projected(query, key, value, weights, in_proj_bias, packed)

    padding = added_mask(key_padding_mask, "key_padding_mask", q.dtype)
    if padding is not None and tuple(padding.shape) != (batch, source):
        raise AssertionError(
            f"{_NAME}: expected 'key_padding_mask' to have the shape {[batch, source]}, got "
            f"{list(padding.shape)}"
        )
    mask: Tensor | None = None
    causal = is_causal and padding is None and not need_weights
    if not causal:
        mask = added_mask(attn_mask, "attn_mask", q.dtype)
    if mask is not None:
        wanted = (length, source) if mask.dim() == 2 else (batch * num_heads, length, source)
        if tuple(mask.shape) != wanted:
            raise RuntimeError(
                f"{_NAME}: expected 'attn_mask' to have the shape {[length, source]} or "
                f"{[batch * num_heads, length, source]}, got {list(mask.shape)}"
            )

    further = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"{_NAME}: expected no 'bias_k' with 'static_k' or 'static_v'")
        k = lamella.cat([k, bias_k.repeat(1, batch, 1)])
        v = lamella.cat([v, bias_v.repeat(1, batch, 1)])
        further += 1

    def heads(x: Tensor) -> Tensor:
        return x.reshape(x.size(0), batch * num_heads, head).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        k, v = (lamella.cat([x, x.new_zeros((x.size(0), 1, x.size(2)))], 1) for x in (k, v))
        further += 1
    if further:
        causal = False
        mask = added_mask(attn_mask, "attn_mask", q.dtype)
        mask = None if mask is None else _nn["pad"](mask, [0, further])
        padding = None if padding is None else _nn["pad"](padding, [0, further])
    source = k.size(1)
    if padding is not None:
        beside = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        beside = beside.reshape(batch * num_heads, 1, source)
        mask = beside if mask is None else mask + beside

    dropout_p = dropout_p if training else 0.0
    if not need_weights:
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.dim() == 2 else mask.unflatten(0, (batch, num_heads))
        q, k, v = (x.view(batch, num_heads, x.size(1), head) for x in (q, k, v))
        made = _nn["scaled_dot_product_attention"](q, k, v, mask, dropout_p, causal)
        made = made.permute(2, 0, 1, 3).reshape(length * batch, width)
        output = _nn["linear"](made, out_proj_weight, out_proj_bias).unflatten(0, (length, batch))
        return (output if batched else output.squeeze(1)), None
    q = q * math.sqrt(1.0 / head)
    scores = q @ k.transpose(1, 2) if mask is None else lamella.baddbmm(mask, q, k.transpose(1, 2))
    shares = scores.softmax(-1)
    if dropout_p > 0.0:
        shares = lamella.dropout(shares, dropout_p, True)
    made = (shares @ v).transpose(0, 1).reshape(length * batch, width)
    output = _nn["linear"](made, out_proj_weight, out_proj_bias).unflatten(0, (length, batch))
    shares = shares.view(batch, num_heads, length, source)
    if average_attn_weights:
        shares = shares.mean(1)
    return (output, shares) if batched else (output.squeeze(1), shares.squeeze(0))
