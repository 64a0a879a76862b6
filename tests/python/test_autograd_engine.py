"""The engine: calls of nodes, repeated backward, hooks that change the run, deep graphs, and saved
values.
"""

import gc
import sys
import weakref

import pytest

import lamella
from lamella.autograd import grad
from lamella.utils._python_dispatch import TorchDispatchMode


def n(value):
    return lamella.tensor(value, dtype=lamella.float64)


def leaf(*values):
    return lamella.tensor(values, dtype=lamella.float64, requires_grad=True)


# ---- What a run asks for ----


class Calls(TorchDispatchMode):
    """Operators that run, with their arguments."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func._schema.name, args))
        return func(*args, **(kwargs or {}))

    def names(self):
        return [name for name, _ in self.calls]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_grad_computes_only_what_is_asked_for(which, transposed):
    x = lamella.randn(2, 3, 8, 8).requires_grad_()
    w = lamella.randn(3, 3, 3, 3).requires_grad_()
    b = lamella.randn(3).requires_grad_()
    function = lamella.nn.functional.conv_transpose2d if transposed else lamella.conv2d
    y = function(x, w, b)
    with Calls() as seen:
        grad(y, (x, w, b)[which], lamella.ones_like(y))
    masks = [args[-1] for name, args in seen.calls if name == "aten::convolution_backward"]
    assert masks == [[i == which for i in range(3)]]


def test_only_the_paths_to_the_inputs_run_within_a_node():
    x, w = leaf(1.0, 2.0).unsqueeze(0), leaf(3.0, 4.0).unsqueeze(1)
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = (x.sin() @ w).sum()
    with Calls() as seen:
        (found,) = grad(y, w, retain_graph=True)
    assert found.tolist() == x.detach().sin().t().tolist()
    assert seen.names().count("aten::mm") == 1 and "aten::cos" not in seen.names()
    with Calls() as seen:
        y.backward(inputs=[w])
    assert seen.names().count("aten::mm") == 1
    assert x.grad is None and w.grad.tolist() == found.tolist()


def test_asking_for_what_a_write_into_a_view_left():
    """The write's node is asked for what lies before the write, and for nothing else."""
    x, y = leaf(1.0, 2.0, 3.0), leaf(5.0)
    z = x * n(2.0)
    z[1:2].mul_(y)
    found = grad(z, x, n([1.0, 1.0, 1.0]), retain_graph=True)[0]
    assert found.tolist() == [2.0, 10.0, 2.0]
    with Calls() as seen:
        found = grad(z, y, n([1.0, 1.0, 1.0]))[0]
    assert found.tolist() == [4.0]
    assert seen.names().count("aten::mul") == 1


def test_functions_are_told_what_is_needed():
    needed = []

    class Product(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            needed.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    x, y = leaf(2.0), leaf(3.0)
    assert grad(Product.apply(x, y), x)[0].tolist() == [3.0]
    # Said when forward runs, as PyTorch says it.
    assert needed == [(True, True)]


# ---- Going through a graph again ----


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.sum(),
        lambda x: (x * 3).sum(),
        lambda x: (x + x).mean(),
        lambda x: x.view(2, 2).t().expand(3, 2, 2).sum(),
        lambda x: lamella.cat([x, x]).sum(),
        lambda x: lamella.stack([x, x])[0].sum(),
        lambda x: x.repeat(2).flip(0).roll(1).cumsum(0).sum(),
        lambda x: lamella.nn.functional.pad(x, (1, 1)).narrow(0, 1, 3).sum(),
        lambda x: x.to(lamella.float32).double().sum(),
    ],
)
def test_nodes_that_keep_no_tensor_run_again(program):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = program(x)
    y.backward()
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * value for value in first]


@pytest.mark.parametrize(
    ("program", "node"),
    [
        (lambda x: (x * x).sum(), "MulBackward0"),
        (lambda x: (x * n([1.0, 2.0])).sum(), "MulBackward0"),
        (lambda x: x.exp().sum(), "ExpBackward0"),
        (lambda x: x[lamella.tensor([0])].sum(), "IndexBackward0"),
    ],
)
def test_nodes_that_kept_a_tensor_do_not_run_again(program, node):
    x = leaf(1.0, 2.0)
    y = program(x)
    y.backward()
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert str(error.value) == (
        f"{node}: what it saved was given up by an earlier backward; pass retain_graph=True to it "
        "to go through the graph again"
    )


# ---- Hooks that change what runs ----


