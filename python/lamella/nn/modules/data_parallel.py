"""DataParallel, which programs for PyTorch wrap around a network for several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamella.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Calls `module`, which runs on one device; nn.parallel.DistributedDataParallel is for many."""

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DataParallel: expected 'device_ids' to name one device, got {len(device_ids)}; "
                "nn.parallel.DistributedDataParallel trains on many, with a process for each"
            )
        self.module = module
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self.module(*inputs, **kwargs)
