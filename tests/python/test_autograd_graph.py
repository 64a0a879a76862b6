"""backward and grad, hooks, nodes, anomaly mode, saved tensors, threads."""

import gc
import weakref

import pytest
from in_threads import in_threads

import lamella
from lamella.autograd import grad, graph
from lamella.utils._python_dispatch import TorchDispatchMode


def run(y, **options):
    y.backward(lamella.ones_like(y), **options)


def n(value):
    return lamella.tensor(value, dtype=lamella.float64)


def leaf(*values):
    return lamella.tensor(values, dtype=lamella.float64, requires_grad=True)


# ---- backward and grad ----


def test_backward_of_a_number():
    x = leaf(1.0, 2.0)
    run(x * x)
    assert x.grad.tolist() == [2.0, 4.0]


def test_backward_needs_a_gradient_for_more_elements():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError):
        (x * n(2.0)).backward()
    (x * n(2.0)).backward(lamella.tensor([1.0, 3.0], dtype=lamella.float64))
    assert x.grad.tolist() == [2.0, 6.0]
    with pytest.raises(RuntimeError):
        (x * n(2.0)).backward(lamella.ones(3, dtype=lamella.float64))
    with pytest.raises(TypeError):
        (x * n(2.0)).backward(3)


def test_backward_needs_a_graph():
    with pytest.raises(RuntimeError):
        lamella.ones(1).backward()


def test_the_graph_is_freed():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert "retain_graph=True" in str(error.value)


def test_backward_of_several_tensors():
    x = leaf(1.0)
    lamella.autograd.backward(
        [x * n(2.0), x * n(3.0)], [None, lamella.tensor([2.0], dtype=lamella.float64)]
    )
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="backward: expected 2 gradients, one for each tensor"):
        lamella.autograd.backward([x, x], [None])


def test_inputs_are_the_only_ones_that_get_gradients():
    x, y = leaf(1.0), leaf(2.0)
    z = x * y
    z.backward(inputs=[x])
    assert x.grad.tolist() == [2.0] and y.grad is None
    w = (x * n(2.0)).requires_grad_()
    (w * n(3.0)).backward(inputs=w)
    with pytest.warns(UserWarning):
        assert x.grad.tolist() == [2.0] and (x * n(2.0)).grad is None
    with pytest.raises(RuntimeError, match="backward: expected 'inputs' not to be empty"):
        (x * n(2.0)).backward(inputs=[])


def test_grad():
    x, y = leaf(3.0), leaf(4.0)
    z = x * x * y
    dx, dy = grad(z, (x, y))
    assert dx.tolist() == [24.0] and dy.tolist() == [9.0]
    assert x.grad is None and y.grad is None


def test_grad_of_computed_tensors():
    x = leaf(3.0)
    y = x * n(2.0)
    (dy,) = grad((y * y), y)
    assert dy.tolist() == [12.0]


def test_higher_derivatives():
    x = leaf(2.0)
    y = x * x * x
    values = []
    for _ in range(3):
        (y,) = grad(y, x, create_graph=True, materialize_grads=True)
        values.append(y.item())
    assert values == [12.0, 12.0, 6.0]


