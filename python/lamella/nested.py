"""lamella.nested: the operators declared with `python_module: nested`."""

from lamella import _C

globals().update(_C._functions("nested"))
