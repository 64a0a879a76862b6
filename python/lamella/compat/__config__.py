"""torch.__config__."""

from __future__ import annotations

import lamella


def show() -> str:
    """How the library was built, as one line."""
    return f"Lamella {lamella.__version__}"


def parallel_info() -> str:
    """The threads of kernels. Lamella has a pool of its own, so packages build without OpenMP."""
    threads = lamella.get_num_threads()
    return f"at::get_num_threads() : {threads}\nATen parallel backend: Lamella's own pool\n"
