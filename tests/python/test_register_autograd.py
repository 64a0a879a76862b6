"""lamella.library.register_autograd."""

import gc
import itertools

import pytest

import lamella

_numbers = itertools.count()


@pytest.fixture
def lib():
    library = lamella.library.Library(f"registered{next(_numbers)}", "DEF")
    yield library
    library.close()


def op_of(library, name):
    return getattr(getattr(lamella.ops, library.ns), name)


def run(y, **options):
    y.backward(lamella.ones_like(y), **options)


def leaf(*values):
    return lamella.tensor(values, dtype=lamella.float64, requires_grad=True)


def test_gradients_of_an_operator(lib):
    lib.define("scaled(Tensor x, float factor) -> Tensor")
    lib.impl("scaled", lambda x, factor: x.detach() * factor, "CPU")

    def setup(ctx, inputs, output):
        x, ctx.factor = inputs
        assert ctx.needs_input_grad == (True, False)
        ctx.save_for_backward(output)

    def backward(ctx, grad):
        assert len(ctx.saved_tensors) == 1
        return grad * ctx.factor, None

    lamella.library.register_autograd(f"{lib.ns}::scaled", backward, setup_context=setup, lib=lib)
    op = op_of(lib, "scaled")
    x = leaf(1.0, 2.0)
    y = op(x, 3.0)
    assert y.tolist() == [3.0, 6.0] and "GeneratedBackwardFor" in y.grad_fn.name()
    run(y)
    assert x.grad.tolist() == [3.0, 3.0]
    assert op(x.detach(), 2.0).grad_fn is None
    with lamella.no_grad():
        assert not op(x, 2.0).requires_grad


def test_lists_of_tensors(lib):
    lib.define("total(Tensor[] xs, Tensor? y=None, *, float scale=1.0) -> (Tensor, Tensor[])")

    def kernel(xs, y=None, *, scale=1.0):
        result = xs[0] * scale
        for x in xs[1:]:
            result = result + x * scale
        return result, [x * 2 for x in xs]

    lib.impl("total", kernel, "CPU")

    def setup(ctx, inputs, output, keyword_only_inputs=None):
        ctx.count = len(inputs[0])
        ctx.scale = (keyword_only_inputs or {"scale": 1.0})["scale"]

    def backward(ctx, grad, grads):
        return [grad * ctx.scale + g * 2.0 for g in grads], None

    op = op_of(lib, "total")
    lamella.library.register_autograd(op, backward, setup_context=setup, lib=lib)
    a, b = leaf(1.0), leaf(2.0)
    total, doubled = op([a, b], scale=5.0)
    assert total.tolist() == [15.0] and [d.tolist() for d in doubled] == [[2.0], [4.0]]
    run(total + doubled[1] * lamella.tensor(10.0, dtype=lamella.float64))
    assert a.grad.tolist() == [5.0] and b.grad.tolist() == [25.0]


def test_wrong_gradients(lib):
    lib.define("same(Tensor x, int n) -> Tensor")
    lib.impl("same", lambda x, n: x.clone(), "CPU")
    lamella.library.register_autograd(f"{lib.ns}::same", lambda ctx, g: g, lib=lib)
    with pytest.raises(RuntimeError) as error:
        run(op_of(lib, "same")(leaf(1.0), 1))
    assert str(error.value) == (
        f"{lib.ns}::same: expected 'backward' to return 2 gradients, one for each argument, got 1"
    )


def test_operators_that_write_are_refused(lib):
    lib.define("write_(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(RuntimeError, match="register_autograd: expected an operator that writes"):
        lamella.library.register_autograd(f"{lib.ns}::write_", lambda ctx, g: g, lib=lib)


def test_custom_op_has_the_method():
    name = f"customized{next(_numbers)}::cube"

    @lamella.library.custom_op(name, schema="(Tensor x) -> Tensor")
    def cube(x):
        return x * x * x

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * x * lamella.tensor(3.0, dtype=lamella.float64)

    cube.register_autograd(backward, setup_context=setup)
    x = leaf(2.0)
    (first,) = lamella.autograd.grad(cube(x), x, create_graph=True)
    assert first.tolist() == [12.0]
    (second,) = lamella.autograd.grad(first, x)
    assert second.tolist() == [12.0]
    gc.collect()
