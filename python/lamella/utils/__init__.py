"""Paths of the installed library, and names of backends' devices."""

from __future__ import annotations

from lamella._paths import (  # noqa: F401
    cmake_prefix_path,
    include_paths,
    library_paths,
    prefix,
)
from lamella.utils.backend_registration import (  # noqa: F401
    generate_methods_for_backend,
    generate_methods_for_privateuse1_backend,
    rename_backend,
    rename_privateuse1_backend,
)
