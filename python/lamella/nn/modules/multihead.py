"""Multi-head attention."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import init
from lamella.nn.functional_attention import multi_head_attention_forward
from lamella.nn.modules.linear import NonDynamicallyQuantizableLinear
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """softmax(q k^T / sqrt(head size)) v for num_heads parts of the projected inputs; the results
    are concatenated and projected.

    kdim, vdim: the widths of keys and values, if not embed_dim. add_bias_kv: one more key and value
    that are learned; add_zero_attn: one of zeros.
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "MultiheadAttention: expected 'embed_dim' and 'num_heads' to be positive, got "
                f"{embed_dim} and {num_heads}"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"MultiheadAttention: expected 'embed_dim' to be divisible by {num_heads} heads, "
                f"got {embed_dim}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads

        def parameter(wanted: bool, *shape: int) -> Any:
            empty = lamella.empty(shape, device=device, dtype=dtype) if wanted else None
            return None if empty is None else Parameter(empty)

        same = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", parameter(same, 3 * embed_dim, embed_dim))
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        for part, width in widths.items():
            weight = parameter(not same, embed_dim, width)
            self.register_parameter(f"{part}_proj_weight", weight)
        self.register_parameter("in_proj_bias", parameter(bias, 3 * embed_dim))
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.register_parameter("bias_k", parameter(add_bias_kv, 1, 1, embed_dim))
        self.register_parameter("bias_v", parameter(add_bias_kv, 1, 1, embed_dim))
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for further in (self.bias_k, self.bias_v):
            if further is not None:
                init.xavier_normal_(further)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """query: [L, N, embed_dim], key: [S, N, kdim], value: [S, N, vdim]; with batch_first N
        comes first; or all without N. The masks are those of
        functional.multi_head_attention_forward().

        Returns the outputs in the form of query and, with need_weights, the weights [N, L, S], the
        mean over the heads, or [N, num_heads, L, S]; else None.
        """
        turned = self.batch_first and query.dim() == 3
        if turned:
            # Inputs that are the same tensor stay the same, so that it is projected once.
            first, same_key, same_value = query, key is query, value is key
            query = first.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        output, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if turned else output), weights
