"""Runs a program that JAX wrote (program.hlo, by export.py) with the library's code in it."""

import pathlib
import sys

import lamella
import lamella.hlo

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
lamella.load_library(str(build / "libsmoothing.so"))

program = lamella.hlo.compile((here / "program.hlo").read_text(encoding="utf-8"))
x = lamella.tensor([0.0, 6.0, 0.0, 0.0, 3.0, 3.0, 3.0, 0.0])
gain = lamella.tensor(0.5)
clipped, smooth = program(x, gain)
print("smooth ", [round(value, 4) for value in smooth.tolist()])
print("clipped", [round(value, 4) for value in clipped.tolist()])

# The same with operators alone.
ends = lamella.cat([x[:1], x, x[-1:]])
mean = (ends[:-2] + ends[1:-1] + ends[2:]) / 3
wave = lamella.sin(lamella.arange(8.0))
expected = lamella.ops.smoothing.soft_clip(mean * gain + wave, limit=2.0)
print("agrees ", bool(((clipped - expected).abs() < 1e-6).all()))

# A module is an operator as well.
step = lamella.hlo.as_operator(program.module, "smoothing::step")
print(step._schema)
print("again  ", bool((step(x, gain)[0] == clipped).all()))
