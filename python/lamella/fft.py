"""Operators of lamella.fft."""

from lamella import _C

globals().update(_C._functions("fft"))
