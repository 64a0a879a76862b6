"""Builds decay.cpp for Lamella, PyTorch and JAX, runs it in each, and compares the results."""

import ctypes
import pathlib
import subprocess
import sys

import jax
import numpy as np
import torch
import torch.utils.cpp_extension

import lamella
import lamella.hlo
import lamella.utils.cpp_extension

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
source = here / "decay.cpp"


def built(name, *flags):
    """The library of decay.cpp with these flags; rebuilt if the source is newer."""
    library = build / f"libdecay_{name}.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        build.mkdir(parents=True, exist_ok=True)
        command = ["c++", "-std=c++20", "-O2", "-fPIC", "-shared", source, "-o", library, *flags]
        subprocess.run(command, check=True)
    return str(library)


def paths(includes, libraries, names):
    flags = [f"-I{path}" for path in includes]
    for path in libraries:
        flags += [f"-L{path}", f"-Wl,-rpath,{path}"]
    return flags + [f"-l{name}" for name in names]


# As an operator of Lamella.
tools = lamella.utils.cpp_extension
flags = paths(tools.include_paths(), tools.library_paths(), ["lamella"])
lamella.ops.load_library(built("lamella", *flags))

# As an operator of PyTorch.
tools = torch.utils.cpp_extension
flags = paths(tools.include_paths(), tools.library_paths(), ["c10", "torch_cpu", "torch"])
torch.ops.load_library(built("torch", *flags))

# As a custom call of JAX.
call = ctypes.CDLL(built("jax", "-DONE_SOURCE_FOR_JAX", f"-I{jax.ffi.include_dir()}"))
jax.ffi.register_ffi_target("decay", jax.ffi.pycapsule(call.Decay), platform="cpu")


@jax.jit
def decay(x):
    kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.ffi.ffi_call("decay", kind)(x, rate=np.float64(0.25))


x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
results = {
    "lamella": lamella.ops.one_source.decay(lamella.from_numpy(x), 0.25).numpy(),
    "torch": torch.ops.one_source.decay(torch.from_numpy(x), 0.25).numpy(),
    "jax": np.asarray(decay(x)),
}
expected = np.empty_like(x)
mean = x[:, 0]
for t in range(x.shape[1]):
    mean = mean + np.float32(0.25) * (x[:, t] - mean)
    expected[:, t] = mean


def shown(y):
    return [round(float(value), 4) for value in y[0, :4]]


for name, y in results.items():
    print(f"{name:8}", shown(y), np.array_equal(y, results["lamella"]))
print("expected", shown(expected), np.allclose(expected, results["jax"]))
