"""An operator through lamella.bridge and written for PyTorch or JAX, in turn; least of bursts.

Usage: bridge.py FOLDER. Builds the peers and examples/one_binary there.
Prints one JSON object a line.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
import timeit
from pathlib import Path
from typing import Any

import jax
import torch

import lamella
from lamella.utils import cpp_extension

HERE = Path(__file__).resolve().parent
Statements = dict[str, tuple[str, dict[str, Any]]]


def interleaved(statements: Statements, number: int = 100, bursts: int = 1000) -> None:
    """Each statement in turn, so that what else runs on the machine meets all of them."""
    timers = {row: timeit.Timer(text, globals=names) for row, (text, names) in statements.items()}
    least = dict.fromkeys(timers, float("inf"))
    for timer in timers.values():
        timer.timeit(max(number // 10, 1))
    for _ in range(bursts):
        for row, timer in timers.items():
            least[row] = min(least[row], timer.timeit(number) / number * 1e9)
    for row, ns in least.items():
        print(json.dumps({"row": row, "ns": round(ns, 1)}), flush=True)


def built(folder: Path) -> tuple[str, str]:
    """The example, and the peer for PyTorch, whose operators are registered."""
    source = HERE.parent / "examples" / "one_binary" / "logcosh.cpp"
    started = time.perf_counter()
    library = cpp_extension.load(
        "one_binary", str(source), build_directory=str(folder / "ours"), is_python_module=False
    )
    print(json.dumps({"row": "compile", "ns": (time.perf_counter() - started) * 1e9}), flush=True)
    base = Path(torch.__file__).parent
    for name in ("bridge_torch", "bridge_stable"):
        peer = str(folder / f"{name}.so")
        command = ["g++", "-std=c++20", "-O2", "-fPIC", "-shared"]
        command += [f"-I{base}/include", f"-I{base}/include/torch/csrc/api/include", "-o", peer]
        command += [str(HERE / f"{name}.cpp"), f"-L{base}/lib", "-ltorch_cpu", "-lc10"]
        subprocess.run(command, check=True)
        torch.ops.load_library(peer)
    torch.library.register_autograd(
        "bridge_stable::differentiable",
        lambda ctx, grad: grad * ctx.saved_tensors[0].tanh(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    handler = folder / "bridge_xla.so"
    command = ["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-w", str(HERE / "bridge_xla.cpp")]
    subprocess.run([*command, f"-I{jax.ffi.include_dir()}", "-o", str(handler)], check=True)
    return str(library), str(handler)


def tvm_peer(folder: Path, x: torch.Tensor) -> Statements:
    """The operator as a function of tvm-ffi that returns a new tensor, where tvm-ffi is."""
    try:
        import tvm_ffi
    except ImportError:
        return {}
    source = str(HERE / "bridge_tvm.cpp")
    found = tvm_ffi.cpp.build(
        name="bridge_tvm", cpp_files=source, build_directory=str(folder / "tvm"),
        extra_cflags=["-O2"],
    )  # fmt: skip
    return {"direct, tvm-ffi": ("f(x)", {"f": tvm_ffi.load_module(found).logcosh, "x": x})}


def main() -> None:
    torch.set_num_threads(1)
    library, handler = built(Path(sys.argv[1]))
    ours = lamella.bridge.torch(library).one_binary.logcosh.default
    peer = torch.ops.bridge_peer
    x, leaf, grad = torch.ones(8), torch.ones(8, requires_grad=True), torch.ones(8)
    array = lamella.bridge.dlpack(library).one_binary.logcosh
    interleaved(
        {
            "torch": ("f(x)", {"f": ours, "x": x}),
            "torch, headers": ("f(x)", {"f": peer.plain.default, "x": x}),
            "torch, stable": ("f(x)", {"f": torch.ops.bridge_stable.plain.default, "x": x}),
            "torch, forward": ("f(x)", {"f": ours, "x": leaf}),
            "torch, forward, headers": ("f(x)", {"f": peer.differentiable.default, "x": leaf}),
            "direct": ("f(x)", {"f": array, "x": x}),
            **tvm_peer(Path(sys.argv[1]), x),
        }
    )
    scalar = cpp_extension.load(
        "bridge_scalar", str(HERE / "bridge_scalar.cpp"),
        build_directory=str(Path(sys.argv[1]) / "scalar"), is_python_module=False,
    )  # fmt: skip
    scaled = lamella.bridge.torch(str(scalar)).bridge_scalar.scaled.default
    interleaved({"torch, Scalar": ("f(x, 2.0)", {"f": scaled, "x": x})})
    both = "g(f(x), x, grad)"
    names = {"g": torch.autograd.grad, "x": leaf, "grad": grad}
    interleaved(
        {
            "torch, both": (both, {**names, "f": ours}),
            "torch, both, headers": (both, {**names, "f": peer.differentiable.default}),
            "torch, both, register_autograd": (
                both,
                {**names, "f": torch.ops.bridge_stable.differentiable.default},
            ),
        },
        number=25,
    )
    with torch.inference_mode():
        x = torch.ones(8)
        interleaved(
            {
                "torch, inference": ("f(x)", {"f": ours, "x": x}),
                "torch, inference, headers": ("f(x)", {"f": peer.plain.default, "x": x}),
            }
        )
    symbol = ctypes.CDLL(handler).BridgePeer
    jax.ffi.register_ffi_target("bridge_peer", jax.ffi.pycapsule(symbol), platform="cpu")
    functions = {
        "jax": lamella.bridge.jax(library).one_binary.logcosh,
        "jax, handler": lambda x: jax.ffi.ffi_call(
            "bridge_peer", jax.ShapeDtypeStruct(x.shape, x.dtype)
        )(x),
    }
    small, large = jax.numpy.ones(8), jax.numpy.ones(1_000_000)
    chains: Statements = {}
    for row, f in functions.items():
        for n in (1, 101):

            def chain(x: Any, f: Any = f, n: int = n) -> Any:
                for _ in range(n):
                    x = f(x)
                return x

            names = {"f": jax.jit(chain), "x": small}
            chains[f"{row}, {n} calls"] = ("f(x).block_until_ready()", names)
    interleaved(chains, number=10, bursts=1000)
    text = "f(x).block_until_ready()"
    interleaved(
        {f"{row}, 10^6": (text, {"f": jax.jit(f), "x": large}) for row, f in functions.items()},
        number=1,
        bursts=60,
    )


if __name__ == "__main__":
    main()
