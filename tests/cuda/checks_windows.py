"""Pooling, padding, interpolation and sliding blocks on "cuda", with gradients, against the CPU."""
# ruff: noqa: B023 (functions are called before their loop goes on)

import pytest
from beside_the_cpu import same, same_gradient, values

import lamella
import lamella.nn.functional as F

FLOATS = {
    lamella.float32: 1e-5,
    lamella.float64: 1e-12,
    lamella.float16: 2e-3,
    lamella.bfloat16: 2e-2,
}


@pytest.fixture(autouse=True)
def no_fallbacks(cuda):
    yield
    assert not [
        name for name in cuda.fallbacks() if not name.startswith(("aten::mul", "aten::add"))
    ]


def check(function, x, exact=False):
    tolerance = FLOATS[x.dtype]
    same(function, x, tolerance=0 if exact else tolerance)
    same_gradient(function, x, tolerance=tolerance)


def inputs(dtype, spatial):
    shape = (2, 3, 7, 5, 6)[: 2 + spatial]
    x = values(dtype, *shape)
    yield x
    yield x[0]
    yield values(dtype, *shape[::-1]).permute(*reversed(range(2 + spatial)))
    if spatial > 1:
        layout = lamella.channels_last if spatial == 2 else lamella.channels_last_3d
        yield x.to(memory_format=layout)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_pooling(dtype, spatial):
    most = [F.max_pool1d, F.max_pool2d, F.max_pool3d][spatial - 1]
    mean = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][spatial - 1]
    few = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][spatial - 1]
    top = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d][spatial - 1]
    for x in inputs(dtype, spatial):
        check(lambda u: most(u, 3, 2, 1, return_indices=True), x, True)
        check(lambda u: most(u, 2, 1, 0, 2, ceil_mode=True), x, True)
        check(lambda u: mean(u, 3, 2, 1), x)
        check(lambda u: mean(u, 2, ceil_mode=True, count_include_pad=False), x)
        if spatial > 1:
            check(lambda u: mean(u, 3, 2, 1, divisor_override=5), x)
        check(lambda u: few(u, 3), x)
        check(lambda u: few(u, 1), x)
        check(lambda u: top(u, 2, return_indices=True), x, True)


@pytest.mark.parametrize("dtype", [lamella.uint8, lamella.int32, lamella.int64], ids=str)
def test_pooling_of_integers(dtype):
    x = values(dtype, 2, 3, 7, 5)
    same(lambda u: F.max_pool2d(u, 3, 2, 1, return_indices=True), x)
    if dtype == lamella.int64:
        same(lambda u: F.avg_pool2d(u.abs(), 2), x)


