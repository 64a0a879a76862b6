"""Normalisation, embedding and dropout, and their backwards, against PyTorch."""

import itertools

import pytest
from operator_cases import REAL, check, error_of, lamella, make, run, to_lamella, torch

SMALL = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (6e-2, 6e-2)}
LOOSE = (2e-4, 2e-5)


@pytest.mark.parametrize("mask", [*itertools.product([True, False], repeat=3)], ids=str)
def test_masks(mask):
    """Undefined tensors stand exactly where the mask is false."""
    x, p, s = make(2, 4, 5), make(4), make(2, 2)
    for name, args in (
        ("layer_norm", (x, x, [5], make(2, 4, 1), make(2, 4, 1), make(5), make(5))),
        ("batch_norm", (x, x, p, p, p, p, p, True, 1e-5)),
        ("group_norm", (x, x, s, s, p, 2, 4, 5, 2)),
    ):
        given = [to_lamella(a) for a in (*args, list(mask))]
        got = run(lamella, f"native_{name}_backward", given, {})
        assert [g is not None for g in got] == list(mask)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training, dtype):
    tolerance = SMALL.get(dtype, LOOSE)
    shapes = [(4, 3), (5, 3, 7), (2, 3, 4, 5), (2, 3, 2, 3, 2)]
    inputs = [make(*s, dtype=dtype) for s in shapes]
    inputs.append(inputs[2].to(memory_format=torch.channels_last))
    inputs.append(make(3, 5, dtype=dtype).t())
    for x in inputs:
        p = [make(3, dtype=dtype, seed=i, low=0.5, high=2) for i in range(4)]
        if x.stride()[0] == 1:
            x = x[:, :3]
        _, mean, invstd = check(
            "native_batch_norm", x, *p, training, 0.1, 1e-5, tolerance=tolerance, strides=False
        )
        out = (x, None, None, None, None, True, 0.1, 1e-5)
        check("native_batch_norm", *out, tolerance=tolerance, strides=False)
        check("batch_norm", x, *p, training, 0.1, 1e-5, False, tolerance=tolerance, strides=False)
        grad = make(*x.shape, dtype=dtype, seed=9)
        args = (grad, x, p[0], p[2], p[3], mean, invstd, training, 1e-5, [True] * 3)
        check("native_batch_norm_backward", *args, tolerance=tolerance, strides=False)


def test_batch_norm_keeps_the_format():
    x = make(2, 3, 4, 5).to(memory_format=torch.channels_last)
    check("native_batch_norm", x, None, None, None, None, True, 0.1, 1e-5, tolerance=LOOSE)


def test_group_norm_keeps_the_format():
    x = make(2, 6, 4, 3).to(memory_format=torch.channels_last)
    check("native_group_norm", x, make(6), make(6, seed=1), 2, 6, 12, 3, 1e-5, tolerance=LOOSE)


def test_forms_of_batch_norm():
    x, p = make(4, 3, 5), [make(3, seed=i, low=0.5, high=2) for i in range(4)]
    check("_native_batch_norm_legit", x, *p, True, 0.3, 1e-5, tolerance=LOOSE)
    check("_native_batch_norm_legit.no_stats", x, *p[:2], True, 0.3, 1e-5, tolerance=LOOSE)
    check("_native_batch_norm_legit_no_training", x, *p, 0.3, 1e-5, tolerance=LOOSE)
    for stats in (True, False):
        check("instance_norm", x, *p, stats, 0.3, 1e-5, False, tolerance=LOOSE)
    check("instance_norm", x, None, None, None, None, True, 0.3, 1e-5, False, tolerance=LOOSE)


def test_dropout_of_features():
    import lamella

    x = torch.ones(50, 40, 3, 3)
    y = torch.from_dlpack(lamella.feature_dropout(to_lamella(x), 0.25, True))
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert (y.flatten(2).amin(-1) == y.flatten(2).amax(-1)).all()
    assert abs(y.mean() - 1) < 0.1


def test_alpha_dropout_keeps_mean_and_variance():
    import lamella

    x = torch.randn(200000, generator=torch.Generator().manual_seed(0))
    for name in ("alpha_dropout", "feature_alpha_dropout"):
        shaped = x.view(2000, 100) if name.startswith("feature") else x
        y = torch.from_dlpack(getattr(lamella, name)(to_lamella(shaped), 0.3, True))
        assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02
    check("alpha_dropout", x[:10], 0.5, False)
    check("feature_dropout", x[:10].view(2, 5), 0.0, True)


