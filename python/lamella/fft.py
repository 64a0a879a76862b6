"""lamella.fft: the operators declared with `python_module: fft`."""

from lamella import _C, _missing

globals().update(_C._functions("fft"))
_missing.suggest(__name__)
