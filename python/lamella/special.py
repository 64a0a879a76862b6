"""lamella.special: the operators declared with `python_module: special`."""

from lamella import _C

globals().update(_C._functions("special"))
