"""Operators of lamella.sparse."""

from lamella import _C

globals().update(_C._functions("sparse"))