def test_hooks_may_remove_themselves_and_each_other():
    for kind in ("tensor", "before", "after", "accumulated"):
        x = leaf(1.0)
        y = x * n(2.0)
        order, handles = [], []

        def run(name, order=order, handles=handles):
            order.append(name)
            for handle in handles:
                handle.remove()

        for name in "abc":
            hook = lambda *_, name=name, run=run: run(name)  # noqa: E731
            handles.append(
                y.register_hook(hook)
                if kind == "tensor"
                else y.grad_fn.register_prehook(hook)
                if kind == "before"
                else y.grad_fn.register_hook(hook)
                if kind == "after"
                else x.register_post_accumulate_grad_hook(hook)
            )
        y.backward(n([1.0]), retain_graph=True)
        y.backward(n([1.0]))
        # A removed hook of a node is gone at once; of the others, what was there at first runs.
        assert order == (["a"] if kind in ("before", "after") else ["a", "b", "c"]), kind
        assert x.grad.tolist() == [4.0]


def test_hooks_may_be_added_while_they_run():
    x = leaf(1.0)
    y = x * n(2.0)
    seen = []

    def hook(g):
        seen.append(len(seen))
        if len(seen) < 50:
            y.register_hook(hook)

    y.register_hook(hook)
    y.backward(n([1.0]), retain_graph=True)
    assert len(seen) == 1
    y.backward(n([1.0]))
    assert len(seen) == 3


def test_hooks_may_let_go_of_the_graph():
    held = {}
    x = leaf(1.0)
    held["y"] = x * n(2.0)
    held["z"] = held["y"].exp()

    def hook(g):
        held.clear()
        gc.collect()
        x.data = n([7.0])
        return g * n(2.0)

    held["y"].register_hook(hook)
    z = held["z"]
    value = z.item()
    z.backward(n([1.0]))
    assert x.grad.tolist() == [4.0 * value]


def test_a_failing_hook_leaves_the_thread_as_it_was():
    x = leaf(1.0)
    y = x * x

    def hook(g):
        raise ValueError("stop")

    y.register_hook(hook)
    for _ in range(3):
        with pytest.raises(ValueError, match="stop"):
            y.backward(n([1.0]))
        assert lamella.is_grad_enabled() and (x * x).requires_grad
    z = leaf(2.0)
    (z * z).backward()
    assert z.grad.tolist() == [4.0]


# ---- Deep graphs, cycles ----


