"""``python -m lamella.compat script.py``: runs a script with PyTorch's module names in place."""

import runpy
import sys

from lamella.compat import install

if len(sys.argv) < 2:
    sys.exit("usage: python -m lamella.compat SCRIPT [ARGUMENT...]")
install()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
