"""Operators of lamella.nested."""

from lamella import _C

globals().update(_C._functions("nested"))
