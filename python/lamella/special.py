"""lamella.special: the operators named `special_*`, without the prefix."""

from lamella import _C

globals().update(_C._functions("special"))