def test_nan_and_infinity():
    x = values(lamella.float32, 1, 1, 6, 6)
    x[0, 0, 1, 1] = x[0, 0, 2, 2] = float("nan")
    x[0, 0, 4, 4] = float("inf")
    x[0, 0, 5, 5] = float("-inf")
    same(lambda u: F.max_pool2d(u, 3, 1, return_indices=True), x)
    same(lambda u: F.interpolate(u, size=(11, 11), mode="bilinear", align_corners=True), x)
    same(lambda u: F.max_pool2d(lamella.full_like(u, float("-inf")), 2, return_indices=True), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_padding(dtype, spatial):
    amounts = (2, 1, 0, 3, 1, 1)[: 2 * spatial], (-1, 2, -2, 1, 2, -1)[: 2 * spatial]
    for x in inputs(dtype, spatial):
        for amount in amounts:
            for mode in ("reflect", "replicate", "circular"):
                if mode == "circular" and amount[0] < 0:
                    continue
                check(lambda u: F.pad(u, amount, mode=mode), x, True)


def test_gradients_of_complex_padding():
    x = values(lamella.complex64, 2, 3, 7, 5)
    same_gradient(lambda u: F.pad(u, (2, 1, 0, 3), mode="reflect"), x)
    same_gradient(lambda u: F.pad(u, (2, 1, 0, 3), mode="replicate"), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_interpolation(dtype, spatial):
    linear = ["linear", "bilinear", "trilinear"][spatial - 1]
    for x in inputs(dtype, spatial):
        if x.dim() != spatial + 2:
            continue
        for size in ((9, 4, 6)[:spatial], (3, 10, 3)[:spatial]):
            for mode in ("nearest", "nearest-exact"):
                check(lambda u: F.interpolate(u, size=size, mode=mode), x, True)
            for corners in (False, True):
                check(lambda u: F.interpolate(u, size=size, mode=linear, align_corners=corners), x)
        check(lambda u: F.interpolate(u, scale_factor=1.7, mode=linear), x)
        check(lambda u: F.interpolate(u, scale_factor=2, mode="nearest"), x, True)
    if spatial == 1:
        same(lambda u: F.interpolate(u, size=9), values(lamella.int64, 2, 3, 4))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sliding_blocks(dtype):
    x = values(dtype, 2, 3, 7, 5)
    check(lambda u: F.unfold(u, (3, 2), padding=(1, 0), stride=(2, 1)), x, True)
    check(lambda u: F.unfold(u, 2, dilation=2), x, True)
    blocks = values(dtype, 2, 3 * 6, 4 * 4)
    check(lambda u: F.fold(u, (7, 5), (3, 2), padding=(1, 0), stride=(2, 1)), blocks)


def test_indices_of_a_gradient_are_checked(cuda):
    x = values(lamella.float32, 1, 1, 4, 4)
    indices = lamella.tensor([[[[0, 99], [3, 4]]]])
    grad = lamella.ones(1, 1, 2, 2)

    def run(device):
        return lamella.ops.aten.max_pool2d_with_indices_backward(
            grad.to(device), x.to(device), [2, 2], [2, 2], [0, 0], [1, 1], False, indices.to(device)
        )

    with pytest.raises(IndexError) as expected:
        run("cpu")
    run("cuda")
    with pytest.raises(IndexError) as got:
        cuda.synchronize()
    assert str(got.value).endswith("cuda:0: " + str(expected.value))


def test_nothing_waits(cuda, standin):
    x = values(lamella.float32, 2, 3, 8, 8).cuda().requires_grad_()
    functions = (
        lambda u: F.max_pool2d(u, 3, 2, 1),
        lambda u: F.avg_pool2d(u, 3, 2, 1),
        lambda u: F.adaptive_avg_pool2d(u, 3),
        lambda u: F.interpolate(u, size=(5, 5), mode="bilinear"),
        lambda u: F.pad(u, (2, 1, 0, 3), mode="reflect"),
        lambda u: F.unfold(u, 2),
        lambda u: u[lamella.arange(2, device="cuda")],
        lambda u: u.gather(0, lamella.zeros(1, 3, 8, 8, dtype=lamella.int64, device="cuda")),
        lambda u: u.sort(1).values,
        lambda u: u.topk(2, -1).values,
        lambda u: lamella.cat([u, u]).flip(0).tril().masked_fill(u[:1] > 0, 1.0),
        lambda u: u.index_put((u.detach() > 0,), lamella.tensor(2.0)),
        lambda u: F.embedding(lamella.arange(2, device="cuda"), u[0, 0]),
    )
    for function in functions:  # what is made at a first use
        y = function(x)
        y.backward(lamella.ones_like(y))
    cuda.synchronize()
    standin.standin_reset_calls()
    cuda.reset_fallbacks()
    for function in functions:
        y = function(x)
        y.backward(lamella.ones_like(y))
    waits = (
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuMemcpyDtoHAsync_v2",
        "cuEventSynchronize",
    )
    assert {name: standin.calls(name) for name in waits} == dict.fromkeys(waits, 0)
    assert cuda.fallbacks() == {}
