"""Forward mode, and the functions of lamella.autograd.functional."""

import functools

import pytest

import lamella
from lamella.autograd import forward_ad, functional

F64 = lamella.float64


def tensor(*values):
    return lamella.tensor(values, dtype=F64)


def test_dual_tensors():
    x, t = tensor(1.0, 2.0), tensor(3.0, 4.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        primal, tangent = forward_ad.unpack_dual(dual)
        assert primal.tolist() == x.tolist() and tangent.tolist() == t.tolist()
        y = forward_ad.unpack_dual(dual * dual)
        assert y.primal.tolist() == [1.0, 4.0] and y.tangent.tolist() == [6.0, 16.0]
        plain = forward_ad.unpack_dual(x * tensor(2.0))
        assert plain.tangent is None
    assert forward_ad.unpack_dual(dual).tangent is None


def test_tangents_pass_through_no_grad():
    with forward_ad.dual_level(), lamella.no_grad():
        dual = forward_ad.make_dual(tensor(2.0), tensor(1.0))
        assert forward_ad.unpack_dual(dual * tensor(3.0)).tangent.tolist() == [3.0]


def test_forward_over_reverse():
    x = tensor(2.0).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tensor(1.0))
        (g,) = lamella.autograd.grad(dual * dual * dual, dual, create_graph=True)
        value, tangent = forward_ad.unpack_dual(g)
        assert value.tolist() == [12.0] and tangent.tolist() == [12.0]


def test_levels():
    with pytest.raises(RuntimeError, match="make_dual: expected a level to be open"):
        forward_ad.make_dual(tensor(1.0), tensor(1.0))
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="enter_dual_level: expected no other level"):
            forward_ad.enter_dual_level()
        with pytest.raises(ValueError, match="make_dual: expected 'tensor' to be floating-point"):
            forward_ad.make_dual(lamella.ones(1, dtype=lamella.int64), tensor(1.0))
        with pytest.raises(RuntimeError, match="make_dual: expected 'tangent' to have the shape"):
            forward_ad.make_dual(tensor(1.0), tensor(1.0, 2.0))
        dual = forward_ad.make_dual(tensor(1.0), tensor(1.0))
        with pytest.raises(RuntimeError, match="make_dual: expected 'tensor' to have no tangent"):
            forward_ad.make_dual(dual, tensor(1.0))
    with pytest.raises(RuntimeError, match="exit_dual_level: expected 'level' to be the one"):
        forward_ad.exit_dual_level()


# ---- functional ----


def cube(x):
    return x * x * x


def test_vjp_and_jvp():
    x, v = tensor(1.0, 2.0), tensor(1.0, 10.0)
    y, product = functional.vjp(cube, x, v)
    assert y.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    y, product = functional.jvp(cube, x, v)
    assert y.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    assert not product.requires_grad


def test_jacobian():
    x = tensor(1.0, 2.0)
    assert functional.jacobian(cube, x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    rows = functional.jacobian(lambda a, b: (a * b, a[0] + a[1]), (x, tensor(3.0, 4.0)))
    assert rows[0][0].tolist() == [[3.0, 0.0], [0.0, 4.0]]
    assert rows[1][0].tolist() == [1.0, 1.0] and rows[1][1].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="jacobian: expected the outputs to depend on all"):
        functional.jacobian(lambda a, b: a * tensor(1.0), (x, x), strict=True)


def test_hessian():
    x = tensor(1.0, 2.0)

    def function(x):
        y = cube(x)
        return (y[0] + y[1]) * x[0]

    rows = functional.hessian(function, x).tolist()
    assert rows == [[12.0, 12.0], [12.0, 12.0]]
    _, product = functional.vhp(function, x, tensor(1.0, 0.0))
    assert product.tolist() == [12.0, 12.0]
    _, product = functional.hvp(function, x, tensor(0.0, 1.0))
    assert product.tolist() == [12.0, 12.0]


def test_graphs_of_functional():
    x = tensor(2.0).requires_grad_()
    product = functional.vjp(cube, x, create_graph=True)[1]
    product.backward()
    assert x.grad.tolist() == [12.0]


def test_wrong_vectors():
    with pytest.raises(RuntimeError, match="vjp: expected 'v'"):
        functional.vjp(cube, tensor(1.0, 2.0))
    with pytest.raises(RuntimeError, match="jvp: expected 'v' to have the shapes of the inputs"):
        functional.jvp(cube, tensor(1.0, 2.0), tensor(1.0))
    with pytest.raises(TypeError, match="vjp: expected 'inputs' to be a Tensor"):
        functional.vjp(cube, 3.0)


