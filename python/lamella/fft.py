"""lamella.fft: the operators named `fft_*`, without the prefix."""

from lamella import _C

globals().update(_C._functions("fft"))
