"""torch.torch_version: version strings that compare as versions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# A release, with an optional pre-release and build: "1.13.0a0", "2.0.0+cpu".
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev)[._-]?(\d*))?(?:\+(.*))?")
_EARLIER = {"dev": -4, "a": -3, "b": -2, "rc": -1, None: 0}


def _key(version: Any) -> tuple[Any, ...] | None:
    """The sort key of a version: its numbers without trailing zeros, then the pre-release (before
    the release), then the build. None if the text is not a version."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(str(part) for part in version)
    found = _RELEASE.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), _EARLIER[found[2]], int(found[3] or 0), found[4] or ""


class TorchVersion(str):
    """A version: "2.13.0" >= "2.9", and >= (2, 9). Compared with other text, it is plain text."""

    def _compare(self, other: Any, method: str) -> Any:
        own, theirs = _key(str(self)), _key(other)
        if own is None or theirs is None:
            return getattr(str, method)(self, other)
        return getattr(tuple, method)(own, theirs)

    def __lt__(self, other: Any) -> bool:
        return bool(self._compare(other, "__lt__"))

    def __le__(self, other: Any) -> bool:
        return bool(self._compare(other, "__le__"))

    def __gt__(self, other: Any) -> bool:
        return bool(self._compare(other, "__gt__"))

    def __ge__(self, other: Any) -> bool:
        return bool(self._compare(other, "__ge__"))

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__") is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