# ---- Levels end ----


def test_results_lose_their_tangents_with_the_level():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tensor(2.0, 3.0), tensor(1.0, 1.0))
        y = dual * dual
        row = y[1:]
        written = lamella.zeros(2, dtype=F64)
        written.copy_(dual)
        assert forward_ad.unpack_dual(row).tangent.tolist() == [6.0]
    with forward_ad.dual_level():
        for t in (dual, y, row, written, y * 2):
            assert forward_ad.unpack_dual(t).tangent is None
        again = forward_ad.make_dual(y, tensor(1.0, 10.0))
        assert forward_ad.unpack_dual(again * 2).tangent.tolist() == [2.0, 20.0]


def test_tangents_are_kept_no_longer_than_their_tensors():
    import gc
    import weakref

    with forward_ad.dual_level():
        x = forward_ad.make_dual(tensor(2.0), tensor(1.0))
        for _ in range(1000):
            x = x * tensor(1.0)
        t = tensor(1.0)
        gone = weakref.ref(t)
        other = forward_ad.make_dual(tensor(2.0), t)
        del t, other
        gc.collect()
        assert gone() is None
        assert forward_ad.unpack_dual(x).tangent.tolist() == [1.0]


def test_tangents_are_laid_out_as_their_tensors():
    """So that a view of both can be taken, and a write through it reaches both."""
    x = lamella.arange(6.0, dtype=F64).view(2, 3)
    spread = tensor(1.0).expand(2, 3)
    crossed = lamella.ones(3, 2, dtype=F64).t()
    for direction in (spread, crossed):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, direction) * 1
            flat = dual.view(6)
            flat[0].mul_(5)
            tangent = forward_ad.unpack_dual(dual).tangent
            assert tangent.tolist() == [[5.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
            assert tangent.stride() == dual.stride()


# ---- Second derivatives of layers ----


def _attention(p, x):
    heads = x.reshape(1, 2, 3, 2)
    return p.nn.functional.scaled_dot_product_attention(heads, heads, heads)


def _with(p, x, function, *shape):
    """A function of an input and a weight that x holds one after the other."""
    count = 1
    for size in shape:
        count *= size
    return function(x[count:], x[:count].reshape(shape))


FUNCTIONAL = {
    "linear": lambda p, x: _with(
        p, x, lambda i, w: p.nn.functional.linear(i.reshape(-1, 3), w, w[:, 0]), 2, 3
    ),
    "conv1d": lambda p, x: _with(
        p,
        x,
        lambda i, w: p.nn.functional.conv1d(
            i.reshape(1, 2, -1), w, w[:, 0, 0], stride=2, padding=1, dilation=2
        ),
        *(2, 2, 1),
    ),
    "conv2d of groups": lambda p, x: _with(
        p, x, lambda i, w: p.nn.functional.conv2d(i.reshape(1, 2, 2, 2), w, groups=2), 2, 1, 2, 1
    ),
    "conv_transpose1d": lambda p, x: _with(
        p,
        x,
        lambda i, w: p.nn.functional.conv_transpose1d(i.reshape(1, 2, -1), w, stride=2, padding=1),
        *(2, 1, 2),
    ),
    "mse_loss": lambda p, x: p.nn.functional.mse_loss(x[:6], x[6:]),
    "smooth_l1_loss": lambda p, x: p.nn.functional.smooth_l1_loss(x[:6], x[6:], reduction="none"),
    "huber_loss": lambda p, x: p.nn.functional.huber_loss(x[:6], x[6:], reduction="sum"),
    "soft_margin_loss": lambda p, x: p.nn.functional.soft_margin_loss(x, x.detach().cos()),
    "binary_cross_entropy": lambda p, x: p.nn.functional.binary_cross_entropy(
        x[:6].sigmoid(), x[6:].sigmoid()
    ),
    "layer_norm": lambda p, x: p.nn.functional.layer_norm(x.reshape(3, 4), (4,), x[:4], x[4:8]),
    "rms_norm": lambda p, x: p.nn.functional.rms_norm(x.reshape(3, 4), (4,), x[:4]),
    "group_norm": lambda p, x: p.nn.functional.group_norm(x.reshape(1, 4, 3), 2, x[:4], x[4:8]),
    "batch_norm": lambda p, x: p.nn.functional.batch_norm(
        x.reshape(3, 2, 2), None, None, x[:2], x[2:4], True
    ),
    "batch_norm in use": lambda p, x: p.nn.functional.batch_norm(
        x.reshape(3, 2, 2), p.zeros(2, dtype=p.float64), p.ones(2, dtype=p.float64), x[:2], x[2:4]
    ),
    "instance_norm": lambda p, x: p.nn.functional.instance_norm(x.reshape(1, 2, 6)),
    "attention": _attention,
    "max_pool2d": lambda p, x: p.nn.functional.max_pool2d(x.reshape(1, 3, 4), 2),
    "cumprod with zeros": lambda p, x: (x * (x > -0.3)).cumprod(0),
    "det": lambda p, x: p.linalg.det(x[:9].reshape(3, 3)),
    "solve": lambda p, x: p.linalg.solve(x[:9].reshape(3, 3), x[9:]),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
@pytest.mark.parametrize("way", ["fwdrev", "revrev", "revfwd"])
def test_hessians_agree_with_torch(name, way):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    point = torch.randn(12, dtype=torch.float64)

    def loss(p, x):
        y = FUNCTIONAL[name](p, x)
        return (y * y.sin()).sum()

    rows, columns = lamella.func.jacrev, lamella.func.jacfwd
    mine = functools.partial(loss, lamella)
    hessian = {
        "fwdrev": columns(rows(mine)),
        "revrev": rows(rows(mine)),
        "revfwd": rows(columns(mine)),
    }[way]
    found = hessian(tensor(*point.tolist()))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = torch.autograd.functional.hessian(functools.partial(loss, torch), point)
    torch.testing.assert_close(torch.tensor(found.tolist()), expected.float())


def test_factors_are_no_constants_to_a_backward_with_tangents():
    """A backward that is not recorded still has to pass tangents through what it takes from A."""
    torch = pytest.importorskip("torch")
    A = [[2.0, 1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 0.2, 1.5]]
    results = []
    for p in (lamella, torch):
        for function in (
            p.linalg.det,
            p.linalg.inv,
            lambda a, p=p: p.linalg.solve(a, p.ones(3, dtype=p.float64)),
            lambda a: a.cumprod(1),
        ):
            with p.autograd.forward_ad.dual_level():
                a = p.tensor(A, dtype=p.float64).requires_grad_()
                dual = p.autograd.forward_ad.make_dual(a, a.detach().cos())
                # PyTorch's own backward takes factors for constants unless it is recorded.
                (g,) = p.autograd.grad(function(dual).sum(), a, create_graph=p is torch)
                results.append(p.autograd.forward_ad.unpack_dual(g).tangent.tolist())
    for mine, theirs in zip(results[:4], results[4:]):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs))


def given(forward_returns, jvp_returns, dirty=False):
    """Applies a function of x, of which jvp returns something of x's tangent."""

    class Given(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if dirty:
                ctx.mark_dirty(x)
            return forward_returns(x)

        @staticmethod
        def jvp(ctx, x):
            return jvp_returns(x)

    with forward_ad.dual_level():
        x = forward_ad.make_dual(lamella.ones(3), lamella.ones(3))
        return forward_ad.unpack_dual(Given.apply(x)).tangent.tolist()


def test_tangents_of_custom_functions_alias_as_the_outputs_do():
    assert given(lambda x: x[:2], lambda t: t[1:]) == [1, 1]
    assert given(lambda x: x, lambda t: t.view_as(t)) == [1, 1, 1]
    assert given(lambda x: x.mul_(2), lambda t: t.mul_(2), dirty=True) == [2, 2, 2]
    assert given(lambda x: x * 2, lambda t: t) == [1, 1, 1]
    view = (
        "GivenBackward: expected 'jvp' to return for output 0 a view of a tangent that it is "
        "given, as 'forward' returns an input or a view of one, got another tensor"
    )
    written = (
        "GivenBackward: expected 'jvp' to return for output 0 the tangent of the input that "
        "'forward' wrote, written in place as well, got another tensor"
    )
    for wrong, text in (
        ((lambda x: x[:2], lambda t: t[:2].clone()), view),
        ((lambda x: x, lambda t: t), view),
        ((lambda x: x.mul_(2), lambda t: t * 2, True), written),
    ):
        with pytest.raises(RuntimeError) as error:
            given(*wrong)
        assert str(error.value) == text


def test_tangents_have_no_tangents():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tensor(1.0), tensor(2.0))
        with pytest.raises(RuntimeError) as error:
            forward_ad.make_dual(tensor(1.0), dual)
        assert str(error.value) == (
            "make_dual: expected 'tangent' to have no tangent, got one with a tangent"
        )
