"""The inspection functions of the array API: capabilities, devices and dtypes."""

from __future__ import annotations

from typing import Any

import lamella
from lamella.array_api._dtypes import KINDS


class Info:
    """Capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """The optional features of the standard that are supported, and the largest rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> lamella.device:
        """The device of new arrays by default."""
        return lamella.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, lamella.dtype]:
        """The default dtypes of new arrays, by kind."""
        real = lamella.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": lamella.promote_types(real, lamella.complex64),
            "integral": lamella.int64,
            "indexing": lamella.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, lamella.dtype]:
        """The dtypes of all kinds, of one, or of several, by name."""
        kinds = (kind,) if isinstance(kind, str) else kind or ("bool", "numeric")
        return {str(dtype).partition(".")[2]: dtype for k in kinds for dtype in KINDS[k]}

    def devices(self) -> tuple[lamella.device, ...]:
        """The devices that arrays can be created on."""
        return (lamella.device("cpu"),)


def __array_namespace_info__() -> Info:
    """The capabilities, devices and dtypes of this library."""
    return Info()
