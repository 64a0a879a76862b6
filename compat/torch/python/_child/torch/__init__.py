"""Imported as torch in a child process: installs the names, and with them the real module torch."""

import sys

del sys.modules[__name__]

from lamella.compat import install  # noqa: E402

install()
