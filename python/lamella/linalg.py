"""lamella.linalg: the operators declared with `python_module: linalg`."""

from lamella import _C

LinAlgError = _C._LinAlgError

globals().update(_C._functions("linalg"))
