"""Kernels of the device, against the CPU bit for bit: dtypes, layouts, numbers, mixed operands."""

import itertools

import pytest

import lamella
import lamella.nn.functional as F

INTEGERS = [lamella.uint8, lamella.int8, lamella.int16, lamella.int32, lamella.int64]
FLOATS = [lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16]
SPECIAL = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 1e-40, 3.0, -7.0]


def values(dtype, count=60):
    lamella.manual_seed(1)
    if dtype == lamella.bool:
        return lamella.randint(0, 2, (count,)).bool()
    if not dtype.is_floating_point:
        low = 0 if dtype == lamella.uint8 else -100
        return lamella.randint(low, 100, (count,), dtype=dtype)
    x = lamella.randn(count, dtype=lamella.float64) * 3
    x[: len(SPECIAL)] = lamella.tensor(SPECIAL, dtype=lamella.float64)
    return x.to(dtype)


def bits(x):
    """The elements as integers; all NaN alike."""
    x = x.cpu()
    if not x.dtype.is_floating_point:
        return x.tolist()
    whole = {2: lamella.int16, 4: lamella.int32, 8: lamella.int64}[x.itemsize]
    return [
        None if y != y else b
        for y, b in zip(x.flatten().tolist(), x.view(whole).flatten().tolist())
    ]


def same(function, *inputs):
    expected = function(*inputs)
    got = function(*(x.cuda() for x in inputs))
    assert got.device.type == "cuda" and got.dtype == expected.dtype
    assert got.shape == expected.shape and got.stride() == expected.stride()
    assert bits(got.contiguous()) == bits(expected.contiguous())


BINARY = ["add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"]
LOGIC = ["logical_and", "logical_or", "logical_xor"]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, lamella.bool], ids=str)
def test_functions(cuda, dtype):
    x, y = values(dtype), values(dtype).flip(0).contiguous()
    names = [*LOGIC, *(BINARY[3:] if dtype == lamella.bool else BINARY)]
    names += ["bitwise_and", "bitwise_or", "bitwise_xor"] if dtype not in FLOATS else ["div"]
    for name in names:
        same(getattr(lamella, name), x, y)
    same(lamella.logical_not, x)
    for name in ["neg", "abs"] * (dtype != lamella.bool) + [
        "sqrt",
        "rsqrt",
        "reciprocal",
        "isnan",
    ] * (dtype in FLOATS):
        same(getattr(lamella, name), x)
    fallbacks = {name.split("::")[1].split(".")[0] for name in cuda.fallbacks()}
    by_cpu = {"maximum", "minimum"} if dtype == lamella.bool else set()
    assert not fallbacks & ({*names, "neg", "abs", "sqrt"} - by_cpu)


@pytest.mark.parametrize("dtype", [*FLOATS, lamella.int32], ids=str)
def test_activations(cuda, dtype):
    x, y = values(dtype), values(dtype).flip(0).contiguous()
    calls = [
        lambda u, f=f: f(u) for f in (lamella.floor, lamella.ceil, lamella.trunc, lamella.sign)
    ]
    calls += [lamella.round, lambda u: u.clamp(-1, 2), lambda u: u.clamp(min=0), F.relu]
    calls += [
        lambda u: u.clamp(max=1),
        lambda u: F.threshold(u, 1, 5),
        lambda u: F.hardtanh(u, -1, 1),
    ]
    if dtype.is_floating_point:
        calls += [lamella.frac, lamella.isinf, lamella.isfinite, lamella.isposinf, lamella.isneginf]
        calls += [lamella.nan_to_num, F.leaky_relu, F.hardswish, F.hardsigmoid]
        calls += [lambda u: lamella.lerp(u, u + 1, 0.3), lambda u: lamella.lerp(u, u + 1, u)]
    for call in calls:
        same(call, x)
    assert cuda.fallbacks() == {}
    if not dtype.is_floating_point:
        return

    def gradient(function):
        def run(u, g):
            u = u.clone().requires_grad_()
            return lamella.autograd.grad(function(u), u, g)[0]

        return run

    for call in (F.relu, F.leaky_relu, F.hardtanh, F.hardswish, F.hardsigmoid):
        same(gradient(call), x, y)
    assert cuda.fallbacks() == {}
    same(gradient(lamella.tanh), x, y)
    same(gradient(lamella.sigmoid), x, y)
    assert not {n for n in cuda.fallbacks() if "backward" in n}


ELEMENTARY = (
    "exp exp2 expm1 sinh cosh tanh sigmoid log log2 log10 log1p sin cos tan erf erfc".split()
)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_elementary_functions(cuda, dtype):
    """Of one source: Note [Functions in vectors]. Without fused multiply-add the CPU's last bits
    differ."""
    if "fma" not in open("/proc/cpuinfo").read():
        return
    lamella.manual_seed(2)
    x = lamella.cat([values(dtype), (lamella.randn(4000, dtype=lamella.float64) * 20).to(dtype)])
    x = lamella.cat([x, lamella.tensor([5e3, -1e7, 88.5, -87.5, 709.5, -700, 0.3], dtype=dtype)])
    for name in ELEMENTARY:
        same(getattr(lamella, name), x)
    same(F.silu, x)
    assert cuda.fallbacks() == {}


