"""lamella.autograd.Function."""

import pytest
from autograd_functions import Identity, Square, leaf, n, run

import lamella
from lamella.autograd import Function
from lamella.autograd.function import once_differentiable


def test_forward_and_backward():
    x = leaf(2.0, 3.0)
    y = Square.apply(x)
    assert y.tolist() == [4.0, 9.0]
    assert y.requires_grad and not y.is_leaf
    y.backward(lamella.ones(2, dtype=lamella.float64))
    assert x.grad.tolist() == [4.0, 6.0]


def test_the_node_has_the_class_name():
    y = Square.apply(leaf(1.0))
    assert type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.name() == "SquareBackward"
    assert isinstance(y.grad_fn, lamella.autograd.graph.Node)
    assert y.grad_fn._forward_cls is Square
    assert "grad_fn=<SquareBackward>" in repr(y)


def test_the_context_is_the_node():
    seen = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = 5
            seen.append(ctx)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx)
            return grad * n(float(ctx.mark))

    x = leaf(1.0)
    y = Keep.apply(x)
    assert y.grad_fn is seen[0]
    y.backward()
    assert seen[1] is seen[0]
    assert x.grad.tolist() == [5.0]


def test_without_gradients_nothing_is_recorded():
    y = Square.apply(lamella.ones(2))
    assert not y.requires_grad and y.grad_fn is None
    with lamella.no_grad():
        assert Square.apply(leaf(1.0)).grad_fn is None


def test_double_backward():
    x = leaf(3.0)
    (first,) = lamella.autograd.grad(Square.apply(x), x, create_graph=True)
    (second,) = lamella.autograd.grad(first, x)
    assert first.tolist() == [6.0] and second.tolist() == [2.0]


def test_several_inputs_and_outputs():
    class Both(Function):
        @staticmethod
        def forward(ctx, a, factor, b, text):
            ctx.factor = factor
            return a * n(factor), text, b + n(1.0)

        @staticmethod
        def backward(ctx, da, none, db):
            assert none is None
            return da * n(ctx.factor), None, db, None

    a, b = leaf(1.0), leaf(2.0)
    x, text, y = Both.apply(a, 3.0, b, "t")
    assert text == "t" and x.tolist() == [3.0] and y.tolist() == [3.0]
    run(x * y)
    assert a.grad.tolist() == [9.0] and b.grad.tolist() == [3.0]


def test_trailing_none_gradients_may_be_left_to_forward_arguments():
    class More(Function):
        @staticmethod
        def forward(ctx, x):
            return x * n(1.0)

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    x = leaf(1.0)
    run(More.apply(x))
    assert x.grad.tolist() == [1.0]


def test_needs_input_grad():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, a, n, b):
            seen.append(ctx.needs_input_grad)
            return a + b

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad, None, None

    run(Look.apply(leaf(1.0), 1, lamella.ones(1, dtype=lamella.float64)))
    assert seen == [(True, False, False)] * 2


def test_an_input_comes_back_as_another_tensor():
    x = leaf(1.0)
    y = Identity.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    assert x.is_leaf and type(y.grad_fn).__name__ == "IdentityBackward"
    run(y)
    assert x.grad.tolist() == [1.0]


