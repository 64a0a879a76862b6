"""Gradients of compiled functions, differentiated again: equal to eager calls and to PyTorch."""

import gc
import weakref

import pytest

lamella = pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")
from lamella import nn  # noqa: E402
from lamella.nn import functional as F  # noqa: E402


def smooth(x, w):
    return ((x @ w).tanh() * x.exp().sum()).sum()


def cubic(x, w):
    return (x**3 @ w).pow(2).mean()


def numbers(*shape, seed=0):
    generator = lamella.Generator().manual_seed(seed)
    return lamella.randn(*shape, dtype=lamella.float64, generator=generator).requires_grad_()


def penalty(function, tensors):
    """The result, its gradients, and the gradients of a penalty on these."""
    out = function(*tensors)
    grads = lamella.autograd.grad(out, tensors, create_graph=True)
    total = sum((grad * grad).sum() for grad in grads) + out
    return [out, *grads, *lamella.autograd.grad(total, tensors)]


def close(got, expected, tolerance=1e-9):
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert lamella.allclose(a, b, rtol=tolerance, atol=tolerance), (a, b)


@pytest.mark.parametrize("function", [smooth, cubic], ids=lambda f: f.__name__)
def test_equal_to_eager(function):
    tensors = [numbers(3, 4), numbers(4, 5, seed=1)]
    compiled = lamella.compile(function, fullgraph=True)
    for _ in range(2):
        close(penalty(compiled, tensors), penalty(function, tensors))


@pytest.mark.parametrize("function", [smooth, cubic], ids=lambda f: f.__name__)
def test_equal_to_torch(function):
    torch = pytest.importorskip("torch")
    tensors = [numbers(3, 4), numbers(4, 5, seed=1)]
    theirs = [torch.tensor(t.detach().numpy()).requires_grad_() for t in tensors]
    out = function(*theirs)
    grads = torch.autograd.grad(out, theirs, create_graph=True)
    total = sum((grad * grad).sum() for grad in grads) + out
    expected = [out, *grads, *torch.autograd.grad(total, theirs)]
    got = penalty(lamella.compile(function), tensors)
    for a, b in zip(got, expected):
        assert torch.allclose(torch.tensor(a.detach().numpy()), b.detach(), rtol=1e-9)


def test_third_derivatives():
    def function(x):
        return (x.sin() * x).sum()

    def third(f, x):
        (first,) = lamella.autograd.grad(f(x), x, create_graph=True)
        (second,) = lamella.autograd.grad(first.sum(), x, create_graph=True)
        return lamella.autograd.grad(second.sum(), x)

    x = numbers(7)
    compiled = lamella.compile(function)
    for _ in range(2):
        close(third(compiled, x), third(function, x))


def test_gradgradcheck():
    compiled = lamella.compile(smooth)
    assert lamella.autograd.gradgradcheck(compiled, (numbers(2, 3), numbers(3, 2, seed=1)))


def test_arguments_have_histories():
    """Gradients continue through the history of the arguments."""

    def penalty_of(f):
        x = numbers(3, 4)
        (grad,) = lamella.autograd.grad(f(x.exp(), x @ x.T @ x.T.T), x, create_graph=True)
        return [grad, *lamella.autograd.grad(grad.pow(2).sum(), x)]

    def function(a, b):
        return (a * b.tanh() * a).sum()

    close(penalty_of(lamella.compile(function)), penalty_of(function))


def test_module_with_parameters():
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    x = numbers(6, 3)

    def gradients(f):
        (grad,) = lamella.autograd.grad(f(x).sum(), x, create_graph=True)
        loss = (grad.norm(dim=1) - 1).pow(2).mean()
        return [grad, *lamella.autograd.grad(loss, list(net.parameters()), allow_unused=True)]

    expected = gradients(net)
    compiled = lamella.compile(net)
    for _ in range(2):
        got = gradients(compiled)
        assert [g is None for g in got] == [g is None for g in expected]
        close([g for g in got if g is not None], [g for g in expected if g is not None])
    parameters = [id(p) for p in net.parameters()]
    assert parameters == [id(p) for p in compiled.parameters()]


def test_several_results_of_which_one_has_no_gradient():
    def function(x):
        return x.sin(), (x > 0).sum(), x.detach() * 2, x.exp()

    def second(f, x):
        a, _, _, b = f(x)
        (grad,) = lamella.autograd.grad((a * b).sum(), x, create_graph=True)
        return [grad, *lamella.autograd.grad(grad.sum(), x)]

    x = numbers(5)
    close(second(lamella.compile(function), x), second(function, x))