def test_unused_inputs():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad(x * n(2.0), [x, y])
    assert grad(x * n(2.0), [x, y], allow_unused=True)[1] is None
    assert grad(x * n(2.0), [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(ValueError, match="grad: expected 'allow_unused' not to be False"):
        grad(x * n(2.0), [x, y], allow_unused=False, materialize_grads=True)
    with pytest.raises(ValueError, match="grad: expected 'inputs' not to be empty"):
        grad(x * n(2.0), [])
    with pytest.raises(TypeError, match=r"grad: expected 'inputs'\[0\] to be a Tensor"):
        grad(x * n(2.0), [3])


def test_batched_gradients():
    x = leaf(1.0, 2.0)
    y = x * x
    eye = lamella.eye(2, dtype=lamella.float64)
    (rows,) = grad(y, x, eye, is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_gradient_edges():
    x = leaf(2.0)
    y = x * n(3.0)
    z = y * y
    (dy,) = grad(z, graph.get_gradient_edge(y), retain_graph=True)
    assert dy.tolist() == [36.0 / 3]
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    (dx,) = grad(edge, x, lamella.ones(1, dtype=lamella.float64))
    assert dx.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="get_gradient_edge: expected a tensor that requires"):
        graph.get_gradient_edge(lamella.ones(1))


def test_edges_that_nothing_leads_to():
    x, other = (lamella.ones(2, requires_grad=True) for _ in range(2))
    edge = graph.get_gradient_edge(other)
    with pytest.raises(RuntimeError, match="^grad: expected the outputs to depend on input 0, "):
        grad((x * 2).sum(), edge)
    assert grad((x * 2).sum(), edge, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="^backward: expected a gradient for output 0, "):
        grad(graph.get_gradient_edge(x * 2), x)


# ---- Tensor hooks ----


def test_hooks_run_in_order_and_replace():
    calls = []
    x = leaf(1.0)
    y = x * n(2.0)

    def hook(name, result):
        def run(grad):
            calls.append((name, grad.item()))
            return result(grad)

        return run

    y.register_hook(hook("a", lambda g: g * n(10.0)))
    handle = y.register_hook(hook("b", lambda g: g * n(100.0)))
    y.register_hook(hook("c", lambda g: None))
    handle.remove()
    handle.remove()
    run(y * n(1.0))
    assert calls == [("a", 1.0), ("c", 10.0)]
    assert x.grad.tolist() == [20.0]


def test_hooks_of_leaves():
    seen = []
    x = leaf(1.0)
    with x.register_hook(lambda g: seen.append(g.item())):
        run(x * n(2.0))
    run(x * n(2.0))
    assert seen == [2.0] and x.grad.tolist() == [4.0]


def test_hooks_need_gradients():
    with pytest.raises(RuntimeError) as error:
        lamella.ones(1).register_hook(print)
    assert str(error.value) == (
        "register_hook: expected a tensor that requires grad, got one that does not"
    )
    with pytest.raises(TypeError, match="register_hook: expected a function, got int"):
        leaf(1.0).register_hook(3)
    x = leaf(1.0)
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError) as error:
        run(x * n(1.0))
    assert (
        str(error.value) == "register_hook: expected the hook to return a Tensor or None, got int"
    )


def test_errors_of_hooks_come_out_as_they_were():
    error = KeyError("mine")
    x = leaf(1.0)

    def hook(grad):
        raise error

    x.register_hook(hook)
    with pytest.raises(KeyError) as caught:
        run(x * n(2.0))
    assert caught.value is error and x.grad is None


def test_hooks_end_with_their_tensor():
    x = leaf(1.0)

    def hook(grad, mine=x):
        return mine

    held = weakref.ref(hook)
    x.register_hook(hook)
    alive = weakref.ref(x)
    del x, hook
    gc.collect()
    assert alive() is None and held() is None


def test_post_accumulate_hooks():
    seen = []
    x = leaf(1.0)

    def hook(tensor):
        seen.append((tensor is x, tensor.grad.item()))
        tensor.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    run(x * n(2.0))
    assert seen == [(True, 2.0)] and x.grad is None
    handle.remove()
    run(x * n(2.0))
    assert len(seen) == 1 and x.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="expected a leaf that requires grad, got a tensor that"):
        (x * n(2.0)).register_post_accumulate_grad_hook(hook)


def test_multi_grad_hooks():
    seen = []
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)

    def note(grads):
        seen.append([None if g is None else g.item() for g in grads])

    handle = graph.register_multi_grad_hook([x, y, z], note)
    run(x * y)
    assert seen == [[2.0, 1.0, None]]
    run(x * y * z)
    assert seen[1] == [6.0, 3.0, 2.0]
    handle.remove()
    run(x)
    assert len(seen) == 2
    first = []
    graph.register_multi_grad_hook([x, y], lambda g: first.append(g.item()), mode="any")
    run(x * y)
    assert len(first) == 1


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hooks_of_backwards_that_run_inside_each_other(mode):
    x, y, inner, seen = leaf(2.0), leaf(3.0), [], []
    graph.register_multi_grad_hook([x, y], lambda grads: seen.append(1), mode=mode)

    def again(grad):
        if not inner:
            inner.append(1)
            with lamella.enable_grad():
                run(x * y)

    x.register_hook(again)
    y.register_hook(again)
    run(x * y)
    assert len(seen) == 2


