"""The builder's functions, which the extension module makes from a table. Their types are in the
stub beside this file, which tools/hlo_stub.py writes."""

from lamella import _hlo

_PREFIX = "build_"

for _name in dir(_hlo):
    if _name.startswith(_PREFIX) and not _name.startswith(_PREFIX + "_"):
        globals()[_name[len(_PREFIX) :]] = getattr(_hlo, _name)

__all__ = [name for name in globals() if not name.startswith("_")]
