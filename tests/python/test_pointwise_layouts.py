"""Pointwise operators over all memory layouts of operands, bit for bit equal to PyTorch's."""

import itertools

import pytest

import lamella

torch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
ROWS, COLUMNS = 19, 149

# Name -> (a tensor of ROWS x COLUMNS elements, more for those with gaps) -> an operand.
LAYOUTS = {
    "contiguous": lambda x: x[:ROWS, :COLUMNS].contiguous(),
    "a row": lambda x: x[:1, :COLUMNS].contiguous(),
    "a column": lambda x: x[:ROWS, :1].contiguous(),
    "one": lambda x: x[0, 0],
    "every second": lambda x: x[:ROWS, : 2 * COLUMNS : 2],
    "every third": lambda x: x[:ROWS, : 3 * COLUMNS : 3],
    "every fourth": lambda x: x[:ROWS, : 4 * COLUMNS : 4],
    "every fifth": lambda x: x[:ROWS, : 5 * COLUMNS : 5],
    "gaps between rows": lambda x: x[:ROWS, 3 : COLUMNS + 3],
    "transposed": lambda x: x[:COLUMNS, :ROWS].contiguous().t(),
    "transposed with gaps": lambda x: x[: 2 * COLUMNS : 2, : 3 * ROWS : 3].t(),
}
BINARY = ["add", "mul", "maximum", "lt", "eq"]


def values(dtype, seed):
    numbers = torch.Generator().manual_seed(seed)
    if dtype in INTEGERS:
        return torch.randint(1, 100, (300, 800), generator=numbers).to(getattr(torch, dtype))
    x = torch.randn((300, 800), generator=numbers).to(getattr(torch, dtype))
    special = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-8, 65504.0])
    x.view(-1)[: 40 * 7] = special.repeat(40).to(x.dtype)
    return x


def ours(x):
    """The same strides over a copy of the same memory."""
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return lamella.from_dlpack(whole.clone()).as_strided(x.shape, x.stride(), x.storage_offset())


