"""Masks, ranges, pieces, sorting and searching on "cuda": equal to the CPU's bit for bit."""
# ruff: noqa: B023 (functions are called before their loop goes on)

import pytest
from beside_the_cpu import DTYPES, REAL, same, same_gradient, values

import lamella
import lamella.nn.functional as F


@pytest.fixture(autouse=True)
def no_fallbacks(cuda):
    yield
    # What the checks call beside the operators of the family.
    beside = ("aten::mul", "aten::sum", "aten::cumsum", "aten::am", "aten::sub", "aten::bitwise")
    beside += (
        "aten::eq",
        "aten::ne.",
        "aten::count_nonzero",
        "aten::any",
        "aten::mean",
        "aten::div",
        "aten::isnan",
        "aten::remainder",
    )
    assert not [name for name in cuda.fallbacks() if not name.startswith(beside)]


def shuffled(dtype, *shape):
    """Every value of a small range, more than once, in no order."""
    n = lamella.zeros(shape).numel()
    x = (lamella.arange(n) * 7919 % 251 % 97).reshape(shape)
    x = x % 2 == 0 if dtype == lamella.bool else (x - (40 if dtype.is_signed else 0)).to(dtype)
    if dtype.is_floating_point and n > 12:
        x.view(-1)[[3, 7]] = float("nan")
        x.view(-1)[5] = float("-inf")
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(dtype):
    for x in (
        values(dtype, 3, 4, 5),
        values(dtype, 5, 4, 3).transpose(0, 2),
        values(dtype, 6, 8)[::2, ::2],
    ):
        mask = lamella.arange(x.numel()).reshape(x.shape) % 3 == 1
        few = mask[:, :1]
        same(lambda u, m: (u.masked_fill(m, 1), u[m], u.masked_select(m)), x, mask)
        same(lambda u, m: (u.masked_fill(m, 1), u.masked_select(m), u[m.expand(u.shape)]), x, few)
        same(
            lambda u, m: (u[m[:, 0].reshape(3, -1)[:, 0]], u.masked_fill(m, u[0].reshape(-1)[0])),
            x,
            mask,
        )
        same(lambda u, m, v: u.masked_scatter(m, v), x, mask, x.flip(0))
        same(lambda u: (u.nonzero(), u.argwhere(), lamella.count_nonzero(u).nonzero()), x[:1])

        def assigned(u, m):
            u = u.clone()
            u[m] = 1
            u[~m] = u[m][: int((~m).sum())].repeat(3)[: int((~m).sum())]
            return u

        same(assigned, x, mask)
    same(lambda u: (u[u != 0], u.nonzero(), u.masked_select(u == 2)), values(dtype, 0, 3))
    same(lambda u: u.masked_fill(u == 1, 0), values(dtype, 1).reshape(()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pieces(dtype):
    x = values(dtype, 3, 4, 5)
    same(lambda u: (u.flip(0), u.flip(0, 2), u.transpose(0, 1).flip(-1), u[:, ::2].flip(1)), x)
    same(lambda u: (u.tril(), u.triu(1), u.mT.tril(-1), u.transpose(0, 2).triu(9), u.tril(-9)), x)
    same(lambda u: (lamella.cat([u, u[:1], u], 0), lamella.cat([u, u[..., ::2]], 2)), x)
    same(
        lambda u: (lamella.cat([u.mT, u.mT], 1), lamella.stack([u, u], 1), lamella.hstack([u, u])),
        x,
    )
    same(lambda u: (u.roll(2), u.roll((1, -1), (0, 2)), u.repeat(2, 1, 3), u.rot90(1, (0, 1))), x)
    same(
        lambda u: (u.diag_embed(), u[0].diag(), F.pad(u, (1, 2, 0, 1)), F.pad(u, (-1, 1), value=1)),
        x,
    )
    same(lambda u: (u.repeat_interleave(2, 1), u.unfold(2, 2, 1).clone(), u.new_full((2,), 1)), x)
    same(lambda u, r: u.repeat_interleave(r, 0), x, lamella.tensor([2, 0, 3]))
    same(lambda u, i: lamella.cat([u, u.to(lamella.complex128)], 0), x, x)
    same(lambda u: F.pixel_shuffle(u, 2), values(dtype, 1, 8, 2, 3))
    out = lamella.empty(0, dtype=dtype, device="cuda")
    lamella.cat([x.cuda(), x.cuda()], 1, out=out)
    assert out.cpu().equal(lamella.cat([x, x], 1))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_complex], ids=str)
