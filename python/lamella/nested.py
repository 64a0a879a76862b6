"""lamella.nested: the operators declared with `python_module: nested`."""

from lamella import _C, _missing

globals().update(_C._functions("nested"))
_missing.suggest(__name__)