def test_very_deep_graphs_end():
    class Same(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    for step in (lambda y: y * y.detach(), lambda y: Same.apply(y), lambda y: y[0:1].mul_(n(1.0))):
        x = leaf(1.0)
        y = x + 0
        for _ in range(50_000):
            y = step(y)
        y.backward(n([1.0]))
        assert x.grad.tolist() == [1.0]
        again = step(y)
        del y, again


def test_backward_deep_inside_of_backward():
    class Deeper(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.left = int(x.item())
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.left > 0:
                with lamella.enable_grad():
                    x = leaf(ctx.left - 1.0)
                    Deeper.apply(x).backward(g)
                g = g + x.grad
            return g

    # Other interpreters than these bound the runs by a count or a stack of their own.
    for levels in (2000 if (3, 11) <= sys.version_info < (3, 14) else 50, 100):
        x = leaf(float(levels))
        Deeper.apply(x).backward(n([1.0]))
        assert x.grad.tolist() == [levels + 1.0]

    def without_end():
        return without_end()

    with pytest.raises(RecursionError):
        without_end()


def test_a_gradient_that_nothing_else_needs_is_not_copied():
    class Both(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            places.append(g.data_ptr())
            return g, g

    places = []
    x, y = leaf(1.0), leaf(2.0)
    (Both.apply(x, y) * n(2.0)).backward(n([1.0]))
    assert x.grad.tolist() == y.grad.tolist() == [2.0]
    # One of the two keeps the memory of the gradient, and the other one has a copy.
    assert [x.grad.data_ptr(), y.grad.data_ptr()].count(places[0]) == 1


def test_a_gradient_with_a_graph_that_keeps_its_leaf():
    """backward(create_graph=True) makes a cycle, of which grad = None lets go; grad() makes none"""
    x = leaf(1.0)
    gone = weakref.ref(x)
    found = grad((x * x * x).sum(), x, create_graph=True)[0]
    found.sum().backward()
    del x, found
    gc.collect()
    assert gone() is None
    x = leaf(1.0)
    gone = weakref.ref(x)
    (x * x * x).sum().backward(create_graph=True)
    x.grad = None
    del x
    gc.collect()
    assert gone() is None


# ---- Inference mode ----


def test_tensors_of_inference_mode_are_not_saved():
    with lamella.inference_mode():
        made = lamella.ones(2, dtype=lamella.float64)
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError) as error:
        x * made
    assert str(error.value) == (
        "mul: expected 'other' not to be made in inference mode, since it is saved for backward; "
        "clone it first"
    )
    assert (x + made).requires_grad
    assert (x * made.clone()).requires_grad
    with lamella.no_grad():
        assert (x * made).tolist() == [1.0, 2.0]

    class Keep(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

    with pytest.raises(RuntimeError) as error:
        Keep.apply(x, made)
    assert str(error.value) == (
        "save_for_backward: expected 'tensor' not to be made in inference mode, since it is saved "
        "for backward; clone it first"
    )


def test_grads_lie_as_their_leaves():
    for leaf in (lamella.randn(3, 4).t(), lamella.randn(8, 4).t(), lamella.randn(4, 8)):
        leaf.requires_grad_()
        (lamella.ones(2, leaf.shape[0]).mm(leaf) * 2).sum().backward()
        assert leaf.grad.stride() == leaf.stride()
    image = lamella.randn(2, 3, 4, 5).contiguous(memory_format=lamella.channels_last)
    image.requires_grad_().exp().sum().backward()
    assert image.grad.stride() == image.stride()
    every_other = lamella.randn(6, 4)[::2].requires_grad_()
    (every_other * 2).sum().backward()
    assert every_other.grad.is_contiguous()


@pytest.mark.parametrize(
    "run",
    [
        lambda x, y, z: lamella.autograd.grad(z.sum(), x),
        lambda x, y, z: lamella.autograd.grad(z.sum(), y),
        lambda x, y, z: lamella.autograd.grad(z.sum(), [x, y]),
        lambda x, y, z: z.sum().backward(inputs=[x]),
        lambda x, y, z: z.sum().backward(inputs=[y]),
    ],
)
def test_retained_grads_of_part_of_a_graph(run):
    x = lamella.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    y.retain_grad()
    z.retain_grad()
    run(x, y, z)
    assert y.grad.tolist() == [3, 3] and z.grad.tolist() == [1, 1]


@pytest.mark.parametrize("restricted", [False, True])
def test_hooks_of_leaves_run_once_at_the_last_gradient(restricted):
    early, late = lamella.ones(2, requires_grad=True), lamella.ones(2, requires_grad=True)
    seen = []

    def watch(name, tensor):
        tensor.register_hook(lambda grad: seen.append(name))
        return tensor

    early.register_hook(lambda grad: seen.append(("early", grad.tolist())))
    early.register_post_accumulate_grad_hook(lambda x: seen.append(("stored", x.grad.tolist())))
    late.register_post_accumulate_grad_hook(lambda x: seen.append(("late", x.grad.tolist())))
    a = watch("a", late * 2)
    b = watch("b", a * 3)
    c = watch("c", b * early)
    d = watch("d", c + early)
    d.sum().backward(inputs=[early, late] if restricted else None)
    assert seen == ["d", "c", ("early", [7, 7]), ("stored", [7, 7]), "b", "a", ("late", [6, 6])]


def test_hooks_of_a_leaf_among_the_roots_see_its_whole_gradient():
    x = lamella.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    lamella.autograd.backward([x.sum(), x, (x * 2).exp().log().sum()], [None, x.detach(), None])
    assert seen == [[4, 4]]


def test_a_hook_that_fails_midway_leaves_no_gradient_behind():
    x, y = lamella.ones(2, requires_grad=True), lamella.ones(2, requires_grad=True)

    def fail(leaf):
        raise ValueError("no")

    handle = x.register_post_accumulate_grad_hook(fail)
    y.register_hook(lambda grad: None)
    z = y.exp() * x + y
    with pytest.raises(ValueError, match="^no$"):
        z.sum().backward(retain_graph=True)
    assert y.grad is None
    handle.remove()
    z.sum().backward()
    assert y.grad.tolist() == [z.item() for z in (lamella.ones(2).exp() + 1)]


def test_a_leaf_with_hooks_takes_its_gradient_over():
    x = lamella.ones(1000, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    with lamella.profiler.profile() as recorded:
        x.exp().sum().backward()
    assert not [event for event in recorded.events() if "copy" in event.name]


def test_hooks_on_saved_tensors_that_come_and_go_in_backward():
    """Backward leaves the thread's hooks as they were."""
    context = lamella.autograd.graph.saved_tensors_hooks

    def enter(tensor):
        context(lambda t: t, lambda t: t).__enter__()
        return tensor

    def leave(tensor):
        outer.__exit__()
        return tensor

    seen = []
    outer = context(lambda t: t, leave)
    for hooks in (context(lambda t: t, enter), outer):
        x = lamella.ones(2, requires_grad=True)
        with hooks:
            x.sin().sum().backward()
            seen.clear()
            with context(lambda t: seen.append(1) or t, lambda t: t):
                x.sin()
            assert seen == [1]
    with pytest.raises(RuntimeError) as error:
        outer.__exit__()
    assert str(error.value) == "saved_tensors_hooks: expected hooks to be set, got none"
