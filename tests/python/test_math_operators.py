"""Special functions, order statistics, gradients of activations and composites, against PyTorch."""

import itertools
import math

import numpy as np
import pytest
from operator_cases import clone_strided, compare, lamella, make, to_lamella, torch


def check(name, *args, strides=True, tolerance=None, **kwargs):
    """Compares results and written arguments, whichever overload fits."""
    kwargs_there = {k: clone_strided(v) for k, v in kwargs.items()}
    theirs = [clone_strided(a) for a in args]
    ours = [to_lamella(clone_strided(a)) for a in args]
    expected = getattr(torch.ops.aten, name)(*theirs, **kwargs_there)
    kwargs_here = {k: to_lamella(v) for k, v in kwargs.items()}
    got = getattr(lamella.ops.aten, name)(*ours, **kwargs_here)
    compare(got, expected, strides, name, tolerance)
    for mine, other in zip(ours, theirs):
        if isinstance(other, torch.Tensor):
            compare(mine, other, strides, f"{name}: argument", tolerance)


def one_by_one(*shapes):
    return [make(*shape, dtype=torch.float64, seed=i) for i, shape in enumerate(shapes)]


# ---- Gradients of activations ----

BACKWARDS = [
    ("threshold_backward", (0.5,)),
    ("leaky_relu_backward", (0.1, False)),
    ("softplus_backward", (1.5, 2.0)),
    ("silu_backward", ()),
    ("mish_backward", ()),
    ("gelu_backward", ()),
    ("hardswish_backward", ()),
    ("hardsigmoid_backward", ()),
    ("hardtanh_backward", (-1.5, 2.0)),
    ("hardshrink_backward", (0.7,)),
    ("softshrink_backward", (0.7,)),
    ("logit_backward", (None,)),
    ("logit_backward", (0.25,)),
    ("sigmoid_backward", ()),
    ("tanh_backward", ()),
]


def test_backward_at_bounds():
    at = torch.tensor([-3.0, 3.0, 0.0, -1.0, 1.0, 0.5, -0.5, float("inf"), -float("inf")])
    for name, arguments in BACKWARDS:
        if name not in ("logit_backward", "silu_backward", "mish_backward", "gelu_backward"):
            check(name, torch.ones(9), at, *arguments)


# ---- Activations ----


def test_rrelu_draws_slopes():
    x = lamella.full((1000,), -1.0)
    y = lamella.rrelu(x, 0.25, 0.5, True)
    assert -0.5 <= y.min().item() < -0.45 and -0.3 < y.max().item() <= -0.25


# ---- Special functions ----


def test_special_of_two():
    y = one_by_one((7, 9))[0]
    check(
        "special_xlog1py", torch.tensor([0.0, 0.0, 2.0]), torch.tensor([-2.0, float("nan"), -1.0])
    )
    check("special_zeta", torch.tensor([1.0, 0.5, 3.0, 2.5]), torch.tensor([2.0, 2.0, -1.5, -1.5]))
    check("special_xlog1py", 2.0, y.abs())
    check("special_xlog1py", y, 3)
    for n in range(5):
        check(
            "polygamma", n, torch.linspace(0.1, 30, 200, dtype=torch.float64), tolerance=(1e-9, 0)
        )
    check("polygamma", 1, torch.linspace(-9.6, 0.4, 21, dtype=torch.float64), tolerance=(1e-9, 0))
    check("logit", torch.linspace(-0.5, 1.5, 50), 0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_neighbours_of_small_types(dtype):
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, 1.5, math.inf, -math.inf, math.nan, 65504.0])
    a, b = torch.cartesian_prod(values, values).to(dtype).unbind(1)
    compare(lamella.nextafter(to_lamella(a), to_lamella(b)), torch.nextafter(a, b))


@pytest.mark.parametrize("name", ["max", "min", "cummax", "cummin", "sort", "mode", "median"])
def test_bytes_of_bool_that_are_neither_0_nor_1(name):
    bytes_ = lamella.tensor([[3, 0, 255, 1], [7, 2, 2, 9]] * 20, dtype=lamella.uint8)
    for x in (bytes_.view(lamella.bool), bytes_.t().contiguous().t().view(lamella.bool)):
        places = getattr(lamella, name)(x, 1)[1]
        assert 0 <= places.min().item() and places.max().item() < 4


