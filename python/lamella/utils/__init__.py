"""Paths of the installed library, names of backends' devices, and modules loaded at first use."""

from __future__ import annotations

from lamella._paths import cmake_prefix_path as cmake_prefix_path
from lamella._paths import include_paths as include_paths
from lamella._paths import library_paths as library_paths
from lamella._paths import prefix as prefix
from lamella.utils.backend_registration import (  # noqa: F401
    generate_methods_for_backend,
    generate_methods_for_privateuse1_backend,
    rename_backend,
    rename_privateuse1_backend,
)

_MODULES = ("checkpoint", "cpp_extension", "hooks")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def __getattr__(name: str) -> object:
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"lamella.utils.{name}")
    from lamella._missing import missing

    raise missing(__name__, name)