def test_outputs_are_zeros_in_backward_where_no_gradient_came():
    grads = []

    class Split(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * n(1.0), x * n(2.0)

        @staticmethod
        def backward(ctx, *given):
            grads.append([g if g is None else g.tolist() for g in given])
            return next(g for g in given if g is not None), None

    for materialize in (True, False):
        run(Split.apply(leaf(1.0, 1.0), materialize)[1])
    assert grads == [[[0.0, 0.0], [1.0, 1.0]], [None, [1.0, 1.0]]]


def test_mark_non_differentiable():
    grads = []

    class Max(Function):
        @staticmethod
        def forward(ctx, x):
            index = lamella.tensor([1])
            plain = x * n(2.0)
            ctx.mark_non_differentiable(index, plain)
            return x * n(1.0), index, plain

        @staticmethod
        def backward(ctx, grad, none, zeros):
            grads.append((none.tolist(), none.dtype, zeros.tolist()))
            return grad

    value, index, plain = Max.apply(leaf(1.0, 2.0))
    assert value.requires_grad
    assert not index.requires_grad and not plain.requires_grad and plain.is_leaf
    run(value)
    assert grads == [([0], lamella.int64, [0.0, 0.0])]


def test_mark_dirty():
    class Double_(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(n(2.0))
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * n(2.0)

    x = leaf(1.0, 2.0)
    y = x * n(3.0)
    before = y._version
    assert Double_.apply(y) is y
    assert y._version > before
    assert type(y.grad_fn).__name__ == "Double_Backward"
    run(y)
    assert x.grad.tolist() == [6.0, 6.0]


def test_mark_dirty_refuses_leaves():
    class Write(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(n(1.0))
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="WriteBackward: expected .* leaf that requires grad"):
        Write.apply(leaf(1.0))


def test_dirty_tensors_must_come_back():
    class Write(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError) as error:
        Write.apply(leaf(1.0) * n(1.0))
    assert str(error.value) == (
        "WriteBackward: expected 'forward' to return every tensor that mark_dirty() got, got none "
        "of the outputs for number 0"
    )


def test_saved_outputs_are_differentiable():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y, None)
            return y

        @staticmethod
        def backward(ctx, grad):
            y, none = ctx.saved_tensors
            assert none is None
            return grad * y

    x = leaf(0.0)
    for _ in range(3):
        y = Exp.apply(x)
        (first,) = lamella.autograd.grad(y, x, create_graph=True)
        (second,) = lamella.autograd.grad(first, x, create_graph=True)
        (third,) = lamella.autograd.grad(second, x)
        assert third.tolist() == [1.0]


def test_saved_tensors_are_checked_for_writes():
    x = leaf(1.0)
    z = x * n(1.0)
    y = Square.apply(z)
    z.mul_(n(2.0))
    with pytest.raises(RuntimeError) as error:
        run(y)
    text = str(error.value)
    assert text.startswith(
        "SquareBackward: expected 'saved_tensors[0]' as it was when it was saved"
    )
    assert "at version 0, got version 1" in text


def test_a_second_backward_needs_retain_graph():
    x = leaf(2.0)
    y = Square.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert str(error.value) == (
        "SquareBackward: expected its saved tensors to be there, got a graph that was freed by an "
        "earlier backward; pass retain_graph=True to that one"
    )


def test_setup_context():
    class Cube(Function):
        @staticmethod
        def forward(x, factor=2):
            return x * x * x * n(float(factor)), x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            assert isinstance(output, tuple)
            ctx.save_for_backward(x, output[1])

        @staticmethod
        def backward(ctx, grad, _):
            _, square = ctx.saved_tensors
            return grad * square * n(3.0 * ctx.factor), None

    x = leaf(2.0)
    for call in (lambda: Cube.apply(x, 5), lambda: Cube.apply(x, factor=5)):
        x.grad = None
        y, _ = call()
        run(y)
        assert x.grad.tolist() == [60.0]
    x.grad = None
    run(Cube.apply(x)[0])
    assert x.grad.tolist() == [24.0]


def test_vjp_is_another_name_for_backward():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * n(2.0)

        @staticmethod
        def vjp(ctx, grad):
            return grad * n(2.0)

    x = leaf(1.0)
    run(Twice.apply(x))
    assert x.grad.tolist() == [2.0]


def test_jvp():
    from lamella.autograd import forward_ad

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.save_for_forward(x)
            return x * factor

        @staticmethod
        def jvp(ctx, dx, none):
            assert none is None
            assert len(ctx.saved_tensors) == 1
            return dx * ctx.factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lamella.ones(2), lamella.tensor([1.0, 2.0]))
        primal, tangent = forward_ad.unpack_dual(Scale.apply(dual, 3.0))
        assert primal.tolist() == [3.0, 3.0] and tangent.tolist() == [3.0, 6.0]


def test_jvp_may_apply_its_own_class():
    from lamella.autograd import forward_ad

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx, dx, dy):
            x, y = ctx.saved_tensors
            return Product.apply(dx, y) + Product.apply(x, dy)

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lamella.tensor(2.0), lamella.tensor(1.0))
        primal, tangent = forward_ad.unpack_dual(Product.apply(dual, dual * 3.0))
        assert primal.item() == 12.0 and tangent.item() == 12.0


