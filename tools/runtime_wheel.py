#!/usr/bin/env python3
"""Packs lamella-runtime: lamella.bridge with liblamella.so, one wheel for every version of Python.

Usage: runtime_wheel.py PREFIX FOLDER: of an installed tree, into a folder; prints the wheel's path.

Note [The runtime beside Lamella]
  The package lies in site-packages/lamella_runtime/lamella, and a .pth file puts that folder at the
  end of the path. So `import lamella` finds all of Lamella where it is installed, else the runtime,
  and neither writes a file of the other.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("liblamella.so.1", "liblamella_bridge.so", "liblamella_more.so")
# Features of libraries that an older glibc does not load, and the version that does.
FEATURES = {"GLIBC_ABI_DT_RELR": 36}


def version() -> str:
    found = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert found is not None
    return found[1]


def glibc_minor(libraries: list[pathlib.Path]) -> int:
    """The newest version 2.x of glibc that one of the libraries needs."""
    text = "".join(
        subprocess.check_output(["objdump", "-p", path], text=True) for path in libraries
    )
    needed = [int(n) for n in re.findall(r"GLIBC_2\.(\d+)", text)]
    return max(needed + [minor for name, minor in FEATURES.items() if name in text])


def wheel(prefix: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    libraries = [prefix / "lib" / name for name in LIBRARIES]
    package = prefix / "lib" / "python" / "lamella"
    tag = f"py3-none-manylinux_2_{glibc_minor(libraries)}_{platform.machine()}"
    name = f"lamella_runtime-{version()}"
    inside = "lamella_runtime/lamella"
    text = (ROOT / "python" / "runtime" / "__init__.py").read_text()
    files = {
        "lamella_runtime.pth": b"lamella_runtime\n",
        f"{inside}/__init__.py": text.replace("@VERSION@", version()).encode(),
        f"{inside}/_paths.py": (package / "_paths.py").read_bytes(),
        f"{inside}/py.typed": b"",
        **{
            f"{inside}/bridge/{path.name}": path.read_bytes()
            for path in sorted((package / "bridge").glob("*.py"))
        },
        **{f"{inside}/lib/{path.name}": path.read_bytes() for path in libraries},
        f"{name}.dist-info/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{name}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: lamella-runtime\nVersion: {version()}\n"
            "Summary: Libraries of Lamella's operators in PyTorch, JAX and NumPy\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\n"
        ).encode(),
        f"{name}.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: lamella\nRoot-Is-Purelib: false\n" f"Tag: {tag}\n"
        ).encode(),
    }
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{name}.dist-info/RECORD"] = (record + f"{name}.dist-info/RECORD,,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{tag}.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path, data in files.items():
            out.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return made


if __name__ == "__main__":
    print(wheel(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
