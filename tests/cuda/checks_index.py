"""Indexing on "cuda": equal to the CPU's bit for bit, without falling back, and with its errors."""
# ruff: noqa: B023 (functions are called before their loop goes on)

import itertools

import pytest
from beside_the_cpu import DTYPES, REAL, same, values

import lamella
import lamella.nn.functional as F


@pytest.fixture(autouse=True)
def no_fallbacks(cuda):
    yield
    # What the checks call beside the operators of the family.
    beside = (
        "aten::mul",
        "aten::div_",
        "aten::sum",
        "aten::pow",
        "aten::cumsum",
        "aten::reciprocal",
    )
    assert not [name for name in cuda.fallbacks() if not name.startswith(beside)]


I64 = lamella.tensor([2, 0, 1, 2])
SHAPES = [(3, 4, 5), (3, 1, 2), (3, 0, 2), (3,)]


def layouts(dtype):
    x = values(dtype, 3, 4, 5)
    yield from (x, values(dtype, 5, 4, 3).transpose(0, 2), values(dtype, 6, 4, 10)[::2, :, ::2])
    yield from (values(dtype, 3, 1, 5).expand(3, 4, 5), values(dtype, 3), values(dtype, 3, 0, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reading(dtype):
    for x in layouts(dtype):
        for index in (I64, I64.int(), I64[:0], I64[0], lamella.stack([I64, I64], 1)[:, 1]):
            same(lambda u, i: u.index_select(0, i), x, index)
        same(lambda u, i: u.gather(0, i), x, lamella.zeros_like(x, dtype=lamella.int64))
        same(
            lambda u, i: (u[i], u[..., i[:2]], u[i[:2, None]]),
            x[:2] if x.dim() == 1 else x[..., :2],
            I64 % 2,
        )
        same(lambda u, i: lamella.take(u, i), x if x.numel() else values(dtype, 2), I64 - 2)
    x = values(dtype, 3, 4, 5)
    index = lamella.tensor([[1, -1], [0, 2]])
    same(
        lambda u, i: (u[i], u[:, i], u[:, :, i], u[i, :, i], u[i, i], u[:, i, i], u[i, i, i]),
        x,
        index,
    )
    same(lambda u, i: (u[None, i], u[:, None, i], u[i, ..., 1:3], u[i, None, i]), x, index)
    same(lambda u, i: (u.gather(1, i[:, None]), u.gather(2, i.expand(2, 2, 2))), x, index % 2)
    same(lambda u, i: lamella.take_along_dim(u, i.reshape(4, 1, 1), 0), x, index.abs() % 3)
    same(lambda u: u.reshape(60)[7].index_select(0, lamella.zeros(1, dtype=int).to(u.device)), x)
    same(lambda u: u[lamella.tensor([1, 0])], x)  # indices of the host
    same(lambda w, i: F.embedding(i, w), values(dtype, 3, 5), I64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writing(dtype):
    x, few = values(dtype, 3, 4, 5), values(dtype, 2, 4, 5)
    at = lamella.tensor([2, 0])
    wide = at[:, None, None].expand(2, 4, 5)
    for u in (x, values(dtype, 5, 4, 3).transpose(0, 2), values(dtype, 6, 4, 10)[::2, :, ::2]):
        same(lambda u, i, v: u.index_copy(0, i, v), u, at, few)
        same(lambda u, i, v: u.scatter(0, i, v), u, wide, few)
        same(lambda u, i: u.scatter(0, i, 1), u, wide)
        same(lambda u, i: u.index_fill(1, i, 1), u, at)
        same(lambda u, i, v: u.index_put((i,), v), u, at, few)
        same(lambda u, i, v: u.index_put((i, i), v), u, at, few[:, 0])
        same(lambda u, i, v: u.put(i, v), u, at, few.reshape(-1)[:2])
        same(lambda u, i, v: u.clone().index_copy_(0, i.int(), v), u, at, few)
        same(
            lambda u, i, v: lamella.scatter(u, 0, i, v, out=lamella.empty_like(v[:1])), u, wide, few
        )
    if dtype != lamella.bool:
        same(lambda u, i, v: u.index_add(0, i, v, alpha=2), x, at, few)
        same(lambda u, i, v: u.index_put((i,), v, accumulate=True), x, at, few)
    same(lambda u, i, v: u.scatter_add(0, i, v), x, wide, few)
    same(lambda u, i, v: u.put(i, v, True), x, at, few.reshape(-1)[:2])

    def assigned(u, i):
        u = u.clone()
        u[i, 1:3] = u[0, 0, 0].clone()
        u[:, i] = u[:1, :2].clone()
        u[..., -1] = 1
        return u

    same(assigned, x, at)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_reductions(dtype):
    x, more = values(dtype, 3, 4), values(dtype, 5, 4)
    index = lamella.tensor([0, 2, 0, 0, 2])[:, None].expand(5, 4)
    # The stand-in's threads run in order; sums of small integers are exact anyway.
    for reduce, include in itertools.product(
        ("sum", "prod", "mean", "amax", "amin"), (True, False)
    ):
        if dtype in (lamella.uint8, lamella.int8) and reduce == "mean":
            continue
        same(
            lambda u, i, v: u.scatter_reduce(0, i, v, reduce, include_self=include), x, index, more
        )
    for reduce in ("prod", "amax", "amin"):
        same(lambda u, i, v: u.index_reduce(0, i, v, reduce), x, index[:, 0], more)
    for reduce in ("add", "multiply"):
        same(lambda u, i, v: u.scatter(0, i, v, reduce=reduce), x, index, more)
        same(lambda u, i: u.scatter(0, i, 2, reduce=reduce), x, index)
    same(lambda u, i, v: u.index_add(0, i, v), x, index[:, 0], more)
    same(lambda u, i, v: u.index_put((i,), v, True), x, index[:, 0], more)
    if dtype.is_floating_point:
        nan = more.clone()
        nan[1, 2] = float("nan")
        same(lambda u, i, v: u.scatter_reduce(0, i, v, "amax"), x, index, nan)


@pytest.mark.parametrize("dtype", [lamella.uint8, lamella.bfloat16, lamella.float64], ids=str)
def test_rows_of_any_alignment(dtype):
    at = lamella.tensor([2, 0, 3])
    for width in (1, 2, 3, 4, 6, 8, 16, 24, 32, 33):
        wide = values(dtype, 4, 40)
        for x in (values(dtype, 4, width), wide[:, :width], wide[:, 1 : 1 + width]):
            same(
                lambda u, i: (u.index_select(0, i), u[i], u[i, i]),
                x[:, :4] if width > 3 else x.expand(4, 4) if width == 1 else x[:, :1].expand(4, 4),
                at,
            )
            same(lambda u, i: (u.index_select(0, i), u.index_copy(0, i, u[:3] * 2)), x, at)


def test_many_dimensions_and_indices():
    x = lamella.arange(2.0**8).reshape([2] * 8)
    i = lamella.tensor([1, 0, 1])
    same(lambda u, i: (u[i, :, i], u[i, i, i, i, i, i], u[:, i, :, i, :, i]), x, i)
    same(lambda u, i: u.permute(7, 5, 3, 1, 0, 2, 4, 6)[:, i], x, i)


def test_gradients():
    def gradients(function, *inputs):
        def run(*given):
            x = given[0].clone().requires_grad_()
            y = function(x, *given[1:])
            return lamella.autograd.grad((y * y).sum(), x)[0]

        same(run, *inputs)

    x = values(lamella.float32, 3, 4)
    at = lamella.tensor([[0, 2], [2, 2]])
    gradients(lambda u, i: u[i], x, at)
    gradients(lambda u, i: u[i, i], x, at)
    gradients(lambda u, i: u.index_select(0, i[0]), x, at)
    gradients(lambda u, i: u.gather(0, i), x, at)
    gradients(lambda u, i: u.take(i), x, at)
    gradients(lambda u, i: u.scatter(0, i, 2 * u), x, at)
    gradients(lambda u, i: u.scatter_add(0, i, 2 * u), x, at)
    gradients(lambda u, i: u.index_add(0, i[1], 2 * u[:2]), x, at)
    gradients(lambda u, i: u.index_copy(0, i[0], 2 * u[:2]), x, at)
    gradients(lambda u, i: u.index_fill(0, i[0], 2), x, at)
    gradients(lambda u, i: u.index_put((i[0],), 2 * u[:2]), x, at)
    for dtype in (lamella.float32, lamella.bfloat16):
        gradients(lambda w, i: F.embedding(i, w), x.to(dtype), at)
        gradients(lambda w, i: F.embedding(i, w, padding_idx=2), x.to(dtype), at)
    gradients(lambda w, i: F.embedding(i, w, 0, scale_grad_by_freq=True), x, at)


# ---- Errors --------------------------------------------------------------------------------------

CALLS = {
    "index": lambda u, i: u[i],
    "index_select": lambda u, i: u.index_select(0, i),
    "gather": lambda u, i: u.gather(0, i),
    "take": lambda u, i: u.take(i),
    "index_put_": lambda u, i: u.index_put_((i,), u[:1] * 2),
    "index_copy": lambda u, i: u.index_copy(0, i, u[:3]),
    "index_fill_": lambda u, i: u.index_fill_(0, i, 9),
    "index_add": lambda u, i: u.index_add(0, i, u[:3]),
    "scatter": lambda u, i: u.scatter(0, i, 9),
    "scatter_add": lambda u, i: u.scatter_add_(0, i, u * 2),
    "put_": lambda u, i: u.put_(i, u[:3] * 2),
    "embedding_dense_backward": lambda u, i: lamella.ops.aten.embedding_dense_backward(
        u[:3, None], i, 4, -1, False
    ),
}


def message(call):
    with pytest.raises((RuntimeError, IndexError)) as error:
        call()
    return type(error.value), str(error.value)


@pytest.mark.parametrize("bad", [7, -8, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("name", CALLS)
def test_indices_out_of_range(name, bad, cuda, standin):
    """The next wait raises the CPU's error, and nothing is written; the device works on."""
    index = lamella.tensor([1, bad, 0])
    x = lamella.arange(5.0)
    expected = message(lambda: CALLS[name](x.clone(), index))
    guarded = lamella.full((15,), -1.0, device="cuda")
    on_device, index = guarded[5:10].copy_(x.cuda()), index.cuda()
    cuda.synchronize()
    standin.standin_reset_calls()
    CALLS[name](on_device, index)
    assert standin.calls("cuStreamSynchronize") == 0
    raised, text = message(cuda.synchronize)
    assert raised is expected[0] and text.replace("synchronize: ", "") == "cuda:0: " + expected[1]
    cuda.synchronize()
    assert guarded[:5].tolist() == guarded[10:].tolist() == [-1.0] * 5
    CALLS[name](on_device, index)
    assert message(lambda: on_device.cpu()) == (expected[0], "cuda:0: " + expected[1])
    assert on_device.add(1).shape == (5,)


def test_errors_before_a_launch():
    x, i = lamella.zeros(3, 4), lamella.tensor([0, 1])
    for call in (
        lambda d: x.to(d).index_select(5, i.to(d)),
        lambda d: x.to(d).index_select(0, i.to(d).float()),
        lambda d: x.to(d).gather(0, i.to(d)),
        lambda d: x.to(d).scatter_(0, i.to(d)[:, None], x.to(d).int()),
        lambda d: x.to(d).index_add_(0, i.to(d), x.to(d) + 1),
        lambda d: x.to(d)[i.to(d), i.to(d), i.to(d)],
        lambda d: x.to(d)[i.to(d), lamella.tensor([0, 1, 2]).to(d)],
        lambda d: x.to(d).index_put_((i.to(d),), x.to(d) + 1),
        lambda d: x.to(d)[x.to(d)[:, :3] > 0],
        lambda d: x.to(d).expand(2, 3, 4).index_fill_(0, i.to(d), 1).scatter_(0, i.to(d), 1),
        lambda d: (lambda u: u.scatter_(0, u.long()[:1], u[1:]))(x.to(d)),
        lambda d: (lambda u: u.scatter_(0, lamella.zeros_like(u[:2], dtype=int), u[1:]))(
            x.clone().to(d)
        ),
        lambda d: (lambda u: u.index_put_((i.to(d),), u[:2]))(x.clone().to(d)),
        lambda d: (lambda u: lamella.gather(u, 0, lamella.zeros_like(u, dtype=int), out=u))(
            x.clone().to(d)
        ),
        lambda d: (lambda u: lamella.index_select(u, 0, i.to(d), out=u))(x.clone().to(d)),
        lambda d: (lambda u: u.index_add_(0, i.to(d), u[:2]))(x.clone().to(d)),
    ):
        assert message(lambda: call("cuda")) == message(lambda: call("cpu"))


# ---- The same bits in every run ------------------------------------------------------------------


def test_sums_in_order(cuda):
    cuda.use_deterministic_algorithms(True)
    try:
        # In another order float32 gives another sum.
        x = lamella.tensor([1e8, 1.0, -1e8, 1.0, 3.0, 0.5] * 40)
        at = lamella.tensor([2, 0, 2, 2, 0, -1] * 40)
        for dtype in (lamella.float32, lamella.bfloat16, lamella.float64):
            v = x.to(dtype)
            same(lambda u, i: u[:4].index_put((i,), u, accumulate=True), v, at)
            same(lambda u, i: u[:4].scatter_add(0, i, u), v, at.abs())
            same(lambda u, i: u[:4].scatter_reduce(0, i, u, "prod"), v / v, at.abs())
            same(lambda u, i: u[:4].index_add(0, i, u), v, at.abs())
            same(lambda u, i: u.index_copy(0, i, u * 3), v, at)  # the last value stays
            same(lambda u, i: u[:8].reshape(2, 4).index_put((i, i), u, True), v, at.abs() % 2)
        same(lambda w, i: F.embedding(i, w), values(lamella.float32, 4, 3), at.abs())
    finally:
        cuda.use_deterministic_algorithms(False)
