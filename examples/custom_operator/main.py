"""Calls the operator from Python: load the library, then it is under lamella.ops."""

import pathlib
import sys

import lamella

build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
lamella.load_library(str(build / "libmidpoint.so"))

a = lamella.tensor([0.0, 4.0])
b = lamella.tensor([10.0, 8.0])
print(lamella.ops.custom_operator.midpoint(a, b))
print(lamella.ops.custom_operator.midpoint(a, b, at=0.25).tolist())
