"""lamella.fft: the operators declared with `python_module: fft`."""

from lamella import _C

globals().update(_C._functions("fft"))
