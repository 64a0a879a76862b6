"""torch.version."""

from __future__ import annotations

from lamella.compat import VERSION

__version__ = VERSION
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
git_version = "Unknown"
