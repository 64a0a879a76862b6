"""Calls the library's operators from Python. Run with the build folder on PYTHONPATH."""

import geometry

import lamella

a = lamella.zeros(2, 2)
b = lamella.tensor([[3.0, 4.0], [6.0, 8.0]])

print("distance:", geometry.distance(a, b, scale=2.0).tolist())
print("as a method:", b.distance(a).tolist())
print("normalize:", geometry.normalize(b).tolist())
print("midpoint:", geometry.midpoint(a, b).tolist())

out = lamella.empty(0)
geometry.distance(a, b, out=out)
print("out:", out.tolist())

# Kernels for Meta compute shapes only.
print(
    "shape:",
    geometry.distance(lamella.empty(5, 3, device="meta"), lamella.empty(5, 3, device="meta")).shape,
)

try:
    geometry.distance(a, lamella.zeros(3, 2))
except RuntimeError as error:
    print("error:", error)
