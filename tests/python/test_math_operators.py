"""Special functions, order statistics, gradients of activations and composites, against PyTorch."""

import itertools
import math

import pytest
from operator_cases import clone_strided, compare, error_of, lamella, make, to_lamella, torch

FLOATS = [torch.float32, torch.float64, torch.bfloat16]


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


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, arguments", BACKWARDS)
def test_backward(name, arguments, dtype):
    tolerance = (2e-2, 1e-2) if dtype == torch.bfloat16 else None
    low, high = (0.05, 0.95) if name == "logit_backward" else (-6, 6)
    for shape in [(), (3,), (4, 67)]:
        grad = make(*shape, dtype=dtype)
        x = make(*shape, dtype=dtype, low=low, high=high, seed=1)
        check(name, grad, x, *arguments, tolerance=tolerance)
    grad, x = make(4, 6, dtype=dtype).t(), make(6, 4, dtype=dtype, low=low, high=high)
    check(name, grad, x, *arguments, strides=False, tolerance=tolerance)


def test_complex_backward():
    grad, x = make(5, 3, dtype=torch.complex128), make(5, 3, dtype=torch.complex128, seed=1)
    check("sigmoid_backward", grad, x)
    check("tanh_backward", grad, x)
    s = torch.sigmoid(x)
    expected = grad * (s * (1 + x * (1 - s))).conj()
    compare(lamella.ops.aten.silu_backward(to_lamella(grad), to_lamella(x)), expected)


def test_backward_at_bounds():
    at = torch.tensor([-3.0, 3.0, 0.0, -1.0, 1.0, 0.5, -0.5, float("inf"), -float("inf")])
    for name, arguments in BACKWARDS:
        if name not in ("logit_backward", "silu_backward", "mish_backward", "gelu_backward"):
            check(name, torch.ones(9), at, *arguments)


def test_gelu_backward_tanh():
    for dtype in FLOATS:
        tolerance = (2e-2, 1e-2) if dtype == torch.bfloat16 else None
        grad, x = make(7, 9, dtype=dtype), make(7, 9, dtype=dtype, low=-9, high=9, seed=1)
        check("gelu_backward", grad, x, approximate="tanh", tolerance=tolerance)


def test_log_sigmoid_backward():
    grad, x = one_by_one((5, 7), (5, 7))
    got = lamella.ops.aten.log_sigmoid_backward(*map(to_lamella, (grad, x, x)))
    expected = grad * torch.sigmoid(-x)
    assert torch.allclose(torch.from_dlpack(got), expected)


@pytest.mark.parametrize("is_result", [False, True])
def test_elu_backward(is_result):
    grad, x = one_by_one((5, 7), (5, 7))
    check("elu_backward", grad, 1.5, 1.2, 0.7, is_result, x)


def test_backward_errors():
    a, b = torch.ones(3), torch.ones(2)
    assert error_of("tanh_backward", a, b) == (
        "tanh_backward: expected 'output' to be broadcastable to [3], got [2]"
    )
    assert error_of("gelu_backward", a, a, approximate="x") == (
        "gelu_backward: expected 'approximate' to be 'none' or 'tanh', got 'x'"
    )
    assert error_of("_softmax_backward_data", a, b, 0, torch.float32) == (
        "_softmax_backward_data: expected 'grad_output' to have shape [2], got [3]"
    )


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_backward(name, dtype):
    tolerance = (2e-2, 2e-2) if dtype == torch.bfloat16 else None
    for shape in [(), (5,), (4, 7), (2, 70, 3), (3, 5, 300), (0, 3)]:
        x, grad = make(*shape, dtype=dtype), make(*shape, dtype=dtype, seed=1)
        for dim in range(max(len(shape), 1)):
            output = getattr(torch.ops.aten, name)(x, dim, False)
            check(f"{name}_backward_data", grad, output, dim, dtype, tolerance=tolerance)


# ---- Activations ----


def test_activations():
    for dtype in (torch.float32, torch.float64):
        x = make(3, 4, 5, dtype=dtype)
        for name in ("hardshrink", "softshrink"):
            check(name, x)
            check(name, x, 1.5)
        check("celu", x)
        check("celu", x, 0.7)
        for dim in (1, -2):
            check("glu", x, dim)
        check("prelu", x, make(1, dtype=dtype))
        check("prelu", x, make(4, dtype=dtype))
        check("rrelu", x)
    for name in ("celu_", "selu_", "relu6_"):
        check(name, make(7))


def test_rrelu_draws_slopes():
    x = lamella.full((1000,), -1.0)
    y = lamella.rrelu(x, 0.25, 0.5, True)
    assert -0.5 <= y.min().item() < -0.45 and -0.3 < y.max().item() <= -0.25


# ---- Special functions ----

