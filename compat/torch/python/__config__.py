"""torch.__config__."""

from __future__ import annotations

import lamella


def show() -> str:
    """How the library was built, as one line."""
    return f"Lamella {lamella.__version__}"


def parallel_info() -> str:
    """The threads of kernels: a pool of Lamella's own, for which build systems know a name."""
    threads = lamella.get_num_threads()
    return f"at::get_num_threads() : {threads}\nATen parallel backend: native thread pool\n"
