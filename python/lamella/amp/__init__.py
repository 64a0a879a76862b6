"""Mixed precision: regions in which operators run in the precision that suits them."""

from lamella.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
