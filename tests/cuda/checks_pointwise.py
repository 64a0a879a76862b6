"""Pointwise operators on the device, against the CPU bit for bit, without falling back: every loop
of lamella/cuda/kernels/pointwise_table.h, dtype and kind of layout."""

import itertools

import numpy
import pytest

import lamella
import lamella.nn.functional as F

SIGNED = [lamella.int8, lamella.int16, lamella.int32, lamella.int64]
UNSIGNED = [lamella.uint8, lamella.uint16, lamella.uint32, lamella.uint64]
FLOATS = [lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16]
COMPLEX = [lamella.complex64, lamella.complex128]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan"), 1e-40, 3.0, 65504]


def values(dtype, count=85, seed=1):
    """Numbers of every size, with what is special."""
    rng = numpy.random.default_rng(seed)
    if dtype == lamella.bool:
        return lamella.tensor(rng.integers(0, 2, count).tolist()).to(lamella.bool)
    if dtype.is_complex:
        parts = [values(FLOATS[0], count, seed + k).to(lamella.float64) for k in (0, 1)]
        return lamella.complex(*parts).to(dtype)
    if not dtype.is_floating_point:
        bits = dtype.itemsize * 8
        least, most = (0, 2**bits) if dtype in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        numbers = [least, most - 1, 0, 1, 2, 3, 7, *map(int, rng.integers(-9, 10, count // 2))]
        numbers += [int(n) for n in rng.integers(max(least, -(2**62)), min(most, 2**62), count)]
        numbers = [n % 2**bits if dtype in UNSIGNED else n for n in numbers[:count]]
        kinds = {1: "u1", 2: "u2", 4: "u4", 8: "u8"} if dtype in UNSIGNED else {}
        kind = kinds.get(dtype.itemsize, f"i{dtype.itemsize}")
        return lamella.from_numpy(numpy.array(numbers, dtype=kind))
    numbers = rng.standard_normal(count) * 3
    numbers[-20:] *= 30
    numbers[: len(SPECIAL)] = SPECIAL
    order = rng.permutation(count)
    return lamella.from_numpy(numbers[order]).to(dtype)


def bits(x):
    """The elements as integers; all NaN alike."""
    x = x.cpu()
    if x.dtype.is_complex:
        return bits(lamella.view_as_real(x.resolve_conj()))
    if not x.dtype.is_floating_point:
        return x.flatten().tolist()
    whole = {2: lamella.int16, 4: lamella.int32, 8: lamella.int64}[x.itemsize]
    pairs = zip(x.flatten().tolist(), x.contiguous().view(whole).flatten().tolist())
    return [None if y != y else b for y, b in pairs]


def same(cuda, call, *inputs, falls_back=False):
    cuda.reset_fallbacks()
    try:
        expected = call(*inputs)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as other:
            call(*(x.cuda() for x in inputs))
        assert str(other.value).replace("cuda:0", "cpu") == str(error)
        return
    got = call(*(x.cuda() for x in inputs))
    assert got.device.type == "cuda" and got.dtype == expected.dtype
    assert got.shape == expected.shape and got.stride() == expected.stride()
    assert bits(got) == bits(expected)
    assert falls_back or cuda.fallbacks() == {}


BOTH = "add sub mul maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor"
WHOLE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm"
REAL = "copysign nextafter hypot atan2 logaddexp logaddexp2 xlogy"
REST = "fmod remainder floor_divide pow heaviside"


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, *FLOATS, lamella.bool], ids=str)
def test_two_operands(cuda, dtype):
    x, y = values(dtype), values(dtype, seed=2)
    whole = not dtype.is_floating_point
    names = BOTH.split() + (REAL.split() if not whole else WHOLE.split())
    for name in names:
        same(cuda, getattr(lamella, name), x, y)
    if whole:
        y = lamella.where(y == 0, lamella.ones_like(y), y)
    for name in REST.split():
        b = y.remainder(5) if whole and name == "pow" and dtype != lamella.bool else y
        same(cuda, getattr(lamella, name), x, b)
    for mode in (None, "trunc", "floor"):
        same(cuda, lambda a, b, m=mode: lamella.div(a, b, rounding_mode=m), x, y)


ONE = """
neg abs sgn sign positive square bitwise_not logical_not isnan isinf isfinite isposinf isneginf
signbit ceil floor trunc round frac sqrt rsqrt reciprocal nan_to_num relu exp exp2 expm1 sinh
cosh tanh sigmoid log log2 log10 log1p sin cos tan asin acos atan asinh acosh atanh erf erfc
erfinv lgamma digamma i0 sinc logit deg2rad rad2deg
"""
SPECIALS = "i0e i1 i1e entr erfcx ndtri log_ndtr"


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, *FLOATS, lamella.bool], ids=str)
def test_one_operand(cuda, dtype):
    if "avx2" not in open("/proc/cpuinfo").read():
        pytest.skip("without fused multiply-add the CPU's last bits differ")
    x = values(dtype, 201)
    for name in ONE.split():
        same(cuda, getattr(lamella, name), x)
    for name in SPECIALS.split():
        same(cuda, getattr(lamella.special, name), x)
    if dtype.is_floating_point:
        for n in (0, 1):
            same(cuda, lambda a, n=n: lamella.polygamma(n, a), x)
        for decimals in (2, -1):
            same(cuda, lambda a, d=decimals: lamella.round(a, decimals=d), x)
        same(cuda, lambda a: lamella.logit(a, eps=0.1), x)
        same(cuda, lamella.special.xlog1py, x, values(dtype, 201, 2))
    for exponent in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5):
        same(cuda, lambda a, e=exponent: a**e, x)
    if dtype != lamella.bool:
        same(cuda, lambda a: 2**a, x)


