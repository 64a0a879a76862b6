"""lamella info: what is installed, what was found beside it, and how this machine runs it."""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import sys
from typing import Any

from lamella._cli._common import write_json

# The libraries that are loaded at first use, and what each is for.
_LIBRARIES = {
    "liblamella_more.so": "families of operators that few programs call",
    "liblamella_blas.so": "convolutions, complex products, decompositions",
    "liblamella_graph.so": "HLO programs, lamella.compile",
    "liblamella_compiler.so": "machine code for programs",
    "liblamella_lapack.so": "linear algebra of JAX's programs",
    "liblamella_bridge.so": "operators in PyTorch and JAX",
    "liblamella_mpi.so": "jobs of many processes",
    "liblamella_nccl.so": "collectives of CUDA tensors",
    "liblamella_cuda.so": 'the devices "cuda"',
}


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "info",
        help="show versions, the libraries that were found, and this machine's capabilities",
        description="Prints what a report of a problem needs. The exit status is 0.",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import lamella
    from lamella import _C, utils

    folder = utils.library_paths()[0]
    facts: dict[str, Any] = {
        "lamella": lamella.__version__,
        "python": f"{sys.version.split()[0]} ({sys.executable})",
        "package": os.path.dirname(lamella.__file__),
        "cmake prefix": utils.cmake_prefix_path,
        "processor": f"{_C._cpu_capability()} kernels, {lamella.get_num_threads()} threads",
        "operators": len({name for name, _ in _C._operator_names()}),
        "libraries": {name: _state(os.path.join(folder, name)) for name in _LIBRARIES},
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("LAMELLA_")},
    }
    if options.json:
        write_json(facts)
        return 0
    for key, fact in facts.items():
        if not isinstance(fact, dict):
            print(f"{key:13} {fact}")
    for name, state in facts["libraries"].items():
        print(f"  {name:23} {state:8} {_LIBRARIES[name]}")
    for name, value in facts["environment"].items():
        print(f"  {name}={value}")
    return 0


def _state(path: str) -> str:
    """Whether a library can be loaded: "found", "absent", or the loader's error."""
    # In a wheel the plain name of a library with versions is a text for linkers.
    versions = sorted(glob.glob(f"{glob.escape(path)}.*"))
    if not versions and not os.path.exists(path):
        return "absent"
    try:
        ctypes.CDLL(versions[0] if versions else path)
    except OSError as error:
        return f"broken ({error})"
    return "found"
