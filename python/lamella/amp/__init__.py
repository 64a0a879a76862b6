"""lamella.amp: automatic mixed precision."""

from lamella.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __getattr__(name: str) -> object:
    from lamella._missing import missing

    raise missing(__name__, name)
