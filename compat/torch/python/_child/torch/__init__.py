"""Stands for torch until the names are in place, which are then what was imported."""

import sys

del sys.modules[__name__]

from lamella.compat import install  # noqa: E402

install()