def test_statistics_of_another_shape_are_refused():
    x, ones = make(2, 3, 4), torch.ones
    mask = [True, True, True]

    def batch(weight, running, saved, train):
        return error_of(
            "native_batch_norm_backward",
            *(x, x, weight, *running, *saved, train, 1e-5, mask),
        )

    three, two = ones(3), ones(2)
    text = "native_batch_norm_backward: expected '{}' to be of shape [3], got {}"
    none = (None, None)
    assert batch(None, none, (two, three), True) == text.format("save_mean", [2])
    assert batch(None, none, (three, ones(0)), True) == text.format("save_invstd", [0])
    assert batch(None, (two, three), none, False) == text.format("running_mean", [2])
    assert batch(None, (three, ones(1, 3)), none, False) == text.format("running_var", [1, 3])
    assert batch(two, none, (three, three), True) == text.format("weight", [2])

    def group(mean, rstd, *sizes):
        return error_of("native_group_norm_backward", x, x, mean, rstd, None, *sizes, mask)

    text = "native_group_norm_backward: expected '{}' to be of shape [2, 3], got {}"
    sizes = (2, 3, 4, 3)
    assert group(ones(2), ones(2, 3), *sizes) == text.format("mean", [2])
    assert group(ones(2, 3), ones(0), *sizes) == text.format("rstd", [0])
    for n, c, inner in ((-2, -3, 4), (2, -3, -4), (2**62, 2**62, 24), (2**63 - 1, 3, 2)):
        assert group(ones(2, 3), ones(2, 3), n, c, inner, 1) == (
            f"native_group_norm_backward: expected 'input' to have {n} * {c} * {inner} elements, "
            "got 24"
        )

    def layer(mean, rstd):
        return error_of("native_layer_norm_backward", x, x, [4], mean, rstd, None, None, mask)

    text = "native_layer_norm_backward: expected '{}' to be of shape [2, 3, 1], got {}"
    assert layer(ones(2), ones(2, 3, 1)) == text.format("mean", [2])
    assert layer(ones(2, 3, 1), ones(5)) == text.format("rstd", [5])
    assert error_of("_fused_rms_norm_backward", x, x, [4], ones(5), None, mask[:2]) == (
        "_fused_rms_norm_backward: expected 'rstd' to be of shape [2, 3, 1], got [5]"
    )


def test_running_statistics_are_checked_before_any_is_written():
    mean, var = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    ours = to_lamella(mean)
    with pytest.raises(NotImplementedError) as caught:
        lamella.native_batch_norm(
            to_lamella(make(2, 3, 4)), None, None, ours, to_lamella(var), True, 0.1, 1e-5
        )
    assert str(caught.value) == (
        "batch_norm: expected 'running_var' to be floating point, got int64"
    )
    assert ours.tolist() == [0, 0, 0]


def test_statistics_of_group_norm_have_gradients():
    x, weight, bias = (make(*s, dtype=torch.float64) for s in ((2, 6, 2, 2), (6,), (6,)))
    seeds = [make(*s, dtype=torch.float64, seed=1) for s in ((2, 6, 2, 2), (2, 3), (2, 3))]
    sizes = (2, 6, 4, 3, 1e-5)
    found = []
    for module in (torch, lamella):
        take = (lambda t: to_lamella(t)) if module is lamella else (lambda t: t.clone())
        leaves = [take(t).requires_grad_() for t in (x, weight, bias)]
        parts = run(module, "native_group_norm", leaves + list(sizes), {})
        assert all(part.requires_grad for part in parts)
        total = sum((part * take(seed)).sum() for part, seed in zip(parts, seeds))
        first = module.autograd.grad(total, leaves, create_graph=True)
        second = module.autograd.grad(first[0].sin().sum() + first[1].square().sum(), leaves[:2])
        found.append([*parts, *first, *second])
    for mine, theirs in zip(found[1], found[0]):
        mine = torch.from_dlpack(mine.detach())
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("which", [1, 2])
def test_each_statistic_of_group_norm_alone(which):
    x = to_lamella(make(2, 6, 2, 2, dtype=torch.float64)).requires_grad_()

    def statistic(x):
        return lamella.native_group_norm(x, None, None, 2, 6, 4, 3, 1e-5)[which]

    assert lamella.autograd.gradcheck(statistic, (x,), check_forward_ad=True)
    assert lamella.autograd.gradgradcheck(statistic, (x,))


