"""torch.__future__: switches for how modules convert their parameters. The values are stored and
change nothing: Lamella's modules always keep the parameter objects and exchange their data."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions replace the parameter objects by new ones."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The value given to set_overwrite_module_params_on_conversion(), False by default."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions swap the data of parameters."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """The value given to set_swap_module_params_on_conversion(), False by default."""
    return _swap
