"""The lifetime of objects of lamella.autograd.Function, and the threads that may use them."""

import gc
import weakref

import pytest
from autograd_functions import Identity, Square, leaf, n, run
from in_threads import in_threads

import lamella
from lamella.autograd import Function


class Held:
    """An object whose end a weak reference sees."""


def test_contexts_end_with_their_outputs():
    held = []

    class Watch(Function):
        @staticmethod
        def forward(ctx, x):
            held.append(weakref.ref(ctx))
            ctx.save_for_backward(x)
            return x * n(1.0)

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = Watch.apply(x)
    z = y * n(2.0)
    assert held[0]() is not None
    del y
    assert held[0]() is not None
    run(z)
    del z
    assert held[0]() is None


@pytest.mark.parametrize("how", ["output", "list", "saved", "computed", "closure", "metadata"])
def test_cycles_are_collected(how):
    class Cyclic(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            if how == "output":
                ctx.y = y
            if how == "list":
                ctx.things = {"y": [y]}
            if how == "saved":
                ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = Cyclic.apply(x)
    if how == "computed":
        y.grad_fn.z = (y * n(2.0)) * n(3.0)
    if how == "closure":
        y.register_hook(lambda grad, held=y: grad * held)
    if how == "metadata":
        y = y * n(2.0)
        y.grad_fn.metadata["y"] = y
    alive = weakref.ref(y)
    node = y.grad_fn if how != "metadata" else None
    node = weakref.ref(node) if node is not None else alive
    del y
    gc.collect()
    assert alive() is None and node() is None


def test_a_used_context_is_not_collected():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.things = [x * n(1.0)]
            return x * n(2.0)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.things[0]

    x = leaf(3.0)
    y = Keep.apply(x)
    z = y * n(1.0)
    del y
    gc.collect()
    run(z)
    assert x.grad.tolist() == [3.0]


def test_classes_are_collected():
    def make():
        class Local(Function):
            @staticmethod
            def forward(ctx, x):
                return x * n(1.0)

            @staticmethod
            def backward(ctx, grad):
                return grad

        run(Local.apply(leaf(1.0)))
        return weakref.ref(Local)

    made = make()
    gc.collect()
    assert made() is None


def test_long_chains_end_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = Identity.apply(y)
    run(y)
    assert x.grad.tolist() == [1.0]
    del y


def test_threads_run_backward_at_once():
    x = leaf(1.0)

    def work():
        for _ in range(50):
            y = leaf(3.0)
            run(Square.apply(Square.apply(y)))
            assert y.grad.tolist() == [108.0]
            run(Square.apply(x))

    in_threads(work, 8)
    assert x.grad.tolist() == [2.0 * 50 * 8]


def test_attributes_end_with_a_tensor_that_a_graph_kept():
    """An object with attributes lives on in its tensor, and ends with the last that holds that."""

    class Seen:
        pass

    x = lamella.ones(3, requires_grad=True)
    x.seen = Seen()
    ended = weakref.ref(x.seen)
    y = x * x  # which needs x for its gradient
    del x
    gc.collect()
    assert ended() is not None
    del y
    gc.collect()
    assert ended() is None


@pytest.mark.parametrize("on_tensor", [True, False])
def test_hooks_that_hold_their_node_are_collected_with_the_graph(on_tensor):
    count = []

    def made():
        y = lamella.ones(1, requires_grad=True).clone()
        node, held = y.grad_fn, Held()

        def hook(*gradients):
            count.append((node.name(), held))

        (y if on_tensor else node).register_hook(hook)
        return y.clone(), weakref.ref(held)

    out, held = made()
    gc.collect()
    out.backward(retain_graph=True)
    gc.collect()
    out.backward(retain_graph=True)
    assert len(count) == 2 and held() is not None
    count.clear()
    del out
    gc.collect()
    assert held() is None
