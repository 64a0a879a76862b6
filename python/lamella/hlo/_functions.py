"""The builder's functions, and the element types. They are made from the extension module's tables;
their types stand in the stub beside this file, which tools/hlo_stub.py writes."""

import enum as _enum

from lamella import _hlo

_PREFIX = "build_"

for _name in dir(_hlo):
    if _name.startswith(_PREFIX) and not _name.startswith(_PREFIX + "_"):
        globals()[_name[len(_PREFIX) :]] = getattr(_hlo, _name)


class _Text(str, _enum.Enum):
    def __str__(self) -> str:
        return self.value


ElementType = _Text(
    "ElementType",
    [(element.upper(), element) for element, _, _ in _hlo._element_types],
    module="lamella.hlo",
)
ElementType.__doc__ = "What an array of HLO holds. Members are equal to their texts."

__all__ = [name for name in globals() if not name.startswith("_")]
