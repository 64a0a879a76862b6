"""gradcheck finds what is wrong, and nothing else."""

import inspect

import pytest

import lamella
from lamella.autograd import Function, gradcheck, gradgradcheck
from lamella.autograd.gradcheck import GradcheckError

DOUBLE, COMPLEX = lamella.float64, lamella.complex128


def random(*shape, dtype=DOUBLE):
    return lamella.randn(shape, dtype=dtype).requires_grad_()


@pytest.fixture(autouse=True)
def seed():
    lamella.manual_seed(0)


RIGHT = [
    (lambda x, y: x * y, lambda: (random(3), random(3))),
    (lambda x, y: (x * y, x + y), lambda: (random(3), random(3))),
    (lambda x, y: x @ y, lambda: (random(2, 3, dtype=COMPLEX), random(3, 2, dtype=COMPLEX))),
    (lambda x: x * x.conj_physical(), lambda: (random(3, dtype=COMPLEX),)),
    (lambda x: x.abs(), lambda: (random(3, dtype=COMPLEX),)),
    (lambda x: x.sin(), lambda: (random(2, dtype=COMPLEX),)),
    (lambda x: lamella.view_as_real(x)[..., 0], lambda: (random(2, dtype=COMPLEX),)),
    (
        lambda x, y: lamella.view_as_complex(lamella.stack([x, y], -1)),
        lambda: (random(2), random(2)),
    ),
    (lambda x: x * 2, lambda: (random(3, 2).detach().t().requires_grad_(),)),
    (lambda x: x.sum(), lambda: (random(0),)),
    (lambda x, n: x**n, lambda: (random(2), 3)),
]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("case", range(len(RIGHT)))
def test_right_gradients(case, fast):
    function, inputs = RIGHT[case]
    assert gradcheck(function, inputs(), fast_mode=fast, check_forward_ad=True)
    assert gradgradcheck(function, inputs(), fast_mode=fast, check_fwd_over_rev=True)


def test_one_tensor_twice():
    x = random(3)
    assert gradcheck(lambda a, b: a * b, (x, x))


def wrong(backward):
    """The square, with a backward of one's own."""

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

    Square.backward = staticmethod(backward)
    return Square.apply


def test_a_wrong_factor():
    function = wrong(lambda ctx, grad: grad * ctx.saved_tensors[0] * 3)
    x = lamella.tensor([1.0, 0.0], dtype=DOUBLE, requires_grad=True)
    with pytest.raises(GradcheckError) as error:
        gradcheck(function, x)
    text = str(error.value)
    assert text.startswith(
        "gradcheck: expected the Jacobian of output 0 with respect to input 0 to agree with finite "
        "differences, got 3.0 and "
    )
    assert "at [0, 0] ([output element, input element])\nanalytical:\ntensor([[3., 0.]" in text
    with pytest.raises(GradcheckError, match="expected the product v\\^T J u with the Jacobian of"):
        gradcheck(function, x, fast_mode=True)
    assert not gradcheck(function, x, raise_exception=False)
    assert gradcheck(function, x, atol=2.0)


def test_a_wrong_second_derivative():
    # Right at first, but the factor is cut from the graph.
    function = wrong(lambda ctx, grad: grad * ctx.saved_tensors[0].detach() * 2)
    assert gradcheck(function, random(2))
    with pytest.raises(GradcheckError):
        gradgradcheck(function, random(2))


def test_gradients_that_change():
    function = wrong(
        lambda ctx, grad: grad * ctx.saved_tensors[0] * 2 + lamella.rand(2, dtype=DOUBLE) * 1e-7
    )
    with pytest.raises(GradcheckError, match="expected two backward passes from output 0 to give"):
        gradcheck(function, random(2))
    assert gradcheck(function, random(2), nondet_tol=1e-6, check_undefined_grad=False)


def test_gradients_out_of_nothing():
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 2 if grad.abs().sum() > 0 else grad + 1

    with pytest.raises(GradcheckError, match="to be absent or zero where the gradients of outputs"):
        gradcheck(wrong(backward), random(2))
    assert gradcheck(wrong(backward), random(2), check_undefined_grad=False)


def test_hidden_dependence():
    with pytest.raises(GradcheckError) as error:
        gradcheck(lambda x: x.detach() * 2, random(2))
    assert str(error.value).startswith(
        "gradcheck: expected output 0 not to depend on input 0, as it requires no gradients, got "
        "the numerical Jacobian\n"
    )
    assert gradcheck(lambda x: lamella.ones(2), random(2))


