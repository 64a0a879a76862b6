"""torch.utils._foreach_utils: groups tensors for calls that take lists."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    """An empty list: no device gains from lists of tensors."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """An empty list: no device gains from lists of tensors."""
    return []


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    """False: no device gains from lists of tensors."""
    return False


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> dict[tuple[lamella.device, lamella.dtype], tuple[list[list[Tensor | None]], list[int]]]:
    """Groups the entries of lists of equal length by the device and dtype of the first list's
    tensors.

    with_indices: also returns the indices of each group's entries.
    """
    groups: dict[Any, tuple[list[list[Tensor | None]], list[int]]] = {}
    for place, row in enumerate(zip(*tensorlistlist)):
        first = row[0]
        if first is None:
            raise RuntimeError(
                "_group_tensors_by_device_and_dtype: expected tensors first, got None"
            )
        lists, places = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for entries, entry in zip(lists, row):
            entries.append(entry)
        if with_indices:
            places.append(place)
    return groups
