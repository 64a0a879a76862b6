"""Jacobians of functions that write in place, and forward mode with other settings changed."""

import pytest
from vmap_testing import close

import lamella
from lamella import nn

torch = pytest.importorskip("torch")


def rows(p, x):
    y = p.zeros(3, dtype=x.dtype)
    y[0] = x[0] * x[1]
    y[1:] = x[1:] ** 2 * x[0]
    return y


def written_whole(p, x):
    y = p.ones(3, dtype=x.dtype)
    y.copy_(x.sin())
    return y.mul_(x)


def columns_of_a_matrix(p, x):
    y = p.zeros(4, 3, dtype=x.dtype).t()
    y[:, 1] = x
    y[:, 2].add_(x.cos())
    y[0].mul_(x.sum())
    return y


def out_of_order(p, x):
    y = p.zeros(3, dtype=x.dtype)
    y.index_add_(0, p.tensor([2, 0, 2]), x**3)
    return y.index_put((p.tensor([1]),), x[:1])


def filled(p, x):
    y = p.empty(2, 3, dtype=x.dtype)
    y.fill_(0)
    y[1] += x
    y[0] = y[1] * 2
    return y


FUNCTIONS = [rows, written_whole, columns_of_a_matrix, out_of_order, filled]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_jacobians_of_functions_that_write(function):
    found, wanted = [], []
    for p, to in ((lamella, found), (torch, wanted)):
        x = p.tensor([0.3, -1.2, 0.7], dtype=p.float64)
        to += [
            p.func.jacfwd(lambda x, p=p: function(p, x))(x),
            p.func.hessian(lambda x, p=p: (function(p, x) ** 2).sum())(x),
        ]
    x = lamella.tensor([0.3, -1.2, 0.7], dtype=lamella.float64)
    found.append(lamella.func.jacfwd(lambda x: function(lamella, x), chunk_size=2)(x))
    close(tuple(found), (*wanted, wanted[0]))


def test_views_from_before_a_write_share_its_tangent():
    found, wanted = [], []
    for p, to in ((lamella, found), (torch, wanted)):
        x = p.tensor([0.3, -1.2, 0.7], dtype=p.float64)

        def seen(x, p=p):
            y = p.zeros(2, 3, dtype=x.dtype)
            whole, first, second, deep = y.view(6), y[0], y[1], y.view(1, 1, 1, 1, 2, 3, 1)
            apart = y[0].clone()
            y[1, :2].copy_(x[1:] * x[0])
            z = p.ones(3, dtype=x.dtype)
            left, right = z[:2], z.detach()
            z.mul_(x)
            return y, whole * 2, first, second + x, deep.sum(0), apart, left.exp(), z, right

        to.append(p.func.jvp(seen, (x,), (x.cos(),)))
        to.append(p.func.jacfwd(seen)(x))
    close(tuple(found), tuple(wanted))


def mapped_tangents(p):
    x = p.tensor([0.3, -1.2, 0.7], dtype=p.float64)
    v = p.arange(6, dtype=p.float64).reshape(2, 3)
    d = p.tensor([[2.0, 1.0, 5.0], [3.0, 0.5, 1.0]], dtype=p.float64)

    def push(f, t):
        return p.func.jvp(f, (x,), (t,))

    # The value is the same for all examples until it meets one that is not.
    return (
        p.vmap(lambda t: push(lambda x: rows(p, x), t))(v),
        p.vmap(lambda t, d: push(lambda x: (x.exp() * d).cumsum(0), t))(v, d),
        p.vmap(lambda t, d: push(lambda x: p.stack([x.exp(), d]), t))(v, d),
        p.vmap(p.vmap(lambda t, d: push(lambda x: x.sin() * d, t), (None, 0)), (0, None))(v, d),
    )


@pytest.mark.parametrize("place", [0, 1])
def test_tangents_of_which_one_is_mapped(place):
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    rows = torch.randn(4, *(a, b)[place].shape, dtype=torch.float64)

    def push(p, f, a, b, rows):
        def one(row):
            return p.func.jvp(f, (a, b), (row, b.cos()) if place == 0 else (a.sin(), row))

        if p is lamella:
            return p.vmap(one)(rows)
        return tuple(p.stack(column) for column in zip(*map(one, rows)))

    for name in ("matmul", "scatter"):

        def f(a, b, name=name):
            return a @ b if name == "matmul" else a.as_strided_scatter(b[0], (3,), (1,), 1)

        given = (lamella.from_numpy(t.numpy()) for t in (a, b, rows))
        close(push(lamella, f, *given), push(torch, f, a, b, rows))


def test_tangents_that_are_mapped_over_one_point():
    close(mapped_tangents(lamella), mapped_tangents(torch))