def test_ranges(dtype):
    def made(device):
        options = {"dtype": dtype, "device": device}
        yield lamella.arange(7, **options)
        yield lamella.eye(3, 4, **options)
        yield lamella.ones(3, **options)
        yield lamella.full((2, 2), 1, **options)
        if dtype != lamella.bool:
            yield lamella.arange(2, 40, 3, **options)
            yield lamella.linspace(-3 if dtype.is_signed else 0, 10, 7, **options)
            yield lamella.linspace(3, 5, 1, **options)
            yield lamella.arange(0, 0, **options)
        if dtype.is_signed:
            yield lamella.arange(9, -5, -4, **options)
        if dtype.is_floating_point:
            yield lamella.arange(0.5, 3, 0.3, **options)
            yield lamella.linspace(-1, 1, 10, **options)
        spaced = lamella.zeros(10, **options)[::2]
        yield lamella.arange(5, out=spaced)

    for a, b in zip(made("cpu"), made("cuda")):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()


@pytest.mark.parametrize("dtype", REAL + [lamella.bool], ids=str)
def test_sorting(dtype):
    for x in (
        shuffled(dtype, 5, 7, 3),
        shuffled(dtype, 2, 2500),
        shuffled(dtype, 4),
        shuffled(dtype, 1),
    ):
        for dim in (0, -1):
            for descending in (False, True):
                same(lambda u: u.sort(dim=dim, descending=descending, stable=True), x)
            same(lambda u: u.topk(min(3, u.shape[dim]), dim).values, x)
            same(lambda u: u.topk(min(3, u.shape[dim]), dim, largest=False).values, x)
            same(lambda u: (u.argsort(dim=dim, stable=True), u.msort()), x)
            same(lambda u: u.kthvalue(1, dim).values, x)
            same(lambda u: u.median(dim).values, x)
        same(
            lambda u: u.unique(return_inverse=True, return_counts=True),
            x.nan_to_num(1, 2, 3) if dtype.is_floating_point else x,
        )
        same(lambda u: u.unique_consecutive(return_inverse=True, return_counts=True), x)
        same(
            lambda u: u.reshape(u.shape[0], -1)[:, :3].unique(dim=0, return_inverse=True),
            x.nan_to_num(1, 2, 3) if dtype.is_floating_point else x,
        )
    same(lambda u: (u.sort(), u[:, None].sort(1), u.reshape(0, 3).sort(0))[1], values(dtype, 0))
    same(lambda u: u[0].sort(), values(dtype, 1))
    values_out, indices = (
        lamella.empty(0, dtype=dtype, device="cuda"),
        lamella.empty(0, dtype=lamella.int64, device="cuda"),
    )
    x = shuffled(dtype, 3, 8)
    lamella.sort(x.cuda(), stable=True, dim=1, out=(values_out, indices))
    assert indices.cpu().equal(x.sort(dim=1, stable=True).indices)


@pytest.mark.parametrize("dtype", REAL + [lamella.bool], ids=str)
def test_long_lines(dtype, standin):
    """Sorting by digits: a pass over the elements for each byte, whatever the values."""
    generator = lamella.Generator().manual_seed(3)
    lines = lamella.randint(-128, 128, (2, 9001, 8), dtype=lamella.int8, generator=generator)
    # All patterns of bits: subnormal numbers, infinities and NaN of both signs too.
    x = lines.view(lamella.int64).squeeze(-1)[:, : 1024 * dtype.itemsize + 809]
    x = x > 0 if dtype == lamella.bool else x.contiguous().view(dtype)[:, : x.shape[1]]
    if dtype.is_floating_point:
        x = x.contiguous()
        special = [0.0, -0.0, float("nan"), float("-inf"), 1.0, -1.0, float("inf"), -0.0, 0.0]
        x[:, ::2] = lamella.tensor(special, dtype=dtype).repeat(x.shape[1])[: x[:, ::2].shape[1]]
    for descending in (False, True):
        same(lambda u: u.sort(descending=descending, stable=True), x)
        same(lambda u: u.sort(dim=0, descending=descending, stable=True), x.t())
    same(lambda u: u.topk(x.shape[1] - 700).values, x)
    same(lambda u: u.argsort(stable=True), x[0, ::2].contiguous().repeat(2))
    if dtype.is_floating_point:
        x = x.nan_to_num(1, 2, 3)
    same(lambda u: u.unique(return_inverse=True, return_counts=True), x)
    y = x.cuda()
    standin.standin_reset_calls()
    y.sort()
    # Zeros, and a kernel that counts the digits.
    assert standin.calls("cuLaunchKernel") == 2 + dtype.itemsize
    assert standin.calls("cuStreamSynchronize") == 0


@pytest.mark.parametrize("dtype", REAL + [lamella.bool], ids=str)
def test_lines_around_tiles(dtype):
    """Lines of one tile or several, one more and one less: equal elements keep their order."""
    torch = pytest.importorskip("torch")
    for n in (0, 1, 1023, 1024, 1025, 4096, 4097):
        x = shuffled(dtype, 2, n)
        if dtype.is_floating_point:
            x[:, 11::13], x[:, 10::13] = -0.0, 0.0
            x[:, 9::17] = float("inf")
        for lines in (x, shuffled(dtype, n, 1).t()):
            for descending in (False, True):
                got = lines.cuda().sort(dim=1, descending=descending, stable=True)
                wanted = torch.from_dlpack(lines).sort(dim=1, descending=descending, stable=True)
                assert torch.equal(torch.from_dlpack(got.indices.cpu()), wanted.indices), n
                found = torch.from_dlpack(got.values.cpu())
                assert torch.equal(found.nan_to_num(7), wanted.values.nan_to_num(7))


