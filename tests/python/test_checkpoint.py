"""Checkpoints: the same gradients, with values recomputed instead of kept."""

import gc
import weakref

import pytest

import lamella
from lamella import nn
from lamella.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)

F = nn.functional


def step(x, w):
    return F.dropout((x @ w).sin().exp(), 0.3).cos() * x


def leaves():
    lamella.manual_seed(3)
    return lamella.randn(4, 4, requires_grad=True), lamella.randn(4, 4, requires_grad=True)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_same_gradients(reentrant, nested):
    x, w = leaves()
    wanted = step(step(x, w), w)
    gradients = lamella.autograd.grad(wanted.sum(), (x, w))
    after = lamella.rand(1).item()
    runs = []

    def both(x, w):
        runs.append(1)
        if not nested:
            return step(step(x, w), w)
        inner = checkpoint(step, x, w, use_reentrant=reentrant)
        return checkpoint(step, inner, w, use_reentrant=reentrant)

    leaves()
    y = checkpoint(both, x, w, use_reentrant=reentrant)
    assert y.tolist() == wanted.tolist()
    y.sum().backward()
    assert lamella.allclose(x.grad, gradients[0]) and lamella.allclose(w.grad, gradients[1])
    assert len(runs) == 2
    # Running again has not touched the generator.
    assert lamella.rand(1).item() == after


def test_backward_twice_and_of_backward():
    x, w = leaves()
    y = checkpoint(step, x, w, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    assert lamella.allclose(x.grad, first * 2)

    def smooth(x):
        return (x * x).sin() * x

    results = []
    for function in (smooth, lambda x: checkpoint(smooth, x, use_reentrant=False)):
        (g,) = lamella.autograd.grad(function(x).sum(), x, create_graph=True)
        results.append(lamella.autograd.grad(g.sum(), x)[0])
    assert lamella.allclose(*results)


def test_nothing_is_kept():
    x, w = leaves()
    kept = []

    def function(x, w):
        middle = x @ w
        kept.append(weakref.ref(middle))
        return middle.sin().exp()

    y = checkpoint(function, x, w, use_reentrant=False)
    gc.collect()
    assert kept[0]() is None
    y.sum().backward()
    gc.collect()
    assert kept[1]() is None


def test_early_stop():
    x, w = leaves()
    reached = []

    def function(x, w):
        y = (x * w).sin()
        reached.append(1)
        return y

    y = checkpoint(function, x, w, use_reentrant=False)
    y.sum().backward()
    assert len(reached) == 1
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, w, use_reentrant=False)
    y.sum().backward()
    assert len(reached) == 3


@pytest.mark.parametrize("depth", [1, 2])
def test_backward_inside_of_the_function(depth):
    """The function calls grad() itself, so that its tensors are needed while it still runs."""

    def cube(x):
        return x * x * x

    def derivative(function):
        def made(x):
            with lamella.enable_grad():
                return lamella.autograd.grad(function(x).sum(), x, create_graph=True)[0]

        return made

    def kept(function):
        return lambda x: checkpoint(function, x, use_reentrant=False)

    for early_stop in (True, False):
        x = lamella.tensor([2.0, 3.0], requires_grad=True)
        function, expected = kept(derivative(kept(cube))), [12.0, 18.0]
        if depth == 2:
            function, expected = kept(derivative(function)), [6.0, 6.0]
        with set_checkpoint_early_stop(early_stop):
            (got,) = lamella.autograd.grad(function(x).sum(), x)
        assert got.tolist() == expected


def test_tensors_without_gradients_stay_themselves():
    got = []

    class Keeps(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            got.extend(ctx.saved_tensors)
            return grad, None

    x, y = lamella.ones(2, requires_grad=True), lamella.ones(2)
    checkpoint(Keeps.apply, x, y, use_reentrant=False).sum().backward()
    assert got[0] is y


def test_one_node_needs_a_backward_to_all_leaves():
    x, w = leaves()
    y = checkpoint(lambda x: (x * w).sin(), x, use_reentrant=True)
    for call in (
        lambda: lamella.autograd.grad(y.sum(), x, retain_graph=True),
        lambda: y.sum().backward(inputs=[x], retain_graph=True),
    ):
        with pytest.raises(RuntimeError, match="^checkpoint: expected a backward to all leaves"):
            call()
    assert w.grad is None
    y.sum().backward()
    assert lamella.allclose(w.grad, ((x * w).cos() * x).detach())


def test_other_arguments():
    x, _ = leaves()

    def function(x, scale, *, shift=None, flip=False):
        return (x * scale).sin() * (-shift if flip else shift)

    shift = lamella.ones(4, 4, requires_grad=True)
    checkpoint(function, x, 2.0, shift=shift, flip=True, use_reentrant=False).sum().backward()
    assert lamella.allclose(shift.grad, -(x * 2).sin().detach())
    with lamella.no_grad():
        assert not checkpoint(function, x, 2.0, shift=shift, use_reentrant=False).requires_grad
    contexts = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            contexts.append(self.name)

        def __exit__(self, *error):
            pass

    y = checkpoint(
        lambda x: x.sin(),
        x,
        use_reentrant=False,
        context_fn=lambda: (Context("forward"), Context("again")),
    )
    y.sum().backward()
    assert contexts == ["forward", "again"]


def test_functions_that_change():
    x = lamella.ones(3, requires_grad=True)
    runs = []

    def smaller(x):
        runs.append(1)
        x = x if len(runs) == 1 else x[0]
        return (x * x).sin()

    y = checkpoint(smaller, x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as error:
        y.sum().backward()
    assert str(error.value).startswith(
        "checkpoint: expected saved tensor 0 to have shape [3], dtype lamella.float32, on cpu when "
        "the function is run again, as before, got shape "
    )
    assert "\nbefore:\n  shape [3]" in str(error.value)

    def fewer(x):
        runs.append(1)
        return x.sin().exp() if len(runs) == 1 else x.sin()

    runs.clear()
    y = checkpoint(fewer, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="to save as many tensors as before when run again"):
        y.sum().backward()


def test_errors_and_warnings():
    x = lamella.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x.sin(), x)
    with pytest.warns(UserWarning, match="no argument requires gradients"):
        checkpoint(lambda x: x.sin(), lamella.ones(3), use_reentrant=True)
    with pytest.raises(ValueError) as error:
        checkpoint(lambda x: x, x, use_reentrant=True, what=1)
    assert str(error.value) == (
        "checkpoint: expected no keyword arguments with use_reentrant=True, got what"
    )

    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        checkpoint(fails, x, use_reentrant=False)


@pytest.mark.parametrize("reentrant", [False, True])
def test_sequential(reentrant):
    lamella.manual_seed(0)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(5)])
    x = lamella.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    wanted = x.grad
    x.grad = None
    checkpoint_sequential(net, 2, x, use_reentrant=reentrant).sum().backward()
    assert lamella.allclose(x.grad, wanted)
