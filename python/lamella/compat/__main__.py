"""``python -m lamella.compat script.py``: runs a script with PyTorch's module names in place.

As Python does, it takes ``-c CODE`` and ``-m MODULE`` in the script's place.
"""

import os
import runpy
import sys

from lamella.compat import install

if len(sys.argv) < 2 or (sys.argv[1] in ("-c", "-m") and len(sys.argv) < 3):
    sys.exit("usage: python -m lamella.compat SCRIPT | -c CODE | -m MODULE [ARGUMENT...]")
install()
kind = sys.argv[1]
if kind == "-c":
    code = sys.argv[2]
    sys.argv[:3] = ["-c"]
    main = sys.modules["__main__"].__dict__
    main.update(__file__=None, __doc__=None, __spec__=None)
    exec(compile(code, "<string>", "exec"), main)
elif kind == "-m":
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    del sys.argv[0]
    # Modules beside the script are found, as Python finds them.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
