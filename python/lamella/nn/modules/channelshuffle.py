"""A layer that reorders channels."""

from __future__ import annotations

from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Arranges the channels in `groups` rows and reads them column by column."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, ...]."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