# ---- Nodes ----


def test_nodes():
    x = leaf(1.0)
    y = x * n(2.0)
    z = y.exp()
    node = z.grad_fn
    assert type(node).__name__ == "ExpBackward0" and isinstance(node, graph.Node)
    assert repr(node).startswith("<ExpBackward0 object at 0x")
    ((following, index),) = node.next_functions
    assert following is y.grad_fn and index == 0
    (leaf_node, _), other = y.grad_fn.next_functions[0], y.grad_fn.next_functions[1:]
    assert leaf_node.name() == "AccumulateGrad" and leaf_node.variable is x
    assert all(entry == (None, 0) for entry in other)
    node.metadata["k"] = 3
    del node
    assert z.grad_fn.metadata == {"k": 3}
    with pytest.raises(AttributeError):
        _ = z.grad_fn.nothing


def test_collector_sees_the_class_of_a_node_once():
    # A second reference that it counts would let it clear the class while instances live.
    node = (leaf(1.0) * n(2.0)).grad_fn
    assert gc.get_referents(node).count(type(node)) == 1


def test_saved_values_of_nodes():
    x = leaf(1.0, 2.0)
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert "_saved_result" in dir(y.grad_fn)
    run(y)
    with pytest.raises(RuntimeError, match="retain_graph"):
        _ = y.grad_fn._saved_result


def test_node_hooks():
    seen = []
    x = leaf(3.0)
    y = x * x
    pre = y.grad_fn.register_prehook(lambda grads: (grads[0] * n(10.0),))

    def post(inputs, outputs):
        seen.append(([None if i is None else i.item() for i in inputs], outputs[0].item()))
        return tuple(i if i is None else i * n(2.0) for i in inputs)

    handle = y.grad_fn.register_hook(post)
    run(y, retain_graph=True)
    assert seen == [([30.0, 30.0], 10.0)]
    assert x.grad.tolist() == [120.0]
    pre.remove()
    handle.remove()
    run(y)
    assert len(seen) == 1 and x.grad.tolist() == [126.0]


def test_node_hooks_of_functions():
    class Identity(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = Identity.apply(x)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * n(7.0),))
    run(y)
    assert x.grad.tolist() == [7.0]


# ---- Saved tensors ----


