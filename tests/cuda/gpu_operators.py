"""A sample of operators on "cuda" against the CPU, for tools/gpu_check.sh: dtypes and gradients.

Prints a line for each that differs, and a count at the end. --few: a small part, for sanitizers.
"""

from __future__ import annotations

import sys

import lamella
import lamella.nn.functional as F

DTYPES = [lamella.float32, lamella.bfloat16, lamella.complex64, lamella.int64]
UNARY = (
    "neg abs sign floor ceil trunc round frac relu sqrt rsqrt reciprocal exp log sin cos tanh "
    "sigmoid isnan isinf isfinite logical_not square erf cumsum0 sum mean amax argmax sort softmax "
    "transpose clone double float half long bool"
).split()
BINARY = (
    "add sub mul div maximum minimum eq ne lt le gt ge logical_and logical_or atan2 pow matmul "
    "where lerp copysign fmod remainder bitwise_and"
).split()

# Their sums have another order on the device.
REORDERED = ("matmul", "sum", "mean", "softmax", "cumsum0", "gradient")


def unary(name: str, x: lamella.Tensor) -> lamella.Tensor:
    if name == "cumsum0":
        return x.cumsum(0)
    if name == "sort":
        return x.sort(-1).values
    if name == "softmax":
        return x.softmax(-1)
    if name == "transpose":
        return x.transpose(0, 1).contiguous()
    return getattr(x, name)()


def binary(name: str, x: lamella.Tensor, y: lamella.Tensor) -> lamella.Tensor:
    if name == "matmul":
        return x @ y.transpose(-1, -2)
    if name == "where":
        return lamella.where(x.bool(), x, y)
    return x.lerp(y, 0.3) if name == "lerp" else getattr(lamella, name)(x, y)


def values(dtype: lamella.dtype) -> lamella.Tensor:
    if dtype == lamella.int64:
        return lamella.randint(-50, 50, (6, 40))
    if dtype.is_complex:
        return lamella.randn(6, 40, dtype=dtype)
    return (lamella.randn(6, 40) * 3).to(dtype)


def same(name: str, a: lamella.Tensor, b: lamella.Tensor) -> bool:
    b = b.cpu()
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = lamella.view_as_real(a), lamella.view_as_real(b)
    words = name.split()
    if a.is_floating_point() and any(one in words for one in REORDERED):
        return bool(lamella.allclose(a, b, rtol=2e-2 if a.itemsize == 2 else 1e-4, atol=1e-3))
    return bool(((a == b) | ((a != a) & (b != b))).all())


def checks(few: bool):
    lamella.manual_seed(0)
    for dtype in DTYPES[: 1 if few else None]:
        x, y = values(dtype), values(dtype)
        layouts = [(x, y), (x.t(), y.t()), (x[:, ::2], y[:1, ::2])]
        for i, (a, b) in enumerate(layouts):
            for name in UNARY[: 8 if few else None]:
                yield f"{name} {dtype} {i}", lambda u, v, n=name: unary(n, u), (a, b)
            for name in BINARY[: 8 if few else None]:
                yield f"{name} {dtype} {i}", lambda u, v, n=name: binary(n, u, v), (a, b)

    def gradient(function):
        def run(u, v):
            u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
            return lamella.cat(
                [g.flatten() for g in lamella.autograd.grad(function(u, v).sum(), (u, v))]
            )

        return run

    x, y = values(lamella.float32), values(lamella.float32)
    for name in ("add", "mul", "div", "maximum", "where", "lerp", "atan2", "matmul"):
        yield f"gradient of {name}", gradient(lambda u, v, n=name: binary(n, u, v)), (x, y)
    for function in (F.relu, F.gelu, F.hardswish, F.leaky_relu):
        yield (
            f"gradient of {function.__name__}",
            gradient(lambda u, v, f=function: f(u) * v),
            (x, y),
        )


def main() -> int:
    count, wrong = 0, 0
    for name, function, inputs in checks("--few" in sys.argv):
        try:
            expected = function(*inputs)
        except (RuntimeError, TypeError):
            continue  # the CPU has no such operator for the dtype
        count += 1
        try:
            got = function(*(x.cuda() for x in inputs))
            if same(name, expected, got):
                continue
            print(f"{name}: the results differ")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
        wrong += 1
    ran = sum(lamella.cuda.fallbacks().values())
    print(f"{count} cases, {wrong} differ; {ran} calls ran on the CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