# A norm of x * scale with eps is that of x with eps / scale**2, here in float64.
SCALED = {
    "layer": lambda m, x, eps: m.nn.functional.layer_norm(x, (6, 5), None, None, eps),
    "row": lambda m, x, eps: m.nn.functional.layer_norm(x, (5,), None, None, eps),
    "rms": lambda m, x, eps: m.nn.functional.rms_norm(x, (5,), None, eps),
    "group": lambda m, x, eps: m.nn.functional.group_norm(x, 3, None, None, eps),
    "batch": lambda m, x, eps: m.nn.functional.batch_norm(x, None, None, None, None, True, 0, eps),
    "pixel": lambda m, x, eps: m.nn.functional.batch_norm(
        x[:, :, 0], None, None, None, None, True, 0, eps
    ),
    "instance": lambda m, x, eps: m.nn.functional.instance_norm(x, eps=eps),
}
ROUNDING = {torch.float32: 3e-5, torch.bfloat16: 6e-2, torch.float64: 1e-11}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("name", SCALED)
def test_huge_and_tiny_numbers(name, dtype, compiled):
    norm = SCALED[name]
    scales = [1e30, 1e36, 1e-5, 1e-30] + ([1e200, 1e300] if dtype == torch.float64 else [])
    for scale, eps in [(scale, 1e-5) for scale in scales] + [(1e-25, 1e-50), (1e30, 1e-40)]:
        given = (make(4, 6, 5, dtype=torch.float64) * scale).to(dtype)
        plain = (given.double() / scale).requires_grad_()
        expected = norm(torch, plain, max(eps / scale / scale, 1e-300))
        weight = make(*expected.shape, dtype=torch.float64, seed=3)
        (slope,) = torch.autograd.grad(expected, plain, weight)
        x = to_lamella(given).requires_grad_()
        run = lamella.compile(lambda x, eps=eps: norm(lamella, x, eps)) if compiled else None
        got = run(x) if compiled else norm(lamella, x, eps)
        rounding = ROUNDING[dtype]
        close = {"atol": rounding * expected.abs().max().item(), "rtol": 0}
        found = torch.tensor(got.double().tolist(), dtype=torch.float64)
        torch.testing.assert_close(found, expected.detach(), **close)
        if scale > 1e100 and name not in ("layer", "row", "rms"):
            continue
        (gradient,) = lamella.autograd.grad(got, x, to_lamella(weight).to(got.dtype))
        found = torch.tensor(gradient.double().tolist(), dtype=torch.float64) * scale
        close["atol"] = 4 * rounding * slope.abs().max().item()
        torch.testing.assert_close(found, slope, **close)


@pytest.mark.parametrize("compiled", [False, True])
def test_running_statistics_of_huge_numbers(compiled):
    run = lamella.compile if compiled else lambda function: function
    x = make(8, 3, dtype=torch.float64)
    for scale, dtype in (
        (1e15, lamella.float32),
        (1e25, lamella.float64),
        (1e160, lamella.float64),
    ):
        mean, var = lamella.zeros(3, dtype=dtype), lamella.ones(3, dtype=dtype)
        given = to_lamella(x * scale).to(dtype)
        run(lamella.nn.functional.batch_norm)(given, mean, var, training=True, momentum=1.0)
        assert mean.tolist() == pytest.approx((x.mean(0) * scale).tolist(), rel=1e-5)
        expected = [v * scale * scale for v in x.var(0).tolist()]
        assert var.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0), (0, 3, 4, 5)])
def test_empty_batches_leave_running_statistics(shape):
    for name in ("batch_norm", "instance_norm"):
        if name == "instance_norm" and len(shape) == 2:
            continue
        mean, var = lamella.tensor([1.0, 2, 3]), lamella.tensor([4.0, 5, 6])
        x = lamella.zeros(shape, requires_grad=True)
        weight = lamella.ones(3, requires_grad=True)
        norm = getattr(lamella.nn.functional, name)
        flag = {"training" if name == "batch_norm" else "use_input_stats": True}
        y = norm(x, mean, var, weight, **flag)
        assert y.shape == shape
        assert mean.tolist() == [1, 2, 3] and var.tolist() == [4, 5, 6]
        y.sum().backward()
        assert weight.grad.tolist() == [0, 0, 0] and x.grad.shape == shape
    module = lamella.nn.BatchNorm1d(3)
    if len(shape) < 4:
        module(lamella.zeros(shape))
        assert module.running_mean.tolist() == [0] * 3 and module.running_var.tolist() == [1] * 3
        assert module.num_batches_tracked.item() == 1


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_nothing(training):
    for module in (torch, lamella):
        statistics = () if training else (module.zeros(0), module.ones(0))
        x = module.zeros(0)
        y = module.nn.functional.batch_norm(x, *(statistics or (None, None)), training=training)
        assert tuple(y.shape) == (0,)