def test_powers_into_any_dtype():
    x = lamella.tensor([1.0, 2.0, 3.0])
    for exponent, expected in ((0, [1.0, 1.0, 1.0]), (1, [1.0, 2.0, 3.0])):
        out = lamella.empty(0, dtype=lamella.float8_e5m2)
        assert lamella.pow(x, exponent, out=out).float().tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "n", [2**24 + 1, 2**24 + 3, 10**8 + 1, -(2**24) - 1, 2**31 + 1, 16777217.0, -20000001.0]
)
def test_long_whole_exponents(n, dtype):
    """float32 does not hold these exponents; rounded, they would be even instead of odd."""
    bases = [-1.0, 1.0, 0.5, -0.5, 2.0, -2.0, -math.inf, math.inf, math.nan, 0.0, -0.0]
    if dtype == "float32":
        bases += [sign * (1 + k * 2.0**-23) for k in (-1, 1, 2, 3) for sign in (1, -1)]
    x = lamella.tensor(bases * 3, dtype=getattr(lamella, dtype))
    with np.errstate(all="ignore"):
        want = np.power(np.array(bases * 3), float(n)).astype("float32")
    in_place = x.clone()
    in_place.pow_(n)
    compiled = lamella.compile(lambda t: t**n)(x)
    for got in (x**n, in_place, compiled, lamella.stack([x, x], 1)[:, 1] ** n):
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got.float().numpy(), want, rtol=2e-7)
        np.testing.assert_array_equal(np.signbit(got.float().numpy()), np.signbit(want))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mantissas_and_exponents(dtype):
    tiny = float(np.finfo(dtype).tiny)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, tiny, tiny / 3, -tiny / 1024, 1.0, -0.75]
    special.append(float(np.finfo(dtype).smallest_subnormal))
    random = np.random.default_rng(1).standard_normal(70) * 10.0 ** np.arange(-35, 35)
    x = np.concatenate([special, random]).astype(dtype)
    for values in (x, x[::3]):
        mantissa, exponent = lamella.frexp(lamella.from_numpy(values))
        want, powers = np.frexp(values)
        finite = np.isfinite(values)
        np.testing.assert_array_equal(mantissa.numpy(), want)
        np.testing.assert_array_equal(np.signbit(mantissa.numpy()), np.signbit(want))
        np.testing.assert_array_equal(exponent.numpy()[finite], powers[finite])
        assert (exponent.numpy()[~finite] == 0).all()
    powers = np.arange(-160, 162, dtype="int32")
    got = lamella.ldexp(lamella.from_numpy(x[-1:]), lamella.from_numpy(powers))
    with np.errstate(over="ignore"):
        scale = np.ldexp(np.ones(1, dtype), powers)
        np.testing.assert_array_equal(got.numpy(), x[-1:] * scale)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sizes_and_angles_of_complex_numbers(dtype):
    real = "float32" if dtype == "complex64" else "float64"
    most = np.finfo(real).max
    parts = np.array(
        [0.0, -0.0, 1.0, -1.0, 3.0, most, most / 2, 1 / most, math.inf, -math.inf, math.nan]
    ).astype(real)
    pairs = np.stack(np.meshgrid(parts, parts), -1).reshape(-1, 2)
    random = np.random.default_rng(2).standard_normal((1000, 2)).astype(real)
    z = np.concatenate([pairs, random]).view(dtype)[:, 0]
    with np.errstate(all="ignore"):
        size, angle = np.abs(z), np.angle(z)
    tolerance = 3e-7 if dtype == "complex64" else 5e-16
    for values, sizes, angles in ((z, size, angle), (z[::2], size[::2], angle[::2])):
        x = lamella.from_numpy(values)
        np.testing.assert_allclose(x.abs().numpy(), sizes, rtol=tolerance)
        np.testing.assert_allclose(x.angle().numpy(), angles, rtol=tolerance)


def test_rounding_to_decimals():
    x = np.random.default_rng(3).uniform(-1e4, 1e4, 333)
    for dtype in ("float32", "float64"):
        values = x.astype(dtype)
        for decimals in (1, 3, -1, -2):
            got = lamella.round(lamella.from_numpy(values), decimals=decimals)
            want = torch.round(torch.from_numpy(values), decimals=decimals)
            np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_incomplete_gamma_functions_of_float32():
    special = pytest.importorskip("scipy.special")
    grid = np.concatenate([[1e-6, 1e-3], np.linspace(0.01, 12, 60), [20, 50, 200, 3000]])
    a, x = (part.ravel().astype("float32") for part in np.meshgrid(grid, grid))
    a, x = np.concatenate([a, a]), np.concatenate([x, a * 1.02])
    for ours, theirs in ((lamella.igamma, special.gammainc), (lamella.igammac, special.gammaincc)):
        got = ours(lamella.from_numpy(a), lamella.from_numpy(x)).numpy()
        want = theirs(a.astype("float64"), x.astype("float64"))
        normal = want > 1e-35
        np.testing.assert_allclose(got[normal], want[normal], rtol=3e-7)


