"""Unmodified packages of the package index: installed, or built from source.

Each has its own folder, which is kept. The functions return None if there is no index.
"""

import fcntl
import functools
import os
import re
import subprocess
import sys
import tarfile
import zipfile

from build_tree import BUILD, PREFIX, ROOT

# Packages that find a compiler for CUDA would build for it.
FOLDERS = os.environ["PATH"].split(os.pathsep)
ENVIRONMENT = dict(
    os.environ,
    PYTHONPATH=str(PREFIX / "lib" / "python"),
    PATH=os.pathsep.join(f for f in FOLDERS if not os.path.exists(os.path.join(f, "nvcc"))),
    CFLAGS="-O0",  # compiling takes longer than what the tests run
)


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True).returncode == 0


@functools.cache
def wheels():
    """The folder with the wheels of all packages that programs of tests/compat/packages name, which
    one call of pip fetches in less time than a call for each."""
    folder = BUILD / "compat_packages" / "wheels"
    if not folder.exists():
        texts = [path.read_text() for path in (ROOT / "tests/compat/packages").glob("*.py")]
        named = re.findall(r"^# packages: (.*)$", "\n".join(texts), re.MULTILINE)
        pip("download", "-q", "--no-deps", "-d", folder, *{n for l in named for n in l.split(", ")})
    return folder


def installed(requirement):
    """The folder of one package without its dependencies."""
    kept = BUILD / "compat_packages"
    folder = kept / requirement.replace("==", "-")
    kept.mkdir(exist_ok=True)
    with open(kept / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            name, _, version = requirement.partition("==")
            begin = f"{re.sub('[-_.]+', '_', name)}-{version}-".lower()
            wheel = [path for path in wheels().glob("*.whl") if path.name.lower().startswith(begin)]
            if wheel and not any(".data/" in name for name in zipfile.ZipFile(wheel[0]).namelist()):
                zipfile.ZipFile(wheel[0]).extractall(folder)
            elif not pip("install", "-q", "--no-deps", "--target", folder, requirement):
                return None
            (folder / ".complete").touch()
    return folder


def fetched(requirement, folder=BUILD / "packages"):
    """The unpacked source distribution of name==version, in `folder`."""
    name = requirement.replace("==", "-")
    if (folder / name).is_dir():
        return folder / name
    folder.mkdir(exist_ok=True)
    where = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", folder]
    archive = folder / f"{name}.tar.gz"
    if not pip("download", "-q", *where, requirement) or not archive.is_file():
        return None
    with tarfile.open(archive) as file:
        file.extractall(folder)
    return folder / name


def build(source, *python):
    """Builds the extensions of `source` in place; `python` are the arguments before setup.py's."""
    # Its build compares with the package's sources alone, and knows no change of our headers.
    headers = max(path.stat().st_mtime for path in (PREFIX / "include").rglob("*.h"))
    made = [path.stat().st_mtime for path in source.rglob("*.so")]
    again = ["--force"] if made and min(made) < headers and python else []
    done = subprocess.run(
        [sys.executable, *python, "setup.py", "-q", "build_ext", "--inplace", *again],
        cwd=source,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
