"""lamella.linalg: the operators named `linalg_*`, without the prefix."""

from lamella import _C

LinAlgError = _C._LinAlgError

globals().update(_C._functions("linalg"))
