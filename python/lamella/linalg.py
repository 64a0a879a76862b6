"""lamella.linalg: the operators declared with `python_module: linalg`."""

from lamella import _C, _missing

LinAlgError = _C._LinAlgError

globals().update(_C._functions("linalg"))
_missing.suggest(__name__)