def same(got, expected, signs=True):
    """`signs` compares those of zeros too, which a maximum may take from either operand."""
    got = torch.from_dlpack(got)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert torch.equal(got.isnan(), expected.isnan())
    if got.dtype.is_floating_point:
        got, expected = got.nan_to_num(7.0), expected.nan_to_num(7.0)
        assert not signs or torch.equal(got.signbit(), expected.signbit())
    assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_layouts(dtype):
    a, b = values(dtype, 1), values(dtype, 2)
    for x_of, y_of in itertools.product(LAYOUTS.values(), repeat=2):
        x, y = x_of(a), y_of(b)
        for name in BINARY:
            expected = getattr(torch, name)(x, y)
            same(getattr(lamella, name)(ours(x), ours(y)), expected, name != "maximum")
        condition = x_of(a) > y_of(b)
        same(lamella.where(ours(condition), ours(x), ours(y)), torch.where(condition, x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_three_operands(dtype):
    a, b, c = (values(dtype, seed) for seed in (1, 2, 3))
    some = ["contiguous", "a row", "a column", "every second", "transposed"]
    for names in itertools.product(some, repeat=3):
        x, y, z = (LAYOUTS[name](t) for name, t in zip(names, (a, b, c)))
        same(lamella.clamp(ours(x), ours(y), ours(z)), torch.clamp(x, y, z), False)
        # The product may be rounded before the sum, or not.
        got = torch.from_dlpack(lamella.addcmul(ours(x), ours(y), ours(z), value=0.5)).double()
        expected = torch.addcmul(x, y, z, value=0.5).double()
        bound = x.double().abs() + (y.double() * z.double()).abs()
        close = (got - expected).abs() <= 2 * torch.finfo(x.dtype).eps * bound
        assert (close | (got == expected) | (got.isnan() & expected.isnan())).all()


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_numbers_and_outputs(dtype):
    a = values(dtype, 1)
    number = 3 if dtype in INTEGERS else 1.5
    for layout in LAYOUTS.values():
        x = layout(a)
        same(ours(x) + number, x + number)
        same(number * ours(x), number * x)
        same(number - ours(x), number - x)
        same(ours(x) >= number, x >= number)
        same(lamella.where(ours(x > 5), ours(x), number), torch.where(x > 5, x, number))
        for out_layout in ("contiguous", "every second", "transposed"):
            if x.shape != (ROWS, COLUMNS):
                continue
            out = LAYOUTS[out_layout](torch.zeros_like(a))
            mine = ours(out)
            torch.add(x, x, out=out)
            lamella.add(ours(x), ours(x), out=mine)
            same(mine, out)


@pytest.mark.parametrize("dtypes", [*itertools.permutations(["float16", "bfloat16", "int8"], 2)])
def test_mixed_types(dtypes):
    a, b = values(dtypes[0], 1), values(dtypes[1], 2)
    for x_name, y_name in itertools.product(["contiguous", "a row", "transposed"], repeat=2):
        x, y = LAYOUTS[x_name](a), LAYOUTS[y_name](b)
        same(ours(x) + ours(y), x + y)
        same(ours(x) < ours(y), x < y)


@pytest.mark.parametrize("size", [1, 7, 16, 17, 100, 511, 512, 513, 5000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lengths_of_small_types(dtype, size):
    x, y = values(dtype, 1).view(-1)[:size], values(dtype, 2).view(-1)[:size]
    for name in BINARY + ["sub", "div", "minimum", "copysign", "logical_and", "ge"]:
        expected = getattr(torch, name)(x, y)
        same(getattr(lamella, name)(ours(x), ours(y)), expected, not name.endswith("imum"))
    for name in ("neg", "abs", "relu", "sign", "floor", "square", "logical_not"):
        same(getattr(lamella, name)(ours(x)), getattr(torch, name)(x))


@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16"])
def test_arrays_beyond_the_cache(dtype, offset):
    """Outputs that go past the caches, from any address, for any number of threads."""
    n = 13_000_000 if dtype == "int8" else 6_000_001 if dtype == "bfloat16" else 3_000_001
    x = torch.arange(n + offset, dtype=torch.int32).remainder(97).to(getattr(torch, dtype))[offset:]
    y = x.flip(0)[offset:].contiguous() if offset == 0 else x.flip(0)
    mine = lamella.from_dlpack(x), lamella.from_dlpack(y)
    before = lamella.get_num_threads()
    try:
        for threads in (1, 3):
            lamella.set_num_threads(threads)
            same(mine[0] + mine[1], x + y)
            same(mine[0] * 2, x * 2)
            same(mine[0] < mine[1], x < y)
            z = lamella.zeros_like(mine[0])
            lamella.add(mine[0], mine[1], out=z[:n])
            same(z, x + y)
            half = n // 4 * 2  # operands that are gathered or converted on their way
            same(mine[0][:half:2] + mine[1][1:half:2], x[:half:2] + y[1:half:2])
            same(-mine[0].flip(0), -x.flip(0))
            same(mine[0] + mine[1].to(lamella.int16), x + y.to(torch.int16))
    finally:
        lamella.set_num_threads(before)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_of_integers(dtype):
    least, most = torch.iinfo(getattr(torch, dtype)).min, torch.iinfo(getattr(torch, dtype)).max
    edges = [0, 1, 2, 3, 7, 100, most, most - 1] + (
        [-1, -2, -3, -7, -100, least + 1] if least else []
    )
    pairs = [(a, b) for a in edges + [least] for b in edges + [least] if b != 0]
    x, y = (torch.tensor(column, dtype=getattr(torch, dtype)) for column in zip(*pairs))
    overflow = (x == least) & (y == -1) if least else torch.zeros_like(x, dtype=torch.bool)
    for name in ("floor_divide", "remainder", "fmod"):
        got = torch.from_dlpack(getattr(lamella, name)(ours(x), ours(y)))
        wide = getattr(torch, name)(x[~overflow].to(torch.int64), y[~overflow].to(torch.int64))
        assert torch.equal(got[~overflow], wide.to(x.dtype))
        assert (got[overflow] == (least if name == "floor_divide" else 0)).all()
    got = torch.from_dlpack(lamella.div(ours(x), ours(y), rounding_mode="trunc"))
    wide = torch.div(x[~overflow].long(), y[~overflow].long(), rounding_mode="trunc")
    assert torch.equal(got[~overflow], wide.to(x.dtype))
    with pytest.raises(RuntimeError, match="expected integers in 'other' other than zero, got 0"):
        lamella.floor_divide(ours(x), 0)


def test_fractions_that_wrap():
    """Small unsigned integers take the lowest bits of the int64 value."""
    values = [-1.5, -300.0, 255.9, 256.0, 70_000.5, 2.0**31, -(2.0**31), 2.0**31 + 1024, -(2.0**40)]
    for source, n in ((torch.float32, 9), (torch.float64, 9), (torch.float64, 3000)):
        x = torch.tensor(values, dtype=source).repeat(n // 9 + 1)[:n]
        for target, bits in ((torch.uint8, 8), (torch.uint16, 16)):
            got = ours(x).to(getattr(lamella, str(target)[6:])).to(lamella.int64)
            assert got.tolist() == [int(v) % 2**bits for v in x.tolist()]
