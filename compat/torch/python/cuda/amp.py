"""torch.cuda.amp: there is no CUDA device."""

from __future__ import annotations

from typing import Any

from lamella.compat.amp.grad_scaler import GradScaler as GradScaler
from lamella.compat.amp.grad_scaler import OptState as OptState


def amp_definitely_not_available() -> bool:
    """True."""
    return True


class autocast:
    """autocast for an absent device: a context and decorator that does nothing."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        pass

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Returns the function unchanged."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any) -> Any:
    """Returns the function unchanged."""
    return bwd
