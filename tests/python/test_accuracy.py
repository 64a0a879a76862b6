"""Every row of the accuracy table against mpmath, with each CPU capability."""

import math

import numpy
import pytest
from accuracy import CAPABILITIES, ROWS, allowed, errors_of, function_of
from operator_cases import lamella, torch


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_errors_stay_within_the_table(capability):
    errors = errors_of("lamella", capability, 60)
    assert {k: e for k, e in errors.items() if not e <= allowed(k)} == {}


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_within_one_unit(name):
    # Every 97th float32; those below 1000, where errors of the reduction show, more densely.
    all_of_them = numpy.arange(0, 0x7F800000, 97 * 64, dtype=numpy.uint32).view(numpy.float32)
    small = numpy.arange(0x3A000000, 0x447A0000, 97, dtype=numpy.uint32).view(numpy.float32)
    for x in (all_of_them, small):
        exact = getattr(numpy, name)(x.astype(numpy.float64))
        got = getattr(lamella, name)(lamella.from_numpy(x)).numpy().astype(numpy.float64)
        unit = numpy.ldexp(1.0, numpy.maximum(numpy.frexp(exact)[1], -125) - 24)
        assert (numpy.abs(got - exact) / unit).max() <= 1


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 5e-324, 1e-40, 3e38, -3e38]


LIMITS = ("i0", "special.i1", "nn.functional.gelu", "gelu_tanh", "nn.functional.mish")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_special_values(row, dtype):
    values = numpy.array(SPECIAL, dtype=dtype)
    if row.arguments == 2:
        x, y = (a.ravel().copy() for a in numpy.meshgrid(values, values))
        given = [x, y]
    else:
        given = [values]
    got = function_of(lamella, row.name)(*map(lamella.from_numpy, given)).numpy()
    want = function_of(torch, row.name)(*map(torch.from_numpy, given)).numpy()
    # Finite values are the table's; the kind must be the same. Far out PyTorch has NaN or overflows
    # for some functions that have a limit.
    limit = (numpy.abs(given[0]) > 1e38) & (row.name in LIMITS)
    for kind in (numpy.isnan, numpy.isposinf, numpy.isneginf):
        differ = (kind(got) != kind(want)) & ~limit
        assert not differ.any(), [(*(a[differ] for a in given), got[differ], want[differ])]


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide", "nextafter"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_functions(name, dtype):
    random = numpy.random.default_rng(3)
    limit = 85 if dtype == "float32" else 700
    x = numpy.exp(random.uniform(-limit, limit, 5000)) * random.choice([-1, 1], 5000)
    y = numpy.exp(random.uniform(-limit, limit, 5000)) * random.choice([-1, 1], 5000)
    edges = numpy.array(SPECIAL)
    a, b = (v.ravel() for v in numpy.meshgrid(edges, edges))
    with numpy.errstate(all="ignore"):
        x = numpy.concatenate([x, a, y[:3000] * random.integers(0, 99, 3000)]).astype(dtype)
        y = numpy.concatenate([y, b, y[:3000]]).astype(dtype)
        got = getattr(lamella, name)(lamella.from_numpy(x), lamella.from_numpy(y)).numpy()
        if name == "floor_divide":
            want = torch.floor_divide(torch.from_numpy(x), torch.from_numpy(y)).numpy()
            near = numpy.abs(want) < 2.0 ** (20 if dtype == "float32" else 50)
            got, want, x, y = got[near], want[near], x[near], y[near]
        else:
            peer = {"fmod": numpy.fmod, "nextafter": numpy.nextafter}.get(name)
            want = peer(x, y) if peer else torch.remainder(*map(torch.from_numpy, (x, y))).numpy()
    if name == "remainder":
        with numpy.errstate(invalid="ignore"):
            m = numpy.fmod(x, y)
        want = numpy.where((m != 0) & (numpy.signbit(m) != numpy.signbit(y)), m + y, m)
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    assert same.all(), (x[~same][:5], y[~same][:5], got[~same][:5], want[~same][:5])
