"""Operators that compose others of the device: equal to the CPU's, without fallbacks."""

import math

import pytest
from beside_cpu import FLOATS, INTEGERS, check, values

import lamella

I64, I32, F64 = lamella.int64, lamella.int32, lamella.float64


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_places_of_triangles(cuda, name):
    make = getattr(lamella, name)
    for rows, columns in ((4, 4), (3, 5), (6, 2), (1, 1), (0, 3), (3, 0)):
        for offset in (-(2**63), -7, -3, -1, 0, 1, 2, 5, 2**63 - 1):
            for dtype in (I64, I32):
                given = (rows, columns, offset)
                made = make(*given, dtype=dtype, device="cuda")
                assert made.dtype == dtype and made.device.type == "cuda"
                assert made.tolist() == make(*given).tolist(), given
    assert not cuda.fallbacks()
    with pytest.raises(RuntimeError, match=f"{name}: expected"):
        make(-1, 2, device="cuda")


@pytest.mark.parametrize("dtype", [*FLOATS[:2], *INTEGERS], ids=str)
def test_histograms(cuda, dtype):
    x = values(dtype, 7, 9)
    for bins, low, high in ((5, 0, 0), (4, 1, 6), (1, -3, 3), (3, 20, 30)):
        check(cuda, lambda t: t.histc(bins, low, high), x, exact=True)  # noqa: B023
    check(cuda, lambda t: lamella.histc(t, 4), values(dtype, 3) * 0, exact=True)
    if dtype.is_floating_point:
        x[0, 0], x[1, 1] = float("nan"), float("inf")
        check(cuda, lambda t: t.histc(6, -1, 1), x, exact=True)
        for call in (lambda t: t.histc(3), lambda t: t.histc(0), lambda t: t.histc(3, 2, 1)):
            with pytest.raises(RuntimeError) as here:
                call(x)
            with pytest.raises(RuntimeError) as there:
                call(x.cuda())
            assert str(here.value) == str(there.value)


def test_fills_by_tensors(cuda):
    for dtype in (*FLOATS, *INTEGERS, lamella.complex64, lamella.bool):
        x = values(dtype, 3, 4)[:, ::2]
        check(cuda, lambda t, v: t.clone().fill_(v), x, lamella.tensor(2.5, dtype=F64), exact=True)
    message = "fill_: expected 'value' to have no dimensions, got"
    with pytest.raises(RuntimeError, match=message):
        lamella.zeros(2).cuda().fill_(lamella.ones(2).cuda())


@pytest.mark.parametrize("dtype", [*FLOATS[:2], I32, I64], ids=str)
def test_spaces_of_powers(cuda, dtype):
    for given in ((0, 3, 4), (-1, 1, 5), (2, 2, 1)):
        for base in (2.0, 10.0):
            expected = lamella.logspace(*given, base=base, dtype=dtype)
            got = lamella.logspace(*given, base=base, dtype=dtype, device="cuda").cpu()
            assert got.dtype == dtype and got.allclose(expected, rtol=1e-6), (got, expected)
    assert not cuda.fallbacks()
    assert lamella.logspace(0, 1, 0, dtype=dtype, device="cuda").shape == (0,)


@pytest.mark.parametrize("dtype", [lamella.complex64, lamella.complex128], ids=str)
def test_complex_numbers(cuda, dtype):
    x = values(dtype, 4, 5)
    x[0] = 0
    x[1, 2:] = complex(0, float("nan"))
    for call in (
        lambda t: (t.any(), t.any(1), t.any((0, 1), keepdim=True)),
        lambda t: (t.all(), t.all(1), t.mT.all(0)),
        lambda t: (t.count_nonzero(), t.count_nonzero(1)),
        lambda t: (t[:0].any(0), t[:0].all(0), t[:0].count_nonzero(0)),
        lambda t: lamella.equal(t, t.clone()),
    ):
        check(cuda, call, x, exact=True)
    check(cuda, lambda t: (t.angle(), t.conj().angle()), x)


def test_angles(cuda):
    x = lamella.tensor([-2.0, -0.0, 0.0, 3.0, float("nan"), float("-inf")])
    for dtype in (*FLOATS, *INTEGERS):
        check(cuda, lamella.angle, x.to(dtype) if dtype.is_floating_point else values(dtype, 6))
    check(cuda, lamella.polar, values(F64, 5), values(F64, 5, seed=1))


def test_places_that_are_not_zero(cuda):
    x = lamella.tensor([[0, 2, 0], [1, 0, 3]])
    for size in (0, 2, 3, 5):
        check(cuda, lambda t: lamella.nonzero_static(t, size=size, fill_value=-7), x)  # noqa: B023