def test_nested_functions():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            with lamella.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = Square.apply(ctx.x)
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, grad):
            (inner,) = lamella.autograd.grad(ctx.y, ctx.x, grad)
            return inner

    x = leaf(3.0)
    run(Outer.apply(x))
    assert x.grad.tolist() == [6.0]


def test_once_differentiable():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * n(2.0)

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not lamella.is_grad_enabled()
            return grad * n(2.0)

    x = leaf(1.0)
    (first,) = lamella.autograd.grad((Twice.apply(x) * x), x, create_graph=True)
    assert first.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="once_differentiable: expected the gradients"):
        run(first)


# ---- Errors ----


def returning(value):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * n(1.0)

        @staticmethod
        def backward(ctx, grad):
            return value(grad)

    return Wrong


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            lambda g: g,
            "WrongBackward: expected 'backward' to return 2 gradients, one for each argument of "
            "'forward', got 1",
        ),
        (
            lambda g: (g, None, g),
            "WrongBackward: expected 'backward' to return 2 gradients, one for each argument of "
            "'forward', got 3",
        ),
        (
            lambda g: (g, g),
            "WrongBackward: expected gradient 1 to be None, as argument 1 of 'forward' is not a "
            "Tensor, got Tensor",
        ),
        (
            lambda g: (1.0, None),
            "WrongBackward: expected gradient 0 to be a Tensor or None, got float",
        ),
        (
            lambda g: (lamella.ones(3, dtype=lamella.float64), None),
            "WrongBackward: expected gradient 0 of shape [2], got [3]",
        ),
    ],
)
def test_wrong_gradients(value, text):
    with pytest.raises(RuntimeError) as error:
        run(returning(value).apply(leaf(1.0, 2.0), 3))
    assert str(error.value).replace("lamella.Tensor", "Tensor") == text


def test_missing_methods():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="expected a static method 'forward'"):
        Nothing.apply(leaf(1.0))

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * n(1.0)

    with pytest.raises(NotImplementedError, match="expected a static method 'backward' or 'vjp'"):
        run(NoBackward.apply(leaf(1.0)))


def test_functions_are_not_made():
    with pytest.raises(RuntimeError, match="Square: expected its static methods and apply"):
        Square()


def test_keywords_behind_a_context():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, by=2, *, flag=False):
            ctx.by = by
            return x * by

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.by, None

    x = leaf(1.0)
    Scale.apply(x, by=3).sum().backward()
    assert x.grad.item() == 3
    with pytest.raises(TypeError) as error:
        Scale.apply(x, flag=True)
    assert str(error.value) == "forward: expected no keyword-only arguments, got flag"


def test_only_tensors_are_saved():
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x

    with pytest.raises(TypeError) as error:
        Save.apply(leaf(1.0))
    assert (
        str(error.value) == "save_for_backward: expected argument 1 to be a Tensor or None, got int"
    )


class Wide(Function):
    @staticmethod
    def forward(ctx, x):
        return x.expand(2, 3) * 1

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize("shape", [(1, 3), (3,), (2, 1), (1,), ()])
def test_gradients_that_an_input_broadcasts_to_are_summed(shape):
    x = lamella.ones(shape, requires_grad=True)
    (Wide.apply(x) * lamella.tensor([[1.0, 2, 3], [4, 5, 6]])).sum().backward()
    sums = {(1, 3): [[5, 7, 9]], (3,): [5, 7, 9], (2, 1): [[6], [15]], (1,): [21], (): 21}
    assert x.grad.tolist() == sums[shape]


class MyError(Exception):
    pass


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_errors_come_out_as_they_were(where):
    error = MyError("text", 3)

    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            if where == "forward":
                raise error
            return x * n(1.0)

        @staticmethod
        def backward(ctx, grad):
            raise error

    x = leaf(1.0)
    with pytest.raises(MyError) as caught:
        run(Fails.apply(x))
    assert caught.value is error
    assert lamella.is_grad_enabled()
    assert x.grad is None