def test_draws_of_poisson_leave_the_generator_where_pytorch_does():
    rates = np.concatenate([np.zeros(3), np.linspace(0, 9, 400), [50.0, 0.0]]).astype("float32")
    lamella.manual_seed(7)
    torch.manual_seed(7)
    assert lamella.poisson(lamella.from_numpy(rates)).tolist() == (
        torch.poisson(torch.from_numpy(rates)).tolist()
    )
    assert lamella.rand(3).tolist() == torch.rand(3).tolist()


def test_aliases():
    x, y = one_by_one((3, 4), (3, 4))
    for (
        name
    ) in "multiply divide true_divide subtract greater greater_equal less less_equal".split():
        check(name, x, y)
        check(name, x, 2)
        check(name + "_", x.clone(), y)
    for name in "arcsin arccos arctan arcsinh arctanh negative fix square deg2rad rad2deg".split():
        check(name, x / 5)
        check(name + "_", x / 5)
    check("arccosh", x.abs() + 1)
    check("arctan2", x, y)
    check("divide", x, y, rounding_mode="floor")
    check("deg2rad", torch.tensor([180, 90]))
    check("ldexp", x, torch.tensor([1, -2, 0, 5]))
    for name in ("ldexp", "ldexp_"):
        check(name, torch.tensor([1.5, 3.0], dtype=torch.bfloat16), torch.tensor([2, -1]))
        check(name, torch.tensor([1e-300], dtype=torch.float64), torch.tensor([900]))
    check("float_power", 2, x)
    check("mvlgamma", x.abs() + 3, 3)
    for name in "expit erf erfc exp2 expm1 psi gammaln sinc i0".split():
        check("special_" + name, x)
    check("special_round", x, decimals=1)
    check("special_xlogy", x, y.abs())
    check("special_logsumexp", x, 1)
    check("special_log_softmax", x, 1)


# ---- Order statistics ----


def test_median_with_nan():
    x = make(4, 6)
    x[1, 2] = x[1, 4] = x[3, 0] = float("nan")
    for name in ("median", "nanmedian"):
        check(name, x)
        expected = getattr(torch, name)(x, 1)
        got = getattr(lamella, name)(to_lamella(x), 1)
        assert torch.equal(torch.from_dlpack(got[0]).nan_to_num(99), expected[0].nan_to_num(99))
        assert torch.equal(torch.from_dlpack(got[1]), expected[1])
    check("median", torch.zeros(0))
    x[0] = float("nan")
    assert torch.from_dlpack(lamella.nanmedian(to_lamella(x), 1)[0])[0].isnan()


def test_without_nan():
    x = make(4, 6)
    x[1, 2] = x[1, 4] = x[3, 0] = float("nan")
    for name in ("nansum", "nanmean"):
        check(name, x)
        check(name, x, 1)
        check(name, x, (0, 1), True)
    check("nansum", torch.tensor([1, 2]))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        check("nansum", x.to(dtype), 0)
    check("nansum", x, 1, dtype=torch.float64)
    check("nansum", torch.full((3, 0), 1.0), 1)
    check("nansum", torch.full((2, 40), float("nan")), 1)


def test_extremes_with_nan():
    x = make(4, 70)
    x[1, 3] = x[2, 69] = float("nan")
    check("aminmax", x, dim=1)
    check("aminmax", torch.tensor([[True, False], [True, True]]), dim=1)
    infinite = torch.tensor([-float("inf"), -float("inf"), 1.0, float("inf"), 2.0])
    check("logcumsumexp", infinite, 0)


def test_norms_of_any_order():
    for order, dtype in itertools.product(
        (2.5, 0.5, -1.5, 7.3, 4.0), (torch.float32, torch.float64)
    ):
        for scale in (1.0, 1e-20, 1e15):
            x = make(21, 137, dtype=torch.float64).mul_(scale).to(dtype)
            for dim in (0, 1, (0, 1)):
                expected = torch.linalg.vector_norm(x.double(), order, dim).to(dtype)
                found = lamella.linalg.vector_norm(to_lamella(x), order, dim)
                torch.testing.assert_close(torch.from_dlpack(found), expected)
    for values in ([0.0, 1.0], [float("inf"), 1.0], [float("nan"), 1.0], [0.0, 0.0]):
        x = torch.tensor(values * 9)
        check("linalg_vector_norm", x, 2.5)
        check("linalg_vector_norm", x, -1.5)


# ---- Made of others ----


def test_quantiles():
    x = make(4, 6)
    x[1, 2] = x[1, 4] = x[3, 0] = float("nan")
    for interpolation in ("linear", "lower", "higher", "midpoint", "nearest"):
        for name in ("quantile", "nanquantile"):
            check(name, x, 0.3, 1, False, interpolation=interpolation)
