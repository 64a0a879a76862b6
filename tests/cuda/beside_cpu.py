"""Compares a function on "cuda" with the CPU: values, gradients, and that nothing fell back."""

from __future__ import annotations

import lamella

FLOATS = [lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16]
INTEGERS = [lamella.uint8, lamella.int8, lamella.int16, lamella.int32, lamella.int64]
TOLERANCE = {
    lamella.float32: 2e-5,
    lamella.float64: 1e-11,
    lamella.float16: 4e-3,
    lamella.bfloat16: 3e-2,
    lamella.complex64: 2e-5,
    lamella.complex128: 1e-11,
}


def values(dtype, *shape, seed=0):
    generator = lamella.Generator().manual_seed(seed)
    if dtype == lamella.bool:
        return lamella.randint(0, 2, shape, generator=generator).to(dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        low = 0 if dtype == lamella.uint8 else -9
        return lamella.randint(low, 10, shape, generator=generator).to(dtype)
    if dtype.is_complex:
        real = values(lamella.float64, *shape, 2, seed=seed)
        return lamella.view_as_complex(real).to(dtype)
    return lamella.randn(shape, generator=generator).to(dtype)


def on_device(x):
    if isinstance(x, (tuple, list)):
        return type(x)(map(on_device, x))
    if not isinstance(x, lamella.Tensor):
        return x
    made = x.detach().cuda() if x.is_contiguous() else strided_copy(x)
    return made.requires_grad_(x.requires_grad)


def strided_copy(x):
    """The same strides on the device."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    flat = x.detach().as_strided((span if x.numel() else 0,), (1,), x.storage_offset())
    return flat.cuda().as_strided(x.shape, x.stride(), 0)


def assert_same(expected, got, exact=False):
    if isinstance(expected, (tuple, list)):
        assert len(expected) == len(got)
        for a, b in zip(expected, got):
            assert_same(a, b, exact)
        return
    if expected is None or not isinstance(expected, lamella.Tensor):
        assert expected == got
        return
    assert got.device.type == "cuda" and expected.dtype == got.dtype
    assert expected.shape == got.shape
    got = got.cpu()
    if expected.is_complex():
        expected, got = lamella.view_as_real(expected), lamella.view_as_real(got)
    if not expected.is_floating_point() or exact:
        assert expected.tolist() == got.tolist() or lamella.equal(
            expected.nan_to_num(), got.nan_to_num()
        ), (expected, got)
        return
    tolerance = TOLERANCE[expected.dtype]
    a, b = expected.double(), got.double()
    assert lamella.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True), (a, b)


def check(cuda, function, *inputs, exact=False):
    expected = function(*inputs)
    given = on_device(inputs)
    cuda.reset_fallbacks()
    got = function(*given)
    assert not cuda.fallbacks()
    assert_same(expected, got, exact)


def layouts(x):
    """Contiguous, transposed, with gaps, broadcast."""
    yield x
    yield x.transpose(0, -1)
    yield x[..., ::2]
    yield x[:1].expand(3, *x.shape[1:])


def gradients(function, *inputs):
    """The result, and the gradients of a sum with weights of all inputs that require one."""
    wanted = [x for x in inputs if isinstance(x, lamella.Tensor) and x.requires_grad]
    result = function(*inputs)
    weights = lamella.linspace(-1, 2, result.numel(), device="cpu").to(result.dtype)
    weights = weights.to(result.device).reshape(result.shape)
    return (result.detach(), *lamella.autograd.grad((result * weights).sum(), wanted))


def leaf(dtype, *shape, seed=0):
    return values(dtype, *shape, seed=seed).requires_grad_()


def check_gradients(cuda, function, *inputs):
    check(cuda, lambda *given: gradients(function, *given), *inputs)