@pytest.mark.parametrize("dtype", [lamella.float32, lamella.float16, lamella.int64], ids=str)
def test_layouts(cuda, dtype):
    x = values(dtype).reshape(3, 4, 5)
    for a, b in [
        (x, x[:, :1]),
        (x, x[0, 0]),
        (x.permute(2, 0, 1), x[:, 0, 0].reshape(3, 1)),
        (x[:, ::2], x[:, 1::2]),
        (x.transpose(0, 1), x.transpose(0, 1)),
        (x[:1].expand(3, 4, 5), x),
        (x[..., 2:3], x[1]),
        (x[0, 0, 0], x),
    ]:
        same(lambda u, v: u * v, a, b)
        same(lambda u, v: u < v, a, b)
        same(lambda u, v: lamella.where(u < v, u, v), a, b)
    assert cuda.fallbacks() == {}


def test_more_dimensions_than_a_kernel_takes(cuda):
    x = lamella.arange(2.0**14).reshape([2] * 14)
    same(lambda u: u.permute(*range(0, 14, 2), *range(1, 14, 2)).add(u), x)


def test_numbers_and_mixed_dtypes(cuda):
    for dtype in (lamella.float32, lamella.bfloat16, lamella.int32):
        x = values(dtype)
        same(lambda u: u + 2, x)
        same(lambda u: 3 - u, x)
        same(lambda u: u * 1.5, x)
        same(lambda u: lamella.add(u, u, alpha=3), x)
        same(lambda u: u > 0, x)
        same(lambda u: u / 3, x)
    for a, b in itertools.product(
        [lamella.uint8, lamella.int64, lamella.float16, lamella.float32], repeat=2
    ):
        same(lambda u, v: u + v, values(a), values(b))
        same(lambda u, v: u == v, values(a), values(b))
    x = values(lamella.float32).cuda()
    assert bits(x + lamella.tensor(2.0, dtype=lamella.float64)) == bits(x.cpu() + 2)
    assert cuda.fallbacks() == {}
    same(
        lambda u, v: lamella.addcmul(u, v, v, value=0.5),
        values(lamella.float32),
        values(lamella.float32),
    )
    same(
        lambda u, v: lamella.addcdiv(u, v, v, value=0.5),
        values(lamella.float64),
        values(lamella.float64),
    )
    same(lambda u: lamella.polygamma(2, u), values(lamella.float32).abs())  # by the CPU
    assert cuda.fallbacks()


def test_writes(cuda):
    for x in (values(lamella.float32), values(lamella.float16).reshape(6, 10).t()[1:]):
        y = x.clone().cuda()
        version = y._version
        y.add_(1).mul_(y)
        assert y._version == version + 2
        expected = x.clone().add_(1)
        assert bits(y) == bits(expected.mul_(expected))
        out = lamella.empty(0, dtype=lamella.float64, device="cuda")
        lamella.sub(y, 1, out=out)  # to another dtype: by the CPU
        assert bits(out) == bits(
            lamella.sub(y.cpu(), 1, out=lamella.empty(0, dtype=lamella.float64))
        )
    z = lamella.zeros(4, 6, device="cuda")
    z[:, 1].fill_(3)
    z[0].zero_()
    z[::2, 4] = 5
    assert z.cpu().tolist() == [
        [0, 0, 0, 0, 5, 0],
        [0, 3, 0, 0, 0, 0],
        [0, 3, 0, 0, 5, 0],
        [0, 3, 0, 0, 0, 0],
    ]
    messages = []
    for device in ("cpu", "cuda"):
        with pytest.raises(RuntimeError) as error:
            lamella.zeros(2, dtype=lamella.int8, device=device).fill_(1j)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("to", [*INTEGERS, *FLOATS, lamella.bool, lamella.complex64], ids=str)
def test_copies(cuda, to):
    for dtype in (*INTEGERS, *FLOATS, lamella.bool):
        x = values(dtype).reshape(6, 10)
        if dtype.is_floating_point and not to.is_floating_point:
            x = x.nan_to_num(1, 2, 3)
        for made in (x, x.t(), x[:, ::3], x[:1].expand(4, 10)):
            expected, got = made.to(to).contiguous(), made.cuda().to(to).contiguous()
            if to == lamella.complex64:
                expected, got = lamella.view_as_real(expected), lamella.view_as_real(got)
            assert bits(got) == bits(expected)
    x = (
        values(to)[:24].reshape(2, 3, 4)
        if to != lamella.complex64
        else values(FLOATS[0])[:24].reshape(2, 3, 4).to(to)
    )
    y = lamella.empty(4, 3, 2, dtype=to, device="cuda")
    y.copy_(x.cuda().permute(2, 1, 0))
    assert y.cpu().tolist() == x.permute(2, 1, 0).tolist() or to.is_floating_point or to.is_complex


def test_overlapping_copies(cuda):
    x = lamella.arange(10.0, device="cuda")
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_launches_are_counted_and_wait_for_nothing(cuda, standin):
    x = lamella.ones(1000, device="cuda")
    cuda.synchronize()
    standin.standin_reset_calls()
    y = (x + 1) * x
    assert standin.calls("cuLaunchKernel") == 2 and standin.calls("cuStreamSynchronize") == 0
    assert standin.calls("cuMemcpyDtoHAsync_v2") == 0 and y.sum().item() == 2000
