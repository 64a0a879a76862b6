"""What CUDA's libraries and the kernels beside them compute on "cuda", against the CPU, and the
rate of products beside PyTorch's, for tools/gpu_check.sh.

Prints the libraries, a line for each case that differs, the rates, and a count at the end.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import lamella
import lamella.nn.functional as F

FLOATS = [lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16]
EXACT = [lamella.float32, lamella.float64, lamella.complex64, lamella.complex128]


def made(*sizes, dtype=lamella.float32):
    return lamella.randn(sizes, dtype=lamella.complex128 if dtype.is_complex else None).to(dtype)


def gradients(function):
    """The result and the gradients of all arguments."""

    def run(*inputs):
        leaves = [x.clone().requires_grad_() for x in inputs]
        result = function(*leaves)
        return (result, *lamella.autograd.grad(result, leaves, result.detach()))

    return run


def products():
    for dtype in [*FLOATS, *EXACT[2:], lamella.int64]:
        whole = dtype == lamella.int64
        new = lamella.randint if whole else made
        a, b, c, d = (
            (new(-9, 9, s, dtype=dtype) if whole else new(*s, dtype=dtype))
            for s in [(33, 70), (70, 49), (49,), (33, 49)]
        )
        yield f"mm {dtype}", lambda a, b: a @ b, (a, b)
        yield f"mm of transposes {dtype}", lambda a, b: a.t() @ b.t(), (b, a)
        yield f"mm of odd rows {dtype}", lambda a, b: a[1:, 1:] @ b[1:, 1:], (a, b)
        yield f"mm with gaps {dtype}", lambda a, b: a[::2, ::2] @ b[::2, ::2], (a, b)
        yield f"addmm of a row {dtype}", lamella.addmm, (c, a, b)
        scaled = lambda d, a, b: lamella.addmm(d, a, b, beta=2, alpha=3)  # noqa: E731
        yield f"addmm scaled {dtype}", scaled, (d, a, b)
        stacks = [t.expand(3, *t.shape).contiguous() for t in (a, b)]
        yield f"bmm {dtype}", lamella.bmm, tuple(stacks)
        yield f"bmm of one matrix {dtype}", lambda a, b: a[0] @ b, tuple(stacks)
        yield f"mv {dtype}", lambda a, b: a @ b[:, 0], (a, b)
        yield f"dot {dtype}", lambda a, b: a[0].dot(b[:, 1]), (a, b)
        if not whole:
            yield f"linear {dtype}", gradients(F.linear), (a, made(49, 70, dtype=dtype), c)
            relu = lambda c, a, b: lamella._addmm_activation(c, a, b)  # noqa: E731
            yield f"relu of addmm {dtype}", relu, (c, a, b) if not dtype.is_complex else ()
    for rows in (3, 32):
        x = lamella.randint(-128, 128, (rows, 64), dtype=lamella.int8)
        y = lamella.randint(-128, 128, (48, 64), dtype=lamella.int8)
        yield f"_int_mm {rows}", lambda x, y: lamella._int_mm(x, y.t()), (x, y)


def convolutions():
    last = lamella.channels_last
    for dtype in FLOATS:
        for name, function, x, w, b in [
            ("conv1d", lambda *t: F.conv1d(*t, 2, 1), (2, 8, 31), (16, 8, 3), 16),
            ("conv2d", lambda *t: F.conv2d(*t, 1, 1), (2, 8, 13, 12), (16, 8, 3, 3), 16),
            ("groups", lambda *t: F.conv2d(*t, 1, 2, 2, 8), (2, 8, 13, 12), (16, 1, 3, 3), 16),
            ("pointwise", lambda *t: F.conv2d(*t), (2, 8, 13, 12), (16, 8, 1, 1), 16),
            ("conv3d", lambda *t: F.conv3d(*t), (1, 4, 5, 6, 7), (8, 4, 2, 3, 2), 8),
            (
                "transposed",
                lambda *t: F.conv_transpose2d(*t, 2, 1, 1),
                (2, 8, 7, 6),
                (8, 4, 3, 3),
                4,
            ),
        ]:
            inputs = made(*x, dtype=dtype), made(*w, dtype=dtype) / 8, made(b, dtype=dtype)
            yield f"{name} {dtype}", gradients(function), inputs
            if len(x) == 4:
                turned = [t.contiguous(memory_format=last) for t in inputs[:2]]
                yield f"{name} channels last {dtype}", gradients(function), (*turned, inputs[2])


def factorisations():
    linalg = lamella.linalg
    for dtype in EXACT:
        a = made(3, 9, 9, dtype=dtype) + 9 * lamella.eye(9, dtype=dtype)
        positive, b = a @ a.mH.resolve_conj(), made(3, 9, 4, dtype=dtype)
        tall = made(2, 9, 5, dtype=dtype)
        for name, function, inputs in [
            ("cholesky", linalg.cholesky, (positive,)),
            ("lu", lambda a: linalg.lu(a), (tall,)),
            ("solve", linalg.solve, (a, b)),
            ("solve from the right", lambda a, b: linalg.solve(a, b.mT, left=False), (a, b)),
            ("inv", linalg.inv, (a,)),
            ("slogdet", linalg.slogdet, (a,)),
            ("upper", lambda a, b: linalg.solve_triangular(a, b, upper=True), (a, b)),
            ("lower", lambda a, b: linalg.solve_triangular(a, b, upper=False), (a, b)),
            ("qr", lambda x: linalg.qr(x), (tall,)),
            ("qr complete", lambda x: linalg.qr(x, "complete"), (tall,)),
            ("eigvalsh", linalg.eigvalsh, (positive,)),
            ("svdvals", linalg.svdvals, (tall,)),
            ("svdvals of wide", linalg.svdvals, (tall.mT,)),
            ("pinv", linalg.pinv, (tall,)),
            ("lstsq", lambda a, b: linalg.lstsq(a, b).solution, (tall, made(2, 9, 3, dtype=dtype))),
        ]:
            yield f"{name} {dtype}", function, inputs


def transforms():
    fft = lamella.fft
    for single in (True, False):
        real, numbers = (
            (lamella.float32, lamella.complex64)
            if single
            else (lamella.float64, lamella.complex128)
        )
        x, z = made(3, 8, 9, 10, dtype=real), made(3, 8, 9, 10, dtype=numbers)
        for name, function, t in [
            ("fft", fft.fft, z),
            ("ifft of columns", lambda t: fft.ifft(t, dim=1), z),
            ("fftn", lambda t: fft.fftn(t, norm="ortho"), z),
            ("rfft", fft.rfft, x),
            ("rfft of 127", lambda t: fft.rfft(t, n=127), x),
            ("rfftn", fft.rfftn, x),
            ("irfft", lambda t: fft.irfft(t, n=17), z),
            ("irfft2", fft.irfft2, z),
        ]:
            yield f"{name} {t.dtype}", function, (t,)


def differs(a, b) -> str:
    b = b.cpu()
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"expected {a.dtype} of {list(a.shape)}, got {b.dtype} of {list(b.shape)}"
    wide = lamella.complex128 if a.dtype.is_complex else lamella.float64
    largest = a.to(wide).abs().max().item()
    difference = (a.to(wide) - b.to(wide)).abs().max().item()
    digits = {2: 2e-2, 4: 1e-4} if not a.dtype.is_complex else {8: 1e-4}
    relative = 0.0 if not a.dtype.is_floating_point and not a.dtype.is_complex else 1e-9
    allowed = digits.get(a.itemsize, relative) if relative else 0.0
    fits = difference <= allowed * (1 + largest)
    return "" if fits else f"the largest difference is {difference:.3g} of {largest:.3g}"


def rates(library, stands_in: bool):
    wait = library.cuda.synchronize
    whole, batch = (64, 4) if stands_in else (8192, 64)
    side = 16 if stands_in else 512
    for dtype in ("bfloat16", "float16", "float32"):
        kind = getattr(library, dtype)
        for name, sizes in [
            (f"{whole}³", (whole, whole)),
            (f"{batch}×{side}³", (batch, side, side)),
        ]:
            x, y = (library.randn(*sizes, device="cuda").to(kind) for _ in range(2))
            repeats = 1 if stands_in or dtype == "float32" else 10
            x @ y
            wait()
            found = []
            for _ in range(3):
                begin = time.perf_counter()
                for _ in range(repeats):
                    x @ y
                wait()
                found.append((time.perf_counter() - begin) / repeats)
            work = 2 * sizes[-1] ** 3 * (sizes[0] if len(sizes) == 3 else 1)
            yield f"{name} {dtype}, TFLOP/s", work / min(found) * 1e-12


def main() -> int:
    lamella.manual_seed(0)
    for name, where in lamella.cuda.libraries().items():
        print(f"{name}: {where}")
    count, wrong = 0, 0
    for family in (products, convolutions, factorisations, transforms):
        for name, function, inputs in family():
            if not inputs:
                continue
            count += 1
            try:
                expected, got = function(*inputs), function(*(x.cuda() for x in inputs))
                pairs = [(expected, got)] if isinstance(got, lamella.Tensor) else zip(expected, got)
                found = [text for a, b in pairs if (text := differs(a, b))]
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            for text in found:
                print(f"{name}: {text}")
            wrong += 1 if found else 0
    ran = ", ".join(f"{name} {n}" for name, n in sorted(lamella.cuda.fallbacks().items()))
    print(f"on the CPU: {ran}")
    stands_in = "stand-in" in lamella.cuda.get_device_name()
    theirs = {}
    if importlib.util.find_spec("torch") is not None and not stands_in:
        import torch

        theirs = dict(rates(torch, False)) if torch.cuda.is_available() else {}
    for name, value in rates(lamella, stands_in):
        beside = f", PyTorch {theirs[name]:.1f}" if name in theirs else ""
        print(f"{name}: {value:.3g}{beside}")
    print(f"{count} cases of libraries, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
