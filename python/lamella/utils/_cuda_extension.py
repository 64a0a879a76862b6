"""The part of cpp_extension that is about CUDA: nvcc, its flags, and what extensions link.

Extensions link the static runtime, whose context of a device is Lamella's as well; Note [Extensions
and CUDA's runtime] in lamella/core/cuda_extension.h.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence

from lamella.utils import library_paths

# Operators of CUDA's types of 16 bits would match those of Lamella's types as well.
_NVCC_FLAGS = [
    "-std=c++20",
    "--expt-relaxed-constexpr",
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-Xcompiler",
    "-fPIC",
]
# Names that TORCH_CUDA_ARCH_LIST may have in the place of numbers.
_NAMED = {
    "turing": "7.5+PTX",
    "ampere": "8.0;8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell+tegra": "11.0",
    "blackwell": "10.0;10.3;12.0;12.1+PTX",
}
# Without a list and without a card: the architectures that Lamella's own kernels have.
_DEFAULT_ARCHITECTURES = "8.0;9.0+PTX"


def find_home() -> str | None:
    """The folder of the CUDA toolkit: CUDA_HOME or CUDA_PATH, that of nvcc, or /usr/local/cuda."""
    given = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if given:
        return given
    nvcc = shutil.which("nvcc")
    found = [os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []
    for folder in [*found, "/usr/local/cuda"]:
        if os.path.exists(os.path.join(folder, "include", "cuda_runtime.h")):
            return folder
    return None


def home(what: str) -> str:
    """The folder of the CUDA toolkit; RuntimeError, which begins with `what`, without one."""
    folder = find_home()
    if folder is None:
        raise RuntimeError(
            f"{what}: expected the CUDA toolkit, found none; CUDA_HOME names its folder"
        )
    return folder


def include_paths(what: str) -> list[str]:
    """The folders of CUDA's headers."""
    folder = home(what)
    # CUDA 13 has Thrust, CUB and libcu++ in a folder of their own, which nvcc alone adds by itself.
    found = [os.path.join(folder, "include"), os.path.join(folder, "include", "cccl")]
    return [path for path in found if os.path.isdir(path)]


def link_flags(what: str) -> list[str]:
    """The flags that link the static runtime and Lamella's devices."""
    folder = library_paths()[0]
    library = "liblamella_cuda.so"
    if not os.path.exists(os.path.join(folder, library)):
        raise RuntimeError(f"{what}: expected {library} in {folder}: this build has no CUDA")
    libraries = [os.path.join(home(what), part) for part in ("lib64", "lib")]
    return [
        *(f"-L{path}" for path in libraries if os.path.isdir(path)),
        f"-l:{library}",
        "-lcudart_static",
        "-ldl",
        "-lrt",
        "-lpthread",
    ]


def nvcc(what: str) -> str:
    """The compiler: PYTORCH_NVCC, or the toolkit's."""
    return os.environ.get("PYTORCH_NVCC") or os.path.join(home(what), "bin", "nvcc")


def nvcc_flags(what: str, given: Sequence[str]) -> list[str]:
    """The flags for .cu sources: the headers' own, the architectures, and those given."""
    given = [flag for flag in given if not re.match(r"-?-std=", flag)]
    host = os.environ.get("CC")
    ccbin = ["-ccbin", shlex.split(host)[-1]] if host and "-ccbin" not in given else []
    return [*_NVCC_FLAGS, *architecture_flags(what, given), *ccbin, *given]


def architecture_flags(what: str, given: Sequence[str] = ()) -> list[str]:
    """The -gencode flags of TORCH_CUDA_ARCH_LIST, or of the cards that are there; none if the given
    flags name an architecture."""
    if any("arch" in flag for flag in given):
        return []
    names = os.environ.get("TORCH_CUDA_ARCH_LIST") or _architectures_of_cards()
    for name, numbers in _NAMED.items():
        names = re.sub(re.escape(name), numbers, names, flags=re.IGNORECASE)
    flags: list[str] = []
    for name in re.split(r"[; ,]+", names.strip("; ,")):
        match = re.fullmatch(r"(\d+)\.(\d[af]?)(\+PTX)?", name)
        if match is None:
            raise ValueError(
                f"{what}: expected TORCH_CUDA_ARCH_LIST to have architectures such as 8.0 or"
                f" 9.0+PTX, got {name!r}"
            )
        number = match[1] + match[2]
        wanted = [f"-gencode=arch=compute_{number},code=sm_{number}"]
        if match[3]:
            wanted.append(f"-gencode=arch=compute_{number},code=compute_{number}")
        flags += [flag for flag in wanted if flag not in flags]
    return flags


def _architectures_of_cards() -> str:
    import lamella

    if not lamella.cuda.is_available():
        return _DEFAULT_ARCHITECTURES
    cards = {
        lamella.cuda.get_device_capability(index) for index in range(lamella.cuda.device_count())
    }
    return ";".join(f"{major}.{minor}" for major, minor in sorted(cards)) + "+PTX"
