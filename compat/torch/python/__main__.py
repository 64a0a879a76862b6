"""``python -m lamella.compat script.py``: runs a script with PyTorch's module names installed.

Like Python, it accepts ``-c CODE`` and ``-m MODULE`` instead of a script. Python processes that the
script starts find the same names; build systems start such processes to find torch's folder.
"""

import os
import runpy
import sys

from lamella.compat import install

_usage = "usage: python -m lamella.compat SCRIPT | -c CODE | -m MODULE [ARGUMENT...]"
if sys.argv[1:2] in (["-h"], ["--help"]):
    print(f"{_usage}\n\n{__doc__}")
    sys.exit()
if len(sys.argv) < 2 or (sys.argv[1] in ("-c", "-m") and len(sys.argv) < 3):
    print(_usage, file=sys.stderr)
    sys.exit(2)
if sys.argv[1] not in ("-c", "-m") and not os.path.exists(sys.argv[1]):
    print(f"lamella.compat: {sys.argv[1]}: No such file or directory", file=sys.stderr)
    sys.exit(2)
install()
_here = os.path.dirname(os.path.abspath(__file__))
_first = [os.path.join(_here, "_child"), os.path.dirname(os.path.dirname(_here))]
_given = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join(_first + ([_given] if _given else []))
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
    # The script's folder comes first in sys.path, as in Python.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
