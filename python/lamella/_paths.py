"""Where the installed library keeps its headers, its CMake package and its tools."""

from __future__ import annotations

import os as _os

_here = _os.path.dirname(_os.path.abspath(__file__))


def _prefix() -> str:
    # In a wheel the package's own folder; in the installed tree three folders up.
    for folder in (_here, _os.path.join(_here, "..", "..", "..")):
        if _os.path.exists(_os.path.join(folder, "lib", "liblamella.so")):
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


def explain_import_error(error: ImportError) -> ImportError:
    """The error for `import lamella` when its extension module could not be imported: a sentence
    with both versions of Python if it was built for another one, else the loader's own error."""
    import sys
    from importlib.machinery import EXTENSION_SUFFIXES

    files = [
        name for name in sorted(_os.listdir(_here)) if name.startswith("_C.") and ".so" in name
    ]
    if any(name[2:] in EXTENSION_SUFFIXES for name in files):
        return error
    built = ", ".join(name[3:].partition(".so")[0] for name in files) or "none"
    running = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    return ImportError(
        f"lamella: expected the Python that this package was built for ({built}), got {running} "
        f"({sys.executable}); in Lamella's source folder `make build PYTHON={sys.executable}` or "
        f"`{sys.executable} -m pip install .` builds it for this one"
    )
