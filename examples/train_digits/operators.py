"""Builds the example's own operator library against the installed Lamella, and loads it."""

import pathlib
import subprocess

import lamella

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
# In a checkout of Lamella its build folder; beside a copy of the example, `build`.
BUILD = HERE / "build"
if (CHECKOUT / "CMakePresets.json").exists():
    BUILD = CHECKOUT / "build" / "examples" / HERE.name


def run(command, log):
    with open(log, "ab") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{text[-4000:]}")


def build(folder=None, prefix=lamella.utils.cmake_prefix_path):
    """Builds the library and the C++ program if needed; returns their folder."""
    folder = pathlib.Path(folder or BUILD)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    log.write_bytes(b"")
    if not (folder / "CMakeCache.txt").exists():
        print("Building the example's own operator ...", flush=True)
        options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
        run(["cmake", "-S", HERE, "-B", folder, *options], log)
    run(["cmake", "--build", folder], log)
    return folder


def load(folder):
    """Loads the library in the folder, which defines lamella.ops.digits."""
    lamella.load_library(str(folder / "libdigits_ops.so"))
