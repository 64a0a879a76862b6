"""Times of the programs of tests/compat/packages with PyTorch and Lamella, and the ratio of speeds.

Each runs several times in one process, so that imports and first calls count for neither; what is
printed is the smallest processor time of one thread, in ms:
    .venv/bin/python bench/published_programs.py [NAME...]
The packages are those that tests/compat/test_published.py installed.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "build" / "compat_packages"
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "LAMELLA_NUM_THREADS", "MKL_NUM_THREADS"), "1")
REPEAT = """
import contextlib, os, sys, time
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec")
times = []
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    exec(code, {"__name__": "__main__"})
    while len(times) < 2 or sum(times) < 3:
        begin = time.process_time()
        exec(code, {"__name__": "__main__"})
        times.append(time.process_time() - begin)
print(min(times) * 1e3)
"""


def milliseconds(program, *start):
    needs = re.findall(r"^# packages: (.*)$", program.read_text(), re.MULTILINE)
    folders = [FOLDER / need.replace("==", "-") for need in ", ".join(needs).split(", ")]
    missing = [folder.name for folder in folders if not folder.exists()]
    if missing:
        raise SystemExit(
            f"{program.name}: run tests/compat/test_published.py first for {missing[0]}"
        )
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, *start, "-c", REPEAT, program]
    run = subprocess.run(
        command, env=os.environ | ALONE | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    if run.returncode:
        raise SystemExit(f"{program.name} with {start or 'torch'}: {run.stderr[-400:]}")
    return float(run.stdout.split()[-1])


print("program\tPyTorch\tLamella\tratio")
for program in sorted((ROOT / "tests" / "compat" / "packages").glob("use_*.py")):
    name = program.stem[4:]
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    theirs, ours = milliseconds(program), milliseconds(program, "-m", "lamella.compat")
    print(f"{name}\t{theirs:.1f}\t{ours:.1f}\t{theirs / ours:.2f}", flush=True)
