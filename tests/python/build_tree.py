"""The files of the build, and external projects that find the installed tree as users' projects do.

LAMELLA_BUILD names the build folder (default: build/).
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LAMELLA_BUILD", ROOT / "build")).resolve()
PREFIX = BUILD / "prefix"
GENERATOR = PREFIX / "bin" / "lamella-gen"
CMAKE = "/usr/bin/cmake" if os.path.exists("/usr/bin/cmake") else shutil.which("cmake")


def run(*command, **options):
    """The output of the command, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(source, folder, *options):
    """Compiles changes since `folder` was last built; returns `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    # Tests run in several processes, of which one at a time may build in a folder.
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(CMAKE, "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", *options)
        run(CMAKE, "--build", folder)
    return folder


def build_example(name):
    return build(ROOT / "examples" / name, BUILD / "examples" / name)


def check_needs_only_the_c_abi(*libraries):
    lamella = PREFIX / "lib" / "liblamella.so"
    run(sys.executable, ROOT / "tools" / "check_exports.py", lamella, *libraries)