SPECIAL = {
    "special_entr": (-1, 3),
    "special_erfcx": (-5, 40),
    "special_log_ndtr": (-40, 10),
    "special_ndtr": (-6, 6),
    "special_ndtri": (0, 1),
    "special_i0e": (-60, 60),
    "special_i1": (-60, 60),
    "special_i1e": (-60, 60),
    "i0": (-60, 60),
    "sinc": (-4, 4),
    "logit": (0, 1),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special(name):
    low, high = SPECIAL[name]
    x = torch.linspace(low, high, 501, dtype=torch.float64)
    check(name, x, tolerance=(1e-11, 1e-12))
    check(name, x.float(), tolerance=(2e-5, 1e-6))
    check(name, torch.tensor([1, 0], dtype=torch.int64), tolerance=(1e-5, 1e-6))
    if name not in ("logit", "special_ndtri"):
        extremes = torch.tensor([float("inf"), -float("inf"), float("nan")], dtype=torch.float64)
        if name not in ("sinc", "special_i1", "i0", "special_i0e", "special_i1e"):
            check(name, extremes)


def test_special_of_two():
    x, y = one_by_one((7, 9), (7, 9))
    check("special_xlog1py", x, y.abs())
    check(
        "special_xlog1py", torch.tensor([0.0, 0.0, 2.0]), torch.tensor([-2.0, float("nan"), -1.0])
    )
    check("special_zeta", x.abs() + 1.1, y.abs() + 0.1, tolerance=(1e-11, 1e-12))
    check("special_zeta", torch.tensor([1.0, 0.5, 3.0, 2.5]), torch.tensor([2.0, 2.0, -1.5, -1.5]))
    check("special_xlog1py", 2.0, y.abs())
    check("special_xlog1py", x, 3)
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


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_selection(name, dtype):
    extra = (2,) if name == "kthvalue" else ()
    for shape in [(7,), (4, 5), (2, 6, 3)]:
        x = make(*shape, dtype=dtype)
        if name == "mode":
            x = (x * 0.5).round()
        for dim in range(len(shape)):
            for keepdim in [()] if name.startswith("cum") else [(False,), (True,)]:
                expected = getattr(torch, name)(x, *extra, dim, *keepdim)
                got = getattr(lamella, name)(to_lamella(x), *extra, dim, *keepdim)
                values, indices = (torch.from_dlpack(part) for part in got)
                assert torch.equal(values, expected[0])
                if name == "mode":
                    at = indices if keepdim == (True,) else indices.unsqueeze(dim)
                    assert torch.equal(x.gather(dim, at).reshape(values.shape), values)
                elif len(set(x.flatten().tolist())) == x.numel() or name.startswith("cum"):
                    assert torch.equal(indices, expected[1])


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


def test_cumulative_extremes_with_nan():
    x = make(3, 8)
    x[0, 3] = x[1, 0] = x[1, 5] = float("nan")
    check("cummax", x, 1)
    check("cummin", x, 1)
    check("cummax", torch.tensor([1, 3, 3, 2, 3]), 0)


def test_logcumsumexp():
    for dtype in (torch.float32, torch.float64, torch.complex128):
        for dim in range(2):
            check("logcumsumexp", make(4, 9, dtype=dtype), dim)
    infinite = torch.tensor([-float("inf"), -float("inf"), 1.0, float("inf"), 2.0])
    check("logcumsumexp", infinite, 0)
    check("logcumsumexp", torch.tensor(2.0), 0)


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


def test_both_extremes():
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int64):
        x = make(5, 300, dtype=dtype)
        for given in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}):
            check("aminmax", x, **given)
    x = make(4, 70)
    x[1, 3] = x[2, 69] = float("nan")
    check("aminmax", x, dim=1)
    check("aminmax", torch.tensor([[True, False], [True, True]]), dim=1)
    check("aminmax", torch.tensor(2.0))


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


def test_differences():
    x = make(3, 5)
    for n, dim in itertools.product(range(4), (0, 1)):
        check("diff", x, n, dim, strides=False)
    check("diff", x, 1, -1, make(3, 2), make(3, 1))
    check("diff", x > 0, strides=False)
    for name in ("trapezoid", "cumulative_trapezoid"):
        check(name, x, dim=0)
        check(name, x, dx=0.5)
        check(name, x, make(5))
        check(name, x, make(3, 5, seed=2), dim=1)
    check("trapz", x)


def test_distances():
    x, y = one_by_one((3, 5), (3, 5))
    for p in (0, 1, 2, 3.5, float("inf")):
        check("dist", x, y, p)
    for dim, p in itertools.product((0, 1), (1, 2, 3.5)):
        check("renorm", x, p, dim, 3.0)
        check("renorm_", x.clone(), p, dim, 3.0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_covariance(dtype):
    x = make(3, 6, dtype=dtype)
    times, weights = torch.tensor([1, 2, 1, 3, 1, 1]), make(6, dtype=torch.float64, low=0.1, high=2)
    for correction in (0, 1, 2):
        check("cov", x, correction=correction)
        check("cov", x, correction=correction, fweights=times)
        check("cov", x, correction=correction, fweights=times, aweights=weights)
    check("cov", x[0])
    check("corrcoef", x)
    check("corrcoef", x[0])


def test_errors():
    x = make(3, 4)
    assert error_of("kthvalue", x, 5) == "kthvalue: expected 'k' in [1, 4], got 5"
    assert error_of("renorm", x, 0, 0, 1) == "renorm: expected 'p' to be positive, got 0"
    assert error_of("glu", x, 0) == (
        "glu: expected 'self' to have an even size along dimension 0, got shape [3, 4]"
    )
    assert error_of("prelu", x, make(3)) == (
        "prelu: expected 'weight' to have 1 element or 4, got 3"
    )
    assert error_of("polygamma", -1, x) == "polygamma: expected 'n' not to be negative, got -1"
