"""Operators of lamella.special."""

from lamella import _C

globals().update(_C._functions("special"))
