"""Operators of lamella.linalg."""

from lamella import _C

LinAlgError = _C._LinAlgError

globals().update(_C._functions("linalg"))
