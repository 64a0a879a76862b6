"""torch.nn.attention.bias: causal masks for different numbers of queries and keys."""

from __future__ import annotations

import enum
from typing import Any

import lamella
from lamella import Tensor


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a mask lies: from the upper left corner, or to the lower right one."""

    UPPER_LEFT, LOWER_RIGHT = 1, 2


class CausalBias(Tensor):
    """An attention mask: True where a query attends to a key."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = lamella.ones(seq_len_q, seq_len_kv, dtype=lamella.bool).tril(shift)
        made: CausalBias = mask.as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        pass

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        mask: Tensor = self.as_subclass(Tensor)
        return mask if device is None else mask.to(device)

    def __repr__(self, **options: Any) -> str:
        return repr(self._materialize())


def _causal(variant: CausalVariant, size: tuple[int, ...], name: str) -> CausalBias:
    if len(size) != 2:
        raise RuntimeError(f"{name}: expected the numbers of queries and of keys, got {size}")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask whose first query attends to the first key only."""
    return _causal(CausalVariant.UPPER_LEFT, size, "causal_upper_left")


def causal_lower_right(*size: int) -> CausalBias:
    """The mask whose last query attends to all keys."""
    return _causal(CausalVariant.LOWER_RIGHT, size, "causal_lower_right")
