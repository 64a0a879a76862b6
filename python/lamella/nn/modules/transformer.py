"""The Transformer (A. Vaswani et al., Attention is all you need, 2017): encoder and decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn import init
from lamella.nn.modules.container import ModuleList
from lamella.nn.modules.dropout import Dropout
from lamella.nn.modules.linear import Linear
from lamella.nn.modules.module import Module
from lamella.nn.modules.multihead import MultiheadAttention
from lamella.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """[size, size]: -inf above the diagonal, 0 elsewhere."""
    full = lamella.full((size, size), float("-inf"), device=device, dtype=dtype)
    return lamella.triu(full, diagonal=1)


def _is_causal(mask: Tensor | None, hint: bool | None, size: int) -> bool:
    """The hint, or if it is None, whether the mask is the causal one."""
    if hint is not None or mask is None:
        return bool(hint)
    if tuple(mask.shape) != (size, size) or not mask.is_floating_point():
        return False
    return bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())


def _length(input: Tensor, batch_first: bool) -> int:
    return input.size(1 if batch_first and input.dim() == 3 else 0)


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _attended(
    attention: MultiheadAttention,
    x: Tensor,
    source: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    return attention(
        x,
        source,
        source,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        need_weights=False,
        is_causal=is_causal,
    )[0]


class _Layer(Module):
    """The base of encoder and decoder layers: `blocks` attentions and a network of two layers, each
    added to its input, and normalised before (norm_first) or after."""

    self_attn: MultiheadAttention
    linear1: Module
    linear2: Module
    dropout: Module
    dropout1: Module
    dropout2: Module
    norm1: Module
    norm2: Module

    def __init__(
        self,
        attentions: tuple[str, ...],
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Any,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(
                    f"{self._get_name()}: expected 'activation' to be relu, gelu or a function, "
                    f"got {activation!r}"
                )
            activation = getattr(F, activation)
        where = {"device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = activation

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _added(self, norm: Module, block: Callable[..., Tensor], x: Tensor, *rest: Any) -> Tensor:
        """The residual sum of x and a block of it, normalised before or after."""
        return x + block(norm(x), *rest) if self.norm_first else norm(x + block(x, *rest))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention of x to itself; subclasses may override it."""
        masks = (attn_mask, key_padding_mask, is_causal)
        return self.dropout1(_attended(self.self_attn, x, x, *masks))

    def _ff_block(self, x: Tensor) -> Tensor:
        """The two linear layers; subclasses may override it."""
        last = self.dropout3 if hasattr(self, "dropout3") else self.dropout2
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Attention of the input to itself, then two linear layers."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        forms = (batch_first, norm_first, bias, device, dtype)
        super().__init__(("self_attn",), *sizes, *forms)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """src: [S, N, d_model], with batch_first [N, S, d_model], or without N."""

        masks = (src_mask, src_key_padding_mask, is_causal)
        x = self._added(self.norm1, self._sa_block, src, *masks)
        return self._added(self.norm2, self._ff_block, x)


class TransformerDecoderLayer(_Layer):
    """Attention of the input to itself and to the encoder's output, then two linear layers."""

    multihead_attn: MultiheadAttention
    norm3: Module

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        forms = (batch_first, norm_first, bias, device, dtype)
        super().__init__(("self_attn", "multihead_attn"), *sizes, *forms)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt: [T, N, d_model], memory: [S, N, d_model]; with batch_first N comes first."""

        masks = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._added(self.norm1, self._sa_block, tgt, *masks)
        masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._added(self.norm2, self._mha_block, x, memory, *masks)
        return self._added(self.norm3, self._ff_block, x)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention of x to the encoder's output; subclasses may override it."""
        masks = (attn_mask, key_padding_mask, is_causal)
        return self.dropout2(_attended(self.multihead_attn, x, mem, *masks))


class TransformerEncoder(Module):
    """num_layers copies of a layer, one after the other, then `norm`.

    enable_nested_tensor and mask_check are PyTorch's and have no effect.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """src: input of the layers; is_causal: whether mask is the causal one (None: checks it)."""
        first = self.layers[0].self_attn
        is_causal = _is_causal(mask, is_causal, _length(src, first.batch_first))
        for layer in self.layers:
            src = layer(
                src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=is_causal
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a layer, one after the other, then `norm`."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt, memory: inputs of the layers; tgt_is_causal: whether tgt_mask is causal (None:
        checks it)."""
        first = self.layers[0].self_attn
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, first.batch_first))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder; weights are initialised by xavier_uniform_."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first)
        rest = (norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*shared, *rest)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*shared, *rest)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: -inf above the diagonal, 0 elsewhere."""
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """src: [S, N, d_model], tgt: [T, N, d_model]; with batch_first N comes first; or without
        N."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError(
                f"Transformer: expected 'src' and 'tgt' to have one batch size, got "
                f"{src.size(batch)} and {tgt.size(batch)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"Transformer: expected 'src' and 'tgt' to have {self.d_model} numbers in their "
                f"last dimension, got {src.size(-1)} and {tgt.size(-1)}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