def test_forward_mode_within_the_forward_of_a_function():
    class Sine(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert not lamella.autograd.forward_ad._is_fwd_grad_enabled()
            ctx.save_for_backward(x)
            return -lamella.func.jvp(lamella.cos, (x,), (lamella.ones_like(x),))[1]

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * lamella.func.jvp(lamella.sin, (x,), (lamella.ones_like(x),))[1]

    x = lamella.tensor([0.5, 2.0], requires_grad=True)
    y = Sine.apply(x)
    assert lamella.allclose(y, x.sin())
    (grad,) = lamella.autograd.grad(y.sum(), x)
    assert lamella.allclose(grad, x.cos())
    assert lamella.autograd.forward_ad._is_fwd_grad_enabled()


def test_forward_mode_switched_off():
    forward_ad = lamella.autograd.forward_ad
    x = lamella.tensor([0.5, 2.0])
    with forward_ad._set_fwd_grad_enabled(False):
        assert not forward_ad._is_fwd_grad_enabled()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        with forward_ad._set_fwd_grad_enabled(False):
            assert forward_ad.unpack_dual(dual.sin()).tangent is None
        assert lamella.allclose(forward_ad.unpack_dual(dual.sin()).tangent, x.cos() * x)


@pytest.mark.parametrize("hooks", ["on the CPU", "of a user's"])
def test_forward_mode_under_hooks_of_saved_tensors(hooks):
    graph = lamella.autograd.graph
    packed = []

    def loss(x):
        own = graph.saved_tensors_hooks(lambda t: (packed.append(1), t * 1)[1], lambda t: t)
        with graph.save_on_cpu() if hooks == "on the CPU" else own:
            return (x.sin() * x.exp()).sum()

    x = lamella.tensor([0.5, 2.0, -1.0], dtype=lamella.float64)
    plain = lambda x: (x.sin() * x.exp()).sum()  # noqa: E731
    pairs = zip(lamella.func.jvp(loss, (x,), (x,)), lamella.func.jvp(plain, (x,), (x,)))
    assert all(lamella.allclose(found, wanted) for found, wanted in pairs)
    assert not packed, "nothing is saved where nothing asks for gradients"
    assert lamella.allclose(lamella.func.hessian(loss)(x), lamella.func.hessian(plain)(x))
    assert lamella.allclose(lamella.func.grad(loss)(x), lamella.func.grad(plain)(x))
    assert bool(packed) == (hooks == "of a user's")


def test_vmap_where_its_key_is_excluded():
    from lamella.compat._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

    x = lamella.arange(6.0).reshape(2, 3)
    with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.FuncTorchBatched)):
        found = lamella.vmap(lambda row: row.sum())(x)
    assert found.tolist() == [3, 12]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f, c: f.jacrev(lambda x: x * 2)(c), "jacrev: expected inputs to be real, got lam"),
        (lambda f, c: f.jacfwd(lambda x: x * 2)(c), "jacfwd: expected inputs to be real, got lam"),
        (lambda f, c: f.jacrev(lambda x: x * c)(c.real), "jacrev: expected outputs to be real, go"),
        (lambda f, c: f.jacfwd(lambda x: x * c)(c.real), "jacfwd: expected outputs to be real, go"),
        (lambda f, c: f.jvp(lambda x: x, (1.0,), (c,)), "jvp: expected 'primals' to be tensors or"),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError) as error:
        call(lamella.func, lamella.ones(2, dtype=lamella.complex64))
    assert str(error.value).startswith(text)


def test_batch_norms_without_statistics_under_vmap():
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4)), nn.Linear(4, 1))
    assert lamella.func.replace_all_batch_norm_modules_(net) is net
    assert not net[1][0].track_running_stats and list(net.buffers()) == []
    state = dict(net.named_parameters())

    def loss(state, x):
        return lamella.func.functional_call(net, state, (x,)).square().mean()

    x = lamella.randn(5, 6, 3)
    found = lamella.vmap(lamella.func.grad(loss), in_dims=(None, 0))(state, x)
    for name, value in found.items():
        wanted = lamella.stack([lamella.func.grad(loss)(state, one)[name] for one in x])
        assert lamella.allclose(value, wanted, atol=1e-6)


def test_debug_unwrap():
    seen = []

    def look(x):
        inner = lamella.func.debug_unwrap(x, recurse=False)
        seen.append((tuple(x.shape), tuple(inner.shape)))
        seen.append(tuple(lamella.func.debug_unwrap(x).shape))
        return x

    x = lamella.ones(2, 3, 4)
    lamella.vmap(lamella.vmap(look))(x)
    assert seen == [((4,), (3, 4)), (2, 3, 4)]
    assert lamella.func.debug_unwrap(x) is x
    with pytest.raises(ValueError, match="debug_unwrap: expected 'tensor' to be a Tensor, got 3"):
        lamella.func.debug_unwrap(3)
