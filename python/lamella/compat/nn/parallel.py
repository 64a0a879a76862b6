"""torch.nn.parallel: lamella.nn.parallel, and DataParallel, which is the module where no devices
are."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of
from lamella.nn import Module

__getattr__, __dir__ = names_of("nn.parallel")


class DataParallel(Module):
    """The module itself, one name further down (`module.`): there are no devices to spread over."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids:
            raise RuntimeError(f"DataParallel: expected no device_ids, got {device_ids}")
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = []
        self.output_device = None

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """What the module computes."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