def test_inputs():
    with pytest.raises(ValueError, match="expected at least one of 'inputs' to be a tensor that"):
        gradcheck(lambda x: x, lamella.ones(2, dtype=DOUBLE))
    with pytest.warns(UserWarning, match="input 0 has dtype lamella.float32"):
        gradcheck(lambda x: x, random(2, dtype=lamella.float32), atol=1.0)
    with pytest.raises(RuntimeError, match="expected elements of input 0 not to share memory"):
        gradcheck(lambda x: x, lamella.ones(1, dtype=DOUBLE).expand(3).requires_grad_())


def test_signatures_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for name in ("gradcheck", "gradgradcheck"):
        rows = []
        for package in (lamella, torch):
            found = inspect.signature(getattr(package.autograd, name)).parameters.values()
            rows.append([(p.name, p.kind, p.default) for p in found])
        assert rows[0] == rows[1]


@pytest.mark.parametrize("fast", [False, True])
def test_what_is_checked_draws_as_without_the_check(fast):
    x = lamella.rand(3, dtype=lamella.float64).requires_grad_()
    y = lamella.rand(3, dtype=lamella.float64).requires_grad_()
    state = lamella.get_rng_state()
    assert gradcheck(lambda x, y: x * y.sin(), (x, y), check_forward_ad=True, fast_mode=fast)
    assert lamella.equal(lamella.get_rng_state(), state)


def test_moves_what_the_function_knows_by_another_way():
    x = lamella.randn(3, dtype=lamella.float64, requires_grad=True)
    before = x.detach().clone()
    assert gradcheck(lambda _: x.sin(), (x,))
    assert gradcheck(lambda _: x.sin(), (x,), fast_mode=True)
    assert lamella.equal(x.detach(), before)


@pytest.mark.parametrize("fast", [False, True])
def test_batched_gradients_are_those_of_each(fast):
    x = lamella.randn(3, 2, dtype=lamella.float64, requires_grad=True)
    w = lamella.randn(2, 2, dtype=lamella.complex128, requires_grad=True)
    assert gradcheck(
        lambda x, w: (x @ w.real, w * w.conj()),
        (x, w),
        check_batched_grad=True,
        check_forward_ad=True,
        check_batched_forward_grad=True,
        fast_mode=fast,
    )
    assert gradgradcheck(lambda x: x.sin(), (x,), check_batched_grad=True, fast_mode=fast)


def test_batched_gradients_that_fail_or_differ():
    class Asks(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 if float(grad.sum()) < 1e9 else grad

    class Counts(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            # Wrong only where many gradients come at once: in the last call.
            return grad * (2 if grad.dim() == 1 and not _is_batched(grad) else 3)

    x = lamella.ones(2, dtype=lamella.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="^gradcheck: under vmap the gradient of output 0 "):
        gradcheck(Asks.apply, (x,), check_batched_grad=True)
    with pytest.raises(
        GradcheckError,
        match="^gradcheck: expected the gradient of output 0 with respect to input 0 to be the "
        "same under vmap, got\n",
    ):
        gradcheck(Counts.apply, (x,), check_batched_grad=True)
    assert not gradcheck(Counts.apply, (x,), check_batched_grad=True, raise_exception=False)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("layout", [lamella.sparse_coo, lamella.sparse_csr, lamella.sparse_csc])
def test_sparse_inputs(layout, fast):
    dense = lamella.tensor([[0.0, 2.0], [3.0, 0.0]], dtype=DOUBLE)
    x = dense.to_sparse(layout=layout).requires_grad_()
    y = random(2, 2)
    assert gradcheck(lambda x, y: x.to_dense() ** 2 * y, (x, y), masked=True, fast_mode=fast)
    assert gradcheck(lambda x: x * 3, (x,), fast_mode=fast)
    doubled = wrong(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0] * 2)
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: doubled(x.to_dense()), (x,), fast_mode=fast)


def _is_batched(tensor):
    try:
        tensor.sum().item()
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "other, after",
    [
        (lambda x: lamella.cat([x, x]), "[2] of lamella.float64"),
        (lambda x: x.float(), "[1] of lamella.float32"),
        (lambda x: (), "no such output"),
    ],
)
def test_outputs_that_change_their_kind(other, after, fast):
    x = lamella.ones(1, dtype=DOUBLE, requires_grad=True)
    with pytest.raises(AssertionError) as error:
        gradcheck(lambda x: x if bool(x == 1) else other(x), (x,), fast_mode=fast)
    assert str(error.value) == (
        "gradcheck: expected output 0 to keep its shape and dtype when the inputs are moved, got "
        f"[1] of lamella.float64 and {after}"
    )
