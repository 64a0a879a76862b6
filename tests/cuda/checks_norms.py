"""Softmax and norms by kernels on "cuda", with gradients, beside the CPU."""

import pytest
from beside_cpu import FLOATS, check, check_gradients, gradients, leaf, values

import lamella
import lamella.nn.functional as F


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax(cuda, dtype):
    for shape, dim in (
        ((), 0),
        ((4,), 0),
        ((3, 9), 1),
        ((2, 1500), 1),
        ((9, 3), 0),
        ((3, 5, 4), 1),
    ):
        for function in (F.softmax, F.log_softmax):
            check_gradients(cuda, lambda u, f=function, d=dim: f(u, d), leaf(dtype, *shape))
    check(cuda, lambda u: F.softmax(u, 1), values(dtype, 9, 6).t())
    check(cuda, lambda u: F.softmax(u, 1, dtype=lamella.float32), values(dtype, 3, 4))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms_of_rows(cuda, dtype):
    for shape in ((4, 6), (2, 3, 8), (3, 1100), (0, 4)):
        n = shape[-1]
        x, w, b = leaf(dtype, *shape), leaf(dtype, n, seed=1), leaf(dtype, n, seed=2)
        check_gradients(cuda, lambda u, v, a, n=n: F.layer_norm(u, (n,), v, a), x, w, b)
        check_gradients(cuda, lambda u, n=n: F.layer_norm(u, (n,)), x)
        check_gradients(cuda, lambda u, v, n=n: F.rms_norm(u, (n,), v), x, w)
    x = leaf(dtype, 3, 6, 4, 2)
    w, b = leaf(dtype, 6, seed=1), leaf(dtype, 6, seed=2)
    for groups in (1, 2, 6):
        check_gradients(cuda, lambda u, v, a, g=groups: F.group_norm(u, g, v, a), x, w, b)
    check_gradients(cuda, lambda u: F.group_norm(u, 3), x)
    far = values(lamella.float32, 4, 40) * 0.01 + 100
    exact = F.layer_norm(far.double(), (40,))
    assert lamella.allclose(F.layer_norm(far.cuda(), (40,)).cpu().double(), exact, atol=1e-3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_batch_norm(cuda, dtype):
    small = dtype in (lamella.float16, lamella.bfloat16)
    stored = lamella.float32 if small else dtype
    for shape in ((8, 3), (4, 3, 5), (2, 3, 4, 5), (40, 70), (70, 2, 31)):
        c = shape[1]
        w, b = leaf(stored, c, seed=1), leaf(stored, c, seed=2)
        for training in (True, False):

            def run(u, v, a, mean, var, t=training):
                mean, var = mean.clone(), var.clone()
                result = gradients(
                    lambda *g: F.batch_norm(g[0], mean, var, g[1], g[2], t, 0.2), u, v, a
                )
                return (*result, mean, var)

            mean, var = values(stored, c, seed=3), values(stored, c, seed=4).abs() + 0.5
            check(cuda, run, leaf(dtype, *shape), w, b, mean, var)
    x = values(dtype, 2, 3, 4, 5).to(memory_format=lamella.channels_last).requires_grad_()
    check_gradients(cuda, lambda u: F.batch_norm(u, None, None, training=True), x)
    check_gradients(cuda, lambda u: F.instance_norm(u), leaf(dtype, 2, 3, 9))


def test_running_statistics_keep_their_version(cuda):
    mean, var = lamella.zeros(3, device="cuda"), lamella.ones(3, device="cuda")
    versions = mean._version, var._version
    F.batch_norm(lamella.randn(4, 3, device="cuda"), mean, var, training=True)
    assert (mean._version, var._version) == versions and mean.abs().sum().item() > 0
