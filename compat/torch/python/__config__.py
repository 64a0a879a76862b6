"""torch.__config__."""

from __future__ import annotations

import lamella


def show() -> str:
    """The build configuration, as one line."""
    return f"Lamella {lamella.__version__}"


def parallel_info() -> str:
    """The number of threads. Build scripts search the text for the name of a threading backend."""
    threads = lamella.get_num_threads()
    return f"at::get_num_threads() : {threads}\nATen parallel backend: native thread pool\n"