def test_topk_indices_belong_to_values():
    for n in (3000, 2048, 40000):
        same(
            lambda u: (u.topk(50).values, u.topk(9, largest=False).values),
            shuffled(lamella.float32, 2, n),
        )
        first = shuffled(lamella.int16, 2, n)
        expected = first.sort(dim=1, stable=True).indices[:, :20]
        assert first.cuda().topk(20, largest=False).indices.cpu().equal(expected)
    x = shuffled(lamella.float32, 4, 3000).nan_to_num(0, 0, 0).cuda()
    found, at = x.topk(50)
    assert x.gather(1, at).equal(found) and at.cpu().sort(1).values.diff(dim=1).ne(0).all()


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_searching(dtype):
    lines = shuffled(dtype, 3, 9).sort(1).values
    wanted = shuffled(dtype, 3, 20)
    for right in (False, True):
        same(lambda u, v: lamella.searchsorted(u, v, right=right), lines, wanted)
        same(lambda u, v: lamella.bucketize(v, u[0], right=right, out_int32=True), lines, wanted)
    same(lambda u, v: lamella.isin(v, u), lines[:, :4], wanted)
    same(lambda u: (lamella.bucketize(3, u), lamella.searchsorted(u, 3)), lines[0])
    if not dtype.is_floating_point:
        x = wanted.reshape(-1).abs()
        same(lambda u: (u.bincount(), u.bincount(minlength=200)), x)
        same(lambda u: u.bincount(u.float()), x)
        same(lambda u: F.one_hot(u.long()), x[:5])


def test_gradients():
    x = values(lamella.float32, 3, 4)
    mask = x > 0
    same_gradient(lambda u, m: u[m], x, mask)
    same_gradient(lambda u, m: u.masked_fill(m, 2), x, mask)
    same_gradient(lambda u, m: u.masked_select(m), x, mask)
    same_gradient(lambda u, m: u.masked_scatter(m, 2 * u), x, mask)
    same_gradient(lambda u: lamella.cat([u, 2 * u], 1), x)
    same_gradient(lambda u: lamella.stack([u, 2 * u], 1), x)
    same_gradient(lambda u: u.flip(0).tril().roll(1).repeat_interleave(1, 0), x)
    same_gradient(lambda u: u[1:, ::2], x)
    same_gradient(lambda u: u[1], x)
    same_gradient(lambda u: u.sort(dim=1, stable=True), x)
    same_gradient(lambda u: u.topk(2, 1), x)
    same_gradient(lambda u: u.kthvalue(2, 1), x)


def message(call):
    with pytest.raises((RuntimeError, IndexError, ValueError)) as error:
        call()
    return type(error.value), str(error.value)


def test_errors(cuda):
    x, mask = lamella.zeros(3, 4), lamella.ones(3, 4, dtype=lamella.bool)
    for call in (
        lambda d: x.to(d).masked_fill(mask.to(d).int(), 1),
        lambda d: x.to(d).masked_fill(mask.to(d)[:2], 1),
        lambda d: x.to(d).masked_scatter(mask.to(d), x.to(d).int()),
        lambda d: x.to(d).masked_select(mask.to(d)[:2]),
        lambda d: x.to(d).masked_select(mask.to(d).int()),
        lambda d: lamella.cat([x.to(d), x.to(d)[:, :2]], 0),
        lambda d: lamella.cat([], 0),
        lambda d: x.to(d).sort(3),
        lambda d: x.to(d).topk(9),
        lambda d: x.to(d)[0].tril(),
        lambda d: x.to(d).flip(0, 0),
        lambda d: lamella.searchsorted(x.to(d), x.to(d)[:2]),
        lambda d: lamella.arange(0, 3, -1, device=d),
        lambda d: lamella.tensor([-1]).to(d).bincount(),
        lambda d: x.to(d).repeat_interleave(lamella.tensor([1, -1, 2]).to(d), 0),
        lambda d: x.to(d).to(lamella.complex64).sort(),
    ):
        assert message(lambda: call("cuda")) == message(lambda: call("cpu"))
    expected = message(lambda: x.masked_scatter(mask, x[:2]))
    y = x.clone().cuda()
    y.masked_scatter_(mask.cuda(), x.cuda()[:2])
    assert message(cuda.synchronize) == (expected[0], "cuda:0: " + expected[1])
    assert y.cpu().equal(x)  # nothing is written
    cuda.reset_fallbacks()
