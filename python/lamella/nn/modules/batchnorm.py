"""Normalisation of each channel over the batch."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn import init
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]


class _NormBase(Module):
    """Parameters and running statistics of `num_features` channels."""

    _ranks: tuple[int, ...] = ()
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    # States of version 1 have no num_batches_tracked.
    _version = 2

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        key = f"{prefix}num_batches_tracked"
        version = local_metadata.get("version")
        if self.track_running_stats and key not in state_dict and (version is None or version < 2):
            count = self.num_batches_tracked
            if count is None or count.is_meta:
                count = lamella.tensor(0, dtype=lamella.int64)
            state_dict[key] = count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            empty = lamella.empty(num_features, device=device, dtype=dtype)
            self.register_parameter(name, Parameter(empty) if wanted else None)
        mean = variance = count = None
        if track_running_stats:
            mean = lamella.zeros(num_features, device=device, dtype=dtype)
            variance = lamella.ones(num_features, device=device, dtype=dtype)
            count = lamella.tensor(0, dtype=lamella.int64, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", variance)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets mean to 0, variance to 1 and the count of batches to 0."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0, and resets the statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises ValueError for an unexpected number of dimensions; subclasses may override it."""
        if self._ranks and input.dim() not in self._ranks:
            ranks = " or ".join(str(rank) for rank in self._ranks)
            raise ValueError(
                f"{self._get_name()}: expected 'input' to have {ranks} dimensions, got "
                f"{input.dim()}"
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias, each channel over the batch and all positions.

    In training it uses the batch's statistics and moves the running ones towards them by
    `momentum` (None: to the mean over all batches); else it uses the running ones, if tracked.
    """

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, num_features, ...]."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        tracked = self.num_batches_tracked
        if self.training and self.track_running_stats and tracked is not None:
            tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(tracked.item())
        own_statistics = self.training or (self.running_mean is None and self.running_var is None)
        tracking = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracking else None,
            self.running_var if tracking else None,
            self.weight,
            self.bias,
            own_statistics,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W]."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]."""

    _ranks = (5,)