ACTIVATIONS = [
    # With AVX2 alone its last bits differ, as the comment on v_tail_quotient says.
    *([F.gelu] if "avx512f" in open("/proc/cpuinfo").read() else []),
    lambda u: F.gelu(u, approximate="tanh"),
    F.silu,
    F.mish,
    F.elu,
    F.celu,
    F.selu,
    F.softplus,
    lambda u: F.softplus(u, 2, 1),
    F.logsigmoid,
    F.hardshrink,
    F.softshrink,
    F.hardswish,
    F.hardsigmoid,
    F.hardtanh,
    F.leaky_relu,
    F.relu6,
    F.tanhshrink,
    F.softsign,
    lambda u: F.threshold(u, 0.5, 2),
    lambda u: lamella.logit(u.sigmoid(), eps=0.2),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("at", range(len(ACTIVATIONS)))
def test_activations_and_their_gradients(cuda, dtype, at):
    x, g = values(dtype, 120), values(dtype, 120, 3)
    same(cuda, ACTIVATIONS[at], x)

    def gradient(u, v):
        u = u.clone().requires_grad_()
        return lamella.autograd.grad(ACTIVATIONS[at](u), u, v)[0]

    same(cuda, gradient, x, g)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex(cuda, dtype):
    x, y = values(dtype), values(dtype, seed=5)
    for name in "add sub mul div eq ne logical_and logical_or logical_xor".split():
        same(cuda, getattr(lamella, name), x, y)
    names = "neg conj_physical isnan isinf isfinite logical_not nan_to_num"
    for name in names.split() + ["abs", "sgn"] * (dtype == lamella.complex64):
        same(cuda, getattr(lamella, name), x)
    same(cuda, lambda a: lamella.real(a) + lamella.imag(a), x)
    same(cuda, lambda a: a.conj() + 1, x)
    same(cuda, lambda a: a + 2j, x)
    same(cuda, lambda a, b: lamella.where(a == b, a, b), x, y)
    # By functions of the C library, whose last bits no kernel is bound to.
    for name in "exp sqrt sin".split():
        same(cuda, getattr(lamella, name), x, falls_back=True)


def test_three_operands(cuda):
    for dtype in (lamella.float32, lamella.bfloat16, lamella.int16, lamella.uint64):
        x, y, z = (values(dtype, seed=k) for k in (1, 2, 3))
        same(cuda, lambda a, b, c: lamella.clamp(a, b, c), x, y, z)
        same(cuda, lambda a, b, c: lamella.addcmul(a, b, c, value=3), x, y, z)
        same(cuda, lambda a, b, c: lamella.where(a > b, b, c), x, y, z)
        if dtype.is_floating_point:
            same(cuda, lamella.lerp, x, y, z)
            same(cuda, lambda a: a.clamp(float("nan"), 2), x)


ALL = [*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX, lamella.bool]


@pytest.mark.parametrize("to", ALL, ids=str)
def test_casts(cuda, to):
    """Out of range too: 1e5 to 1e30 beside what is special."""
    for dtype in ALL:
        x = values(dtype, 64)
        if dtype in (lamella.float32, lamella.float64):
            for k, size in enumerate((3e2, 1e5, 3e9, 1e15, 1e19, 1e30)):
                x[40 + k], x[50 + k] = size, -size
            if to == lamella.uint64:  # beyond its range the CPU's capabilities differ
                x = lamella.where(x.abs() < 1.8e19, x, 0)
        for made in (x, x.reshape(8, 8).t(), x[::3], x[:1].expand(5, 7), x.reshape(4, 16)[:, :8]):
            same(cuda, lambda a: a.to(to).contiguous(), made)
        y = values(to, 64)

        def written(a, b):
            return b.clone().copy_(a)

        same(cuda, written, x, y)


def test_layouts_that_are_read_by_vectors(cuda):
    """Rows of 16 elements, broadcast either way, at addresses of every alignment."""
    for dtype in (lamella.float32, lamella.float16, lamella.uint8, lamella.float64, lamella.int32):
        base = values(dtype, 16 * 9 + 7)
        for offset, width in itertools.product((0, 1, 2, 4), (16, 8, 12, 5)):
            x = base[offset : offset + 9 * width].reshape(9, width)
            row, column = x[3], x[:, 2:3]
            for a, b in ((x, row), (x, column), (row, x), (x, x[0, 0]), (x[::2], x[1::2][:1])):
                same(cuda, lamella.add, a, b)
                same(cuda, lamella.lt, a, b)
            same(cuda, lambda a: a.t() + a.t()[:1], x)
    flat = values(lamella.float32, 1000)
    for n in (1, 7, 8, 9, 255, 256, 257, 511, 1000):
        same(cuda, lamella.mul, flat[:n], flat[-n:])
        same(cuda, lambda a: a.to(lamella.float16), flat[:n])
    same(cuda, lambda a: a + 1, lamella.zeros(0))
    same(cuda, lambda a: a + 1, lamella.tensor(3.0))


def test_offsets_beyond_32_bits(cuda):
    """Strides whose offsets need parts; the memory between is not touched."""
    memory = lamella.empty((1 << 31) + (1 << 20), dtype=lamella.uint8, device="cuda")
    far = memory.as_strided((3, 40), ((1 << 30) + 64, 1))
    far.copy_(lamella.arange(120, dtype=lamella.uint8).cuda().reshape(3, 40))
    assert (far + far).cpu().tolist() == [
        [(2 * (40 * i + k)) % 256 for k in range(40)] for i in range(3)
    ]
    far.fill_(7)
    assert far.cpu().tolist() == [[7] * 40] * 3 and cuda.fallbacks() == {}


def empty_like(x, dtype):
    return lamella.empty(60, dtype=dtype, device=x.device)


def test_results_of_another_dtype(cuda):
    x = values(lamella.float32, 60)
    for to in (lamella.float64, lamella.float16, lamella.complex64):
        for call in (lamella.exp, lambda a, out: lamella.mul(a, a, out=out)):
            same(cuda, lambda a, f=call, t=to: f(a, out=empty_like(a, t)), x)
    whole = values(lamella.int8, 60)
    same(cuda, lambda a: lamella.add(a, a, out=empty_like(a, lamella.int64)), whole)
    same(cuda, lambda a: lamella.lt(a, 3, out=empty_like(a, lamella.float32)), whole)


def test_in_place_and_lists(cuda):
    x = values(lamella.float32, 60)
    for name in ("exp_", "neg_", "sigmoid_", "floor_", "erfinv_", "lgamma_", "atan_"):
        same(cuda, lambda a, n=name: getattr(a.clone(), n)(), x)
    for name in ("mul_", "pow_", "remainder_", "copysign_", "atan2_", "bitwise_xor_"):
        inputs = (
            (values(lamella.int32, 60),) * 2
            if name == "bitwise_xor_"
            else (x, x.flip(0).contiguous())
        )
        same(cuda, lambda a, b, n=name: getattr(a.clone(), n)(b), *inputs)

    def lists(a):
        pair = [a.clone(), a.clone()]
        lamella._foreach_add_(pair, 1)
        lamella._foreach_mul_(pair, pair)
        lamella._foreach_neg_(pair)
        return lamella._foreach_sqrt([pair[1].abs()])[0]

    same(cuda, lists, x)


def test_integers_divided_by_zero(cuda):
    """The device has no error to give: the quotient is -1 and the remainder the dividend."""
    x = lamella.tensor([5, -7, 0], dtype=lamella.int32, device="cuda")
    zero = lamella.zeros_like(x)
    assert lamella.div(x, zero, rounding_mode="trunc").tolist() == [-1, -1, -1]
    assert lamella.div(x, zero, rounding_mode="floor").tolist() == [-1, -1, -1]
    assert x.remainder(zero).tolist() == x.fmod(zero).tolist() == [5, -7, 0]
    for call in (lambda a: a // 0, lambda a: a % 0, lambda a: a.fmod(0)):
        same(cuda, call, x.cpu())
