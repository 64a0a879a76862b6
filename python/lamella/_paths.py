"""Where the installed library keeps its headers, its CMake package and its tools."""

from __future__ import annotations

import os as _os

_here = _os.path.dirname(_os.path.abspath(__file__))


def _prefix() -> str:
    # In a wheel the package's own folder; in the installed tree three folders up.
    for folder in (_here, _os.path.join(_here, "..", "..", "..")):
        if _os.path.isdir(_os.path.join(folder, "include", "lamella")):
            return _os.path.abspath(folder)
    return _here


prefix = _prefix()
# For find_package(Lamella): -DCMAKE_PREFIX_PATH=...
cmake_prefix_path = prefix


def include_paths(compat: bool = True) -> list[str]:
    """The folders of the C++ headers; with `compat`, those with PyTorch's and XLA's names too."""
    paths = [_os.path.join(prefix, "include")]
    if compat:
        paths.append(_os.path.join(prefix, "include", "lamella_compat"))
    return paths


def library_paths() -> list[str]:
    """The folder of liblamella.so."""
    return [_os.path.join(prefix, "lib")]
