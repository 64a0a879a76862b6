"""Paths of the installed library, and names of backends' devices."""

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
