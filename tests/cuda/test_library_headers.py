"""What the product declares of CUDA's libraries against NVIDIA's headers, where those are: in the
folders of LAMELLA_CUDA_HEADERS, or in NVIDIA's Python packages."""

import os
import pathlib
import shutil
import subprocess
import sysconfig

import pytest

HERE = pathlib.Path(__file__).parent
NEEDED = ("cublasLt.h", "cudnn.h", "cufftXt.h", "cusolverDn.h", "cuda_runtime_api.h")


def folders():
    """Folders that together have the headers; None: a header is missing."""
    found = [f for f in os.environ.get("LAMELLA_CUDA_HEADERS", "").split(":") if f]
    packages = pathlib.Path(sysconfig.get_path("purelib"))
    found += [str(folder) for folder in sorted(packages.glob("nvidia/*/include"))]
    found += ["/usr/local/cuda/include"]
    there = all(any(os.path.exists(f"{f}/{name}") for f in found) for name in NEEDED)
    return found if there else None


@pytest.mark.skipif(folders() is None, reason="NVIDIA's headers of the libraries are not installed")
def test_declarations():
    compiler = shutil.which("c++")
    assert compiler
    options = [
        "-std=c++20",
        "-fsyntax-only",
        "-Wno-deprecated-declarations",
        f"-I{HERE.parents[1]}",
    ]
    options += [f"-isystem{folder}" for folder in folders()]
    done = subprocess.run(
        [compiler, *options, str(HERE / "library_headers.cpp")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
