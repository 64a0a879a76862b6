"""Custom functions and out-of-tree operators under vmap: Function, register_vmap, the loop."""

import warnings

import numpy as np
import pytest
from vmap_testing import arrays, close

import lamella
from lamella import vmap
from lamella.autograd import Function
from lamella.func import grad, jacrev

torch = pytest.importorskip("torch")

X, W = arrays((3, 4), (4,))


def tensors():
    return lamella.from_numpy(X.copy()), lamella.from_numpy(W.copy())


class Cube(Function):
    """Runs on batched tensors itself."""

    generate_vmap_rule = True
    seen = []

    @staticmethod
    def forward(ctx, x, w):
        y = x * x * x
        ctx.save_for_backward(x, w, y)
        return y * w

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        Cube.seen.append((x.shape, g.shape, ctx.needs_input_grad))
        return 3 * x * x * w * g, y * g


def cube(x, w):
    return x * x * x * w


def test_generated_rule():
    x, w = tensors()
    x.requires_grad_()
    w.requires_grad_()
    y = vmap(Cube.apply, in_dims=(0, None))(x, w)
    Cube.seen.clear()
    y.sum().backward()  # after the vmap has ended
    assert Cube.seen == [((4,), (4,), (True, True))]
    close(y, torch.from_numpy(X**3 * W))
    close(x.grad, torch.from_numpy(3 * X**2 * W))
    close(w.grad, torch.from_numpy((X**3).sum(0)))  # the examples' gradients, added


def test_generated_rule_in_transforms():
    x, w = tensors()
    close(
        vmap(grad(lambda v: Cube.apply(v, w).sum()))(x),
        vmap_of_torch(torch.func.grad(lambda v: cube(v, torch.from_numpy(W)).sum())),
    )
    close(
        grad(lambda v: vmap(Cube.apply, in_dims=(0, None))(x, v).sum())(w),
        torch.from_numpy((X**3).sum(0)),
    )
    close(
        vmap(jacrev(lambda v: Cube.apply(v, w)))(x),
        vmap_of_torch(torch.func.jacrev(lambda v: cube(v, torch.from_numpy(W)))),
    )
    close(
        vmap(lambda a: vmap(lambda b: Cube.apply(a, b))(x))(x),
        torch.from_numpy(X[:, None] ** 3 * X),
    )


def vmap_of_torch(function):
    return torch.stack([function(row) for row in torch.from_numpy(X)])


class TwoOutputs(Function):
    """Of which one has no gradient, and one may get none."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2, x > 0.5, x * 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, first, _, third):
        assert first.shape == third.shape == (4,)
        return first * 2 + third * 3


def test_missing_gradients_are_zeros():
    x, _ = tensors()
    found = vmap(grad(lambda v: TwoOutputs.apply(v)[2].sum()))(x)
    close(found, torch.full((3, 4), 3.0, dtype=torch.float64))


class Ruled(Function):
    """Has a rule of its own."""

    calls = []

    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None

    @staticmethod
    def vmap(info, in_dims, x, k):
        Ruled.calls.append((info.batch_size, info.randomness, in_dims, x.shape, k))
        return Ruled.apply(x.transpose(0, 1), k), 1


def test_own_rule():
    x, _ = tensors()
    Ruled.calls.clear()
    found = vmap(lambda v: Ruled.apply(v, 5), randomness="same")(x)
    close(found, torch.from_numpy(X * 5))
    assert Ruled.calls == [(3, "same", (0, None), (3, 4), 5)]
    close(vmap(grad(lambda v: Ruled.apply(v, 5).sum()))(x), torch.full_like(torch.from_numpy(X), 5))


class Silent(Function):
    """A Function without rules for vmap."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Both(Ruled):
    generate_vmap_rule = True


def test_a_function_must_say_how():
    x, _ = tensors()
    with pytest.raises(RuntimeError) as error:
        vmap(Silent.apply)(x)
    assert str(error.value) == (
        "Silent: expected generate_vmap_rule = True, or a static method 'vmap', in a function that "
        "is used under vmap"
    )
    with pytest.raises(RuntimeError) as error:
        vmap(lambda v: Both.apply(v, 1))(x)
    assert str(error.value) == (
        "Both: expected either generate_vmap_rule = True or a static method 'vmap', got both"
    )


# ---- Operators of others


@pytest.fixture
def library():
    made = lamella.library.Library("vmap_others", "DEF")
    yield made
    made.close()


def outer(a, b):
    return a.unsqueeze(-1) * b.unsqueeze(-2)


def test_the_loop_says_once_that_it_is_slow(library):
    library.define("outer(Tensor a, Tensor b) -> Tensor")
    library.impl("outer", outer, "CPU")
    x, w = tensors()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            found = vmap(lamella.ops.vmap_others.outer, in_dims=(0, None))(x, w)
    close(found, torch.from_numpy(X[:, :, None] * W))
    assert [str(one.message) for one in caught] == [
        "vmap: vmap_others::outer has no batching rule, so it is called once for each example, "
        'which is slow; state one where it is defined (batching="pointwise", ...), or register one '
        "with lamella.library.register_vmap"
    ]