def test_saved_tensor_hooks():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.item())
        return (tensor.item(),)

    def unpack(value):
        unpacked.append(value)
        return lamella.tensor(value, dtype=lamella.float64)

    x = leaf(3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    z = y * y
    assert packed == [3.0, 3.0] and unpacked == []
    run(z)
    assert unpacked == [(3.0,)] * 2 and x.grad.tolist() == [4 * 27.0]


def test_saved_tensor_hooks_of_functions():
    class Square(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * n(2.0)

    x = leaf(3.0)
    with graph.saved_tensors_hooks(lambda t: t.item(), lambda n: leaf(n + 1).detach()):
        y = Square.apply(x)
    run(y)
    assert x.grad.tolist() == [8.0]


def test_save_on_cpu():
    x = leaf(3.0)
    with graph.save_on_cpu():
        y = x * x
    run(y)
    assert x.grad.tolist() == [6.0]


def test_saved_tensor_hooks_can_be_disabled():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass


def test_wrong_unpack_hooks():
    x = leaf(3.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError) as error:
        run(y)
    assert str(error.value) == (
        "saved_tensors_hooks: expected 'unpack_hook' to return a Tensor, got int"
    )


def test_increment_version():
    x = leaf(3.0) * n(1.0)
    y = x * x
    before = x._version
    graph.increment_version(x)
    assert x._version == before + 1
    with lamella.inference_mode():
        uncounted = lamella.ones(2)
    graph.increment_version([uncounted])
    with pytest.raises(RuntimeError) as error:
        run(y)
    text = str(error.value)
    assert text.startswith("MulBackward0: expected 'other' as it was when it was saved")
    assert "at version 0, got version 1" in text


# ---- Anomaly mode ----


class Fails(lamella.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * n(1.0)

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in backward")


def test_anomaly_mode_shows_the_forward_call():
    with pytest.warns(UserWarning, match="detect_anomaly"), lamella.autograd.detect_anomaly():
        x = leaf(1.0) * n(1.0)
        y = x * x  # the line to be shown
        x.mul_(n(2.0))
        with pytest.raises(RuntimeError) as error:
            run(y)
    assert "MulBackward0 was recorded here" in str(error.value)
    assert "y = x * x  # the line to be shown" in str(error.value)


def test_anomaly_mode_notes_python_errors():
    with lamella.autograd.set_detect_anomaly(True):
        y = Fails.apply(leaf(1.0))
        with pytest.raises(ValueError, match="in backward") as error:
            run(y)
    notes = getattr(error.value, "__notes__", None)
    assert notes is None or "y = Fails.apply(leaf(1.0))" in notes[0]


def test_anomaly_mode_finds_nan():
    class Nan(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * n(1.0)

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    with lamella.autograd.set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="NanBackward: returned NaN as gradient 0"):
            run(Nan.apply(leaf(1.0)))
    with lamella.autograd.set_detect_anomaly(True, check_nan=False):
        run(Nan.apply(leaf(1.0)))


# ---- Size and threads ----


def test_a_million_nodes():
    x = leaf(1.0)
    y = x
    zero = n(0.0)
    for _ in range(1_000_000):
        y = y + zero
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_threads_share_a_graph():
    x = leaf(1.0)
    y = x * n(2.0)

    def work():
        for _ in range(100):
            run((y * n(3.0)), retain_graph=True)

    in_threads(work)
    assert x.grad.tolist() == [6.0 * 400]


def test_backward_inside_a_hook():
    x, w = leaf(1.0), leaf(2.0)

    def hook(grad):
        assert not lamella.is_grad_enabled()
        with lamella.enable_grad():
            (w * w).backward()

    x.register_hook(hook)
    run(x * n(3.0))
    assert x.grad.tolist() == [3.0] and w.grad.tolist() == [4.0]


def test_results_of_backward_have_no_graph():
    x = leaf(1.0)
    run(x * x)
    assert not x.grad.requires_grad
    x.grad = None
    run((x * x), create_graph=True)
    assert x.grad.requires_grad


def test_a_backward_inside_a_formula_leaves_it_what_it_reads():
    x = lamella.tensor([2.0, 3.0], requires_grad=True)
    factors = [lamella.full((2,), float(i + 2)) for i in range(3)]
    y = x
    for factor in factors:
        y = y * factor
    total = y.sum()
    del factors, factor

    class Again(TorchDispatchMode):
        entered = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            # In the middle of the last multiplication's formula, which reads what its node kept
            # afterwards.
            if "mul" in str(func) and not self.entered:
                self.entered += 1
                run(y)
            return func(*args, **(kwargs or {}))

    mode = Again()
    with mode, pytest.raises(RuntimeError, match="given up by an earlier backward"):
        total.backward()
    assert mode.entered == 1
    assert x.grad.tolist() == [24.0, 24.0]


def test_materialized_gradients():
    x, y = leaf(2.0), leaf(3.0)
    z = x * n(2.0)
    edge = graph.get_gradient_edge(y * n(1.0))
    for create_graph in (False, True):
        _, zero = lamella.autograd.grad(
            z, (x, y), retain_graph=True, create_graph=create_graph, materialize_grads=True
        )
        assert zero.item() == 0 and zero.requires_grad == create_graph
    (again,) = lamella.autograd.grad(zero, y, materialize_grads=True)
    assert again.item() == 0
    own = graph.get_gradient_edge(x)
    assert lamella.autograd.grad(z, own, retain_graph=True, materialize_grads=True)[0].item() == 2
    with pytest.raises(RuntimeError, match="^grad: materialize_grads cannot be used when the giv"):
        lamella.autograd.grad(z, (x, edge), materialize_grads=True)
