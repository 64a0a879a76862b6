"""torch.nn._reduction: the numbers of loss reductions, also from the deprecated flags."""

from __future__ import annotations

from lamella.nn.functional_losses import _number as _number


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum"."""
    return _number(reduction)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number for the deprecated flags size_average and reduce."""
    return _number("mean", True if size_average is None else size_average, reduce)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The name for the deprecated flags size_average and reduce."""
    return ("none", "mean", "sum")[legacy_get_enum(size_average, reduce)]
