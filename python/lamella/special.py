"""lamella.special: the operators declared with `python_module: special`."""

from lamella import _C, _missing

globals().update(_C._functions("special"))
_missing.suggest(__name__)