def test_buffers_that_are_written():
    def make():
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double()
        for seed, p in enumerate(net.parameters()):
            p.data.copy_(numbers(*p.shape, seed=seed).detach())
        return net

    def second(net, f, x):
        out = f(x)
        (grad,) = lamella.autograd.grad(out.pow(3).sum(), x, create_graph=True)
        made = lamella.autograd.grad(grad.pow(2).sum(), x)
        return [grad, *made, *(b for b in net.buffers() if b.is_floating_point())]

    x = numbers(6, 3)
    eager, other = make(), make()
    close(second(other, lamella.compile(other), x), second(eager, eager, x), 1e-7)


def test_autocast_of_the_call():
    x, w = numbers(4, 4), numbers(4, 4, seed=1)
    x, w = (t.detach().float().requires_grad_() for t in (x, w))

    def second(f):
        with lamella.autocast("cpu", dtype=lamella.bfloat16):
            out = f(x, w)
        (grad,) = lamella.autograd.grad(out.float().sum(), x, create_graph=True)
        return [grad, *lamella.autograd.grad(grad.sum(), w)]

    def function(x, w):
        return (x @ w) @ x

    close(second(lamella.compile(function)), second(function), 2e-2)


def test_what_has_no_program_runs_as_it_is():
    """A gradient whose own formula looks at elements in Python."""

    class Cube(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            if lamella.is_grad_enabled() and x.sum().item() > 1e9:
                return grad
            return grad * 3 * x**2

    def function(x):
        return Cube.apply(x).sum()

    x = numbers(4)
    compiled = lamella.compile(function)
    (grad,) = lamella.autograd.grad(compiled(x), x, create_graph=True)
    (again,) = lamella.autograd.grad(grad.sum(), x)
    close([grad, again], [3 * x**2, 6 * x])


def test_random_numbers_are_refused():
    def function(x):
        return (F.dropout(x, 0.5) ** 3).sum()

    x = numbers(50)
    compiled = lamella.compile(function)
    lamella.manual_seed(1)
    (expected,) = lamella.autograd.grad(function(x), x)
    lamella.manual_seed(1)
    (grad,) = lamella.autograd.grad(compiled(x), x, create_graph=True)
    close([grad], [expected])
    with pytest.raises(RuntimeError) as error:
        lamella.autograd.grad(grad.sum(), x)
    assert str(error.value) == (
        "compile: expected a function that draws no random numbers when its gradients are "
        "differentiated; call it uncompiled there"
    )


def test_written_arguments_are_refused():
    x = numbers(3)
    y = x * 1
    out = lamella.compile(lambda y: (y**3).sum())(y)
    with lamella.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError) as error:
        lamella.autograd.grad(out, x, create_graph=True)
    assert "was written" in str(error.value) or "modified" in str(error.value)


def test_nothing_is_kept():
    def function(x):
        return (x**3).sum()

    compiled = lamella.compile(function)
    x = numbers(3)
    (grad,) = lamella.autograd.grad(compiled(x), x, create_graph=True)
    lamella.autograd.grad(grad.sum(), x)
    kept = weakref.ref(x)
    del x, grad
    gc.collect()
    assert kept() is None


def test_graph_outlives_the_compiled_function():
    def function(x):
        return (x**3).sum()

    x = numbers(3)
    out = lamella.compile(function)(x)
    gc.collect()
    (grad,) = lamella.autograd.grad(out, x, create_graph=True)
    close(lamella.autograd.grad(grad.sum(), x), [6 * x])


def test_state_that_changes_before_the_second_gradient():
    scale = [2.0]
    compiled = lamella.compile(lambda x: (x**3).sum() * scale[0])
    x = numbers(3)
    out = compiled(x)
    scale[0] = 5.0
    with pytest.raises(RuntimeError) as error:
        lamella.autograd.grad(out, x, create_graph=True)
    assert str(error.value) == (
        "compile: expected what a function read to be unchanged when its gradients are "
        "differentiated for the first time, got something that has changed"
    )
    (grad,) = lamella.autograd.grad(compiled(x), x, create_graph=True)
    close(lamella.autograd.grad(grad.sum(), x), [30 * x])