def test_one_word_spares_the_loop(library):
    calls = []
    library.define("scale(Tensor a, Tensor b) -> Tensor", batching="pointwise")
    library.impl("scale", lambda a, b: [calls.append(a.shape), a * b][1], "CPU")
    x, w = tensors()
    found = vmap(lamella.ops.vmap_others.scale, in_dims=(0, None))(x, w)
    close(found, torch.from_numpy(X * W))
    assert calls == [(3, 4)]


def test_an_operator_of_others_that_draws(library):
    library.define("noise(Tensor a) -> Tensor", tags="nondeterministic_seeded", batching="loop")
    library.impl("noise", lambda a: lamella.rand_like(a), "CPU")
    noise, x = lamella.ops.vmap_others.noise, lamella.zeros(3, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vmap(noise, randomness="different")(x)
    assert not lamella.equal(found[0], found[1])
    with pytest.raises(RuntimeError, match="^noise: expected 'randomness' of vmap"):
        vmap(noise)(x)


def test_values_of_examples_in_the_loop_are_equal_or_refused(library):
    library.define("told(Tensor a) -> (Tensor, int)", batching="loop")
    library.impl("told", lambda a: (a * 2, int(a.sum())), "CPU")
    numbers = []

    def told(a):
        twice, number = lamella.ops.vmap_others.told(a)
        numbers.append(number)
        return twice

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vmap(told)(lamella.tensor([[1.0, 2.0], [3.0, 0.0]]))
        assert numbers == [3] and found.tolist() == [[2, 4], [6, 0]]
        with pytest.raises(RuntimeError, match="^told: expected the same value from each example"):
            vmap(told)(lamella.tensor([[1.0], [3.0]]))


def test_register_vmap(library):
    library.define("outer(Tensor a, Tensor b, float scale=1.0) -> Tensor")
    library.impl("outer", lambda a, b, scale=1.0: outer(a, b) * scale, "CPU")
    op, calls = lamella.ops.vmap_others.outer, []

    @lamella.library.register_vmap("vmap_others::outer", lib=library)
    def rule(info, in_dims, a, b, scale=1.0):
        calls.append((info, in_dims))
        rank = max(t.dim() - (dim is not None) for t, dim in ((a, in_dims[0]), (b, in_dims[1])))
        while in_dims[0] is not None and a.dim() <= rank:
            a = a.unsqueeze(1)
        while in_dims[1] is not None and b.dim() <= rank:
            b = b.unsqueeze(1)
        return op(a, b, scale).movedim(0, 1), 1

    x, w = tensors()
    found = vmap(lambda a: op(a, w, scale=2.0))(x)
    close(found, torch.from_numpy(X[:, :, None] * W * 2))
    assert calls[0][0].batch_size == 3 and calls[0][0].randomness == "error"
    assert calls[0][1][:2] == (0, None)
    nested = vmap(lambda a: vmap(lambda b: op(a, b))(x))(x)
    close(nested, torch.from_numpy(X[:, None, :, None] * X[:, None, :]))


def test_register_vmap_checks_what_the_rule_returns(library):
    library.define("same(Tensor a) -> Tensor")
    library.impl("same", lambda a: a.clone(), "CPU")
    answers = iter([lamella.ones(3), (lamella.ones(2, 3), 0), (lamella.ones(3), (0, 0))])
    lamella.library.register_vmap(
        "vmap_others::same", lambda info, in_dims, a: next(answers), lib=library
    )
    texts = [
        "vmap_others::same: expected a tuple (outputs, out_dims), got Tensor",
        "vmap_others::same: expected output 0 to have the batch of 3 in dimension 0, got shape "
        "[2, 3]",
        "vmap_others::same: expected 'out_dims' to have the structure of the outputs, got (0, 0)",
    ]
    for text in texts:
        with pytest.raises(RuntimeError) as error:
            vmap(lamella.ops.vmap_others.same)(lamella.ones(3, 2))
        assert str(error.value) == text


def test_lists_of_tensors_and_several_returns(library):
    library.define("pieces(Tensor[] a, Tensor? b) -> (Tensor[], Tensor, int)")
    library.impl("pieces", lambda a, b: ([t * 2 for t in a], a[0] + 1, len(a)), "CPU")
    x, w = tensors()
    kept = []

    def call(a):
        made, one, count = lamella.ops.vmap_others.pieces([a, w], None)
        kept.append(count)
        return made, one

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, one = vmap(call)(x)
    close(made, [torch.from_numpy(X * 2), torch.from_numpy(np.stack([W * 2] * 3))])
    close(one, torch.from_numpy(X + 1))
    assert kept == [2]
