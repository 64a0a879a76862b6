"""lamella.nested: the operators named `nested_*`, without the prefix."""

from lamella import _C

globals().update(_C._functions("nested"))
