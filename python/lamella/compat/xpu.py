"""torch.xpu where there is none."""

from lamella.compat.accelerator import device_count as device_count
from lamella.compat.accelerator import empty_cache as empty_cache
from lamella.compat.accelerator import is_available as is_available
from lamella.compat.accelerator import synchronize as synchronize


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""
