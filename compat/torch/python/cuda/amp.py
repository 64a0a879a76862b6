"""torch.cuda.amp: mixed precision of devices "cuda"."""

from __future__ import annotations

import functools
from typing import Any

import lamella
from lamella.compat.amp.grad_scaler import GradScaler as GradScaler
from lamella.compat.amp.grad_scaler import OptState as OptState


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device."""
    return not lamella.cuda.is_available()


class autocast(lamella.autocast):
    """lamella.autocast("cuda"), by default with float16."""

    def __init__(
        self, enabled: bool = True, dtype: Any = lamella.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)

    def clone(self) -> autocast:
        """A new region with the same arguments."""
        return autocast(self._enabled, self.fast_dtype, bool(self._cache_enabled))


custom_fwd = functools.partial(lamella.amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(lamella.amp.custom_bwd, device_type="cuda")
