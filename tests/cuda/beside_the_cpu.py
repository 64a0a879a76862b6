"""Values of each dtype, and the comparison of a function's results on "cuda" with the CPU's."""

import lamella

DTYPES = [
    lamella.bool,
    lamella.uint8,
    lamella.int8,
    lamella.int16,
    lamella.int32,
    lamella.int64,
    lamella.float16,
    lamella.bfloat16,
    lamella.float32,
    lamella.float64,
    lamella.complex64,
    lamella.complex128,
]
REAL = [d for d in DTYPES if not d.is_complex and d != lamella.bool]


def values(dtype, *shape):
    x = lamella.arange(1, 1 + lamella.zeros(shape).numel()).reshape(shape)
    if dtype == lamella.bool:
        return x % 3 == 0
    x = (x * 7 % 19).sub(6 if dtype.is_signed else -6)
    return x.to(dtype) * (1 + 0.5j) if dtype.is_complex else x.to(dtype)


def on(device, x):
    if isinstance(x, lamella.Tensor):
        # A view of memory of the same layout.
        return x if device == "cpu" else x.cuda()
    return type(x)(on(device, i) for i in x) if isinstance(x, (tuple, list)) else x


def equal(a, b, tolerance=0.0):
    assert a.dtype == b.dtype and a.shape == b.shape, (a, b)
    pairs = zip(a.shape, a.stride(), b.stride())
    assert a.numel() == 0 or all(n == 1 or x == y for n, x, y in pairs), (a.stride(), b.stride())
    a, b = (lamella.view_as_real(t) if t.is_complex() else t for t in (a, b.cpu()))
    if tolerance:
        assert lamella.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True), (a, b)
    else:
        assert ((a == b) | ((a != a) & (b != b))).all(), (a, b)


def same(function, *inputs, tolerance=0.0):
    """Equal bit for bit, unless sums are reordered and so have a tolerance."""
    expected, got = function(*inputs), function(*on("cuda", inputs))
    many = isinstance(expected, (tuple, list))
    for a, b in zip(expected, got) if many else [(expected, got)]:
        assert b.device.type == "cuda"
        equal(a, b, tolerance)


def same_gradient(function, *inputs, tolerance=0.0):
    """The gradient of the first input."""

    def run(*given):
        x = given[0].clone().requires_grad_()
        y = function(x, *given[1:])
        y = y[0] if isinstance(y, tuple) else y
        return lamella.autograd.grad(y, x, (y.detach() + 1))[0]

    same(run, *inputs, tolerance=tolerance)
