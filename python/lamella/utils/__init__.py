"""lamella.utils: the folders of the headers, the CMake package and the library; backend names."""

from __future__ import annotations

import os as _os

from lamella.utils.backend_registration import (  # noqa: F401
    generate_methods_for_backend,
    generate_methods_for_privateuse1_backend,
    rename_backend,
    rename_privateuse1_backend,
)

_here = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))


def _prefix() -> str:
    # The prefix is the package's folder in a wheel, and three folders up in an installed tree.
    for folder in (_here, _os.path.join(_here, "..", "..", "..")):
        if _os.path.isdir(_os.path.join(folder, "include", "lamella")):
            return _os.path.abspath(folder)
    return _here


prefix = _prefix()
# For find_package(Lamella): -DCMAKE_PREFIX_PATH=...
cmake_prefix_path = prefix


def include_paths(compat: bool = True) -> list[str]:
    """The folders of the C++ headers; with `compat` also the headers with PyTorch's and XLA's
    names."""
    paths = [_os.path.join(prefix, "include")]
    if compat:
        paths.append(_os.path.join(prefix, "include", "lamella_compat"))
    return paths


def library_paths() -> list[str]:
    """The folder of liblamella.so."""
    return [_os.path.join(prefix, "lib")]
