"""The cost of one call of a foreign function in a jitted JAX program, in nanoseconds.

Usage: graph.py FOLDER
Prints one JSON object a line, {"row": name, "ns": number}. The handler is compiled in FOLDER with
the headers of jaxlib, and does the same as the target of bench/graph.cpp.
"""

import ctypes
import os
import statistics
import subprocess
import sys
import timeit
from pathlib import Path

from training import report

SOURCE = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Increment(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  y->typed_data()[0] = x.typed_data()[0] + 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(BenchIncrement, Increment,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


def build(folder: Path, include: str) -> Path:
    source, library = folder / "increment.cpp", folder / "libincrement.so"
    source.write_text(SOURCE)
    subprocess.run(
        [os.environ.get("CXX", "g++"), "-std=c++17", "-O2", "-fPIC", "-shared", "-w",
         f"-I{include}", str(source), "-o", str(library)],
        check=True,
    )  # fmt: skip
    return library


def main() -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import numpy as np

    library = ctypes.CDLL(str(build(Path(sys.argv[1]), jax.ffi.include_dir())))
    jax.ffi.register_ffi_target(
        "bench_increment", jax.ffi.pycapsule(library.BenchIncrement), platform="cpu"
    )
    shape = jax.ShapeDtypeStruct((1,), np.float32)
    call = jax.ffi.ffi_call("bench_increment", shape)
    x = jax.numpy.zeros(1, np.float32)

    def program_ns(calls: int) -> float:
        def chain(v):
            for _ in range(calls):
                v = call(v)
            return v

        jitted = jax.jit(chain)
        assert float(jitted(x)[0]) == calls
        timer = timeit.Timer(lambda: jitted(x).block_until_ready())
        return statistics.median(timer.timeit(10) / 10 * 1e9 for _ in range(21))

    few, many = 100, 600
    report("jax.ffi call", (program_ns(many) - program_ns(few)) / (many - few))


if __name__ == "__main__":
    main()
