"""torch.__future__: switches of how modules convert their parameters. They keep what they are set
to; Lamella's modules keep their parameters and exchange what these hold, so both ways are one."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions replace parameters by new ones."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion() was told, False at first."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions exchange what parameters hold."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion() was told, False at first."""
    return _swap