def test_searches_in_an_order(cuda):
    x = values(lamella.float32, 3, 9)
    order = x.argsort(-1)
    for right in (False, True):
        check(
            cuda,
            lambda t, v, o: lamella.searchsorted(t, v, sorter=o, right=right),  # noqa: B023
            x,
            x[:, :4] * 1.5,
            order,
        )


@pytest.mark.parametrize("dtype", [lamella.float32, F64, lamella.bfloat16, I32], ids=str)
def test_choices_of_other_dtypes(cuda, dtype):
    x, mask = values(dtype, 3, 4), values(lamella.bool, 3, 4)
    for other in (2.5, 3, True, lamella.tensor(1.25), lamella.tensor(4, dtype=I64)):
        check(cuda, lambda m, t: lamella.where(m, t, other), mask, x)  # noqa: B023
        check(cuda, lambda m, t: lamella.where(m, other, t), mask, x)  # noqa: B023
    for other in (I64, lamella.float16, lamella.uint8, lamella.bool):
        given = values(other, 4, 3).T
        check(cuda, lambda m, t, u: lamella.where(m, t, u), mask, x, given, exact=True)


# ---- What is drawn at random ---------------------------------------------------------------------


def test_permutations(cuda):
    cuda.manual_seed(3)
    for n in (0, 1, 2, 100):
        for dtype in (I64, I32, lamella.float32, lamella.uint8):
            made = lamella.randperm(n, dtype=dtype, device="cuda")
            assert made.dtype == dtype and sorted(made.tolist()) == list(range(n))
    first = [lamella.randperm(3, device="cuda").tolist() for _ in range(600)]
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        assert 60 < first.count(order) < 140
    generator = lamella.Generator("cuda").manual_seed(5)
    again = lamella.Generator("cuda").manual_seed(5)
    assert (
        lamella.randperm(50, device="cuda", generator=generator).tolist()
        == lamella.randperm(50, device="cuda", generator=again).tolist()
    )
    with pytest.raises(RuntimeError, match="randperm: expected 'n' of at most 256"):
        lamella.randperm(300, dtype=lamella.uint8, device="cuda")
    assert not cuda.fallbacks()


@pytest.mark.parametrize("n", [5, 1000, 24000, 30000])
def test_permutations_follow_keys(cuda, n):
    """The order of keys by the low bits that PyTorch sorts by there; then n numbers are passed."""
    bits = math.ceil(math.log2(n - (6.0 * n * n + 1) / (12 * math.log(0.9))))
    width = 32 if bits <= 32 else 64
    dtype = I32 if width == 32 else I64
    generator = lamella.Generator("cuda").manual_seed(n)
    made = lamella.randperm(n, device="cuda", generator=generator).tolist()
    again = lamella.Generator("cuda").manual_seed(n)
    keys = lamella.empty(n, dtype=dtype, device="cuda")
    keys = keys.random_(-(2 ** (width - 1)), 2 ** (width - 1) - 1, generator=again).tolist()
    if bits < width:
        keys = [key % 2**bits for key in keys]
    assert sorted(made) == list(range(n))
    found = [keys[place] for place in made]
    assert found == sorted(found) and not cuda.fallbacks()
    before, after = (
        int.from_bytes(bytes(g.get_state().tolist())[8:16], "little") for g in (again, generator)
    )
    assert after - before == (n + 3) // 4 * 4


@pytest.mark.parametrize("dtype", [lamella.float32, F64, lamella.bfloat16], ids=str)
def test_choices_by_weights(cuda, dtype):
    cuda.manual_seed(4)
    weights = lamella.tensor([[0, 1, 3, 0], [2, 0, 2, 0.0]], dtype=dtype).cuda()
    drawn = weights.multinomial(4000, True).cpu()
    assert drawn.shape == (2, 4000) and not cuda.fallbacks()
    share = [[(row == i).float().mean().item() for i in range(4)] for row in drawn]
    for got, expected in zip(share, ([0, 0.25, 0.75, 0], [0.5, 0, 0.5, 0])):
        assert got == pytest.approx(expected, abs=0.04)
        assert [i for i in range(4) if got[i] == 0] == [i for i in range(4) if expected[i] == 0]
    both = weights.multinomial(2)
    assert [sorted(row) for row in both.tolist()] == [[1, 2], [0, 2]]
    assert weights[0].multinomial(1).shape == (1,) and not cuda.fallbacks()
    for bad in ([1.0, -1.0], [0.0, 0.0], [1.0, float("inf")], [float("nan"), 1.0]):
        x = lamella.tensor(bad, dtype=dtype)
        with pytest.raises(RuntimeError) as here:
            x.multinomial(1)
        with pytest.raises(RuntimeError) as there:
            x.cuda().multinomial(1)
        assert str(here.value) == str(there.value)
