"""What the checks of devices "cuda" share. They run on the stand-in for CUDA's driver, in processes
of their own (test_on_standin.py), since a process has one driver."""

from __future__ import annotations

import ctypes
import os

import pytest


@pytest.fixture(scope="session")
def standin():
    """The stand-in's own functions."""
    library = ctypes.CDLL(os.environ["LAMELLA_CUDA_DRIVER"])
    for name in ("standin_calls", "standin_blocks", "standin_host_blocks"):
        getattr(library, name).restype = ctypes.c_int64
    library.calls = lambda function="": library.standin_calls(function.encode())
    return library


@pytest.fixture
def cuda(standin):
    """lamella.cuda, with an empty cache and fresh counts."""
    import lamella

    lamella.cuda.synchronize()
    lamella.cuda.empty_cache()
    lamella.cuda.reset_peak_memory_stats()
    lamella.cuda.reset_accumulated_memory_stats()
    lamella.cuda.reset_fallbacks()
    standin.standin_reset_calls()
    return lamella.cuda
