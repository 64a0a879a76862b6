"""One file, one operator, four frameworks: python main.py FOLDER-OF-THE-LIBRARY"""

import importlib.util
import os
import sys

import lamella

path = os.path.join(sys.argv[1], "libone_binary.so")
numbers = [-1.0, 0.0, 2.0]


def show(name, value, gradient=None):
    text = f"{name}: {[round(float(v), 4) for v in value]}"
    if gradient is not None:
        text += f", gradient {[round(float(v), 4) for v in gradient]}"
    print(text)


lamella.ops.load_library(path)
x = lamella.tensor(numbers, requires_grad=True)
y = lamella.ops.one_binary.logcosh(x)
y.sum().backward()
show("Lamella", y, x.grad)

if importlib.util.find_spec("numpy"):
    import numpy

    logcosh = lamella.bridge.dlpack(path).one_binary.logcosh
    show("NumPy", logcosh(numpy.array(numbers)))

if importlib.util.find_spec("torch"):
    import torch

    lamella.bridge.torch(path)
    x = torch.tensor(numbers, requires_grad=True)
    y = torch.compile(torch.ops.one_binary.logcosh, fullgraph=True, backend="aot_eager")(x)
    y.sum().backward()
    show("PyTorch", y, x.grad)

if importlib.util.find_spec("jax"):
    import jax

    logcosh = lamella.bridge.jax(path).one_binary.logcosh
    x = jax.numpy.array(numbers)
    gradient = jax.jit(jax.vmap(jax.grad(logcosh)))(x)
    show("JAX", jax.jit(logcosh)(x), gradient)
