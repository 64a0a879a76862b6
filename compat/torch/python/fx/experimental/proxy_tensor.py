"""torch.fx.experimental.proxy_tensor: Lamella does not trace with it."""

from __future__ import annotations

from typing import Any

from lamella.compat import _hollow


def get_proxy_mode() -> None:
    """None."""


def __getattr__(name: str) -> Any:
    return getattr(_hollow.module("fx.experimental.proxy_tensor"), name)
