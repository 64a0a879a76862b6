"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

import sys
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.modules.batchnorm import _BatchNorm
from lamella.nn.modules.module import Module

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics in training are taken over all ranks of process_group
    (None: over all ranks); with one process it is plain batch normalisation."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm: expected 'input' to have at least 2 dimensions, got {input.dim()}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, num_features, ...]."""
        # If lamella.distributed has not been imported, there is no process group.
        dist: Any = sys.modules.get("lamella.distributed")
        alone = dist is None or not dist.is_initialized()
        if alone or not self.training or dist.get_world_size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        over = [d for d in range(input.dim()) if d != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        group = 0 if self.process_group is None else dist.number_of(self.process_group)
        total: Any = lamella.ops.dist.all_reduce

        def sums(values: Tensor) -> Tensor:
            return total(values.sum(over), "sum", group)

        values = input.float() if input.dtype in (lamella.float16, lamella.bfloat16) else input
        own = values.new_full((1,), input.numel() // max(1, input.size(1)))
        count = float(total(own, "sum", group).item())
        if count <= 1:
            raise ValueError(
                "SyncBatchNorm: expected more than 1 value for each channel in training, got "
                f"{int(count)} on all ranks"
            )
        mean = sums(values) / count
        centred = values - mean.view(shape)
        variance = sums(centred * centred) / count
        if self.track_running_stats:
            self._follow(mean.detach(), variance.detach() * (count / (count - 1)))
        result = centred * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        return result.to(input.dtype)

    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Moves the running statistics towards the batch's."""
        momentum = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked.item())
        if self.running_mean is not None and self.running_var is not None and momentum is not None:
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
            self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with each batch normalisation replaced by a SyncBatchNorm that has the same
        parameters and statistics."""
        made: Any = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for entries in ("_parameters", "_buffers"):
                getattr(made, entries).update(getattr(module, entries))
            made.training = module.training
        child: Module
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
