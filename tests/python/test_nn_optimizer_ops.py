"""Fused steps of optimizers and operators over lists, against PyTorch."""

import pytest
from operator_cases import REAL, compare, make, run, to_lamella, torch

SHAPES = [(3, 4), (7,), (), (2, 3, 5), (40000,)]
SMALL = {torch.float16: (5e-3, 5e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (1e-5, 1e-6)}


def lists(dtype, count):
    """`count` lists of tensors of the same shapes; one tensor is not contiguous."""
    made = [
        [make(*s, dtype=dtype, seed=10 * i + j) for j, s in enumerate(SHAPES)] for i in range(count)
    ]
    for i, one in enumerate(made):
        one.append(make(4, 3, dtype=dtype, seed=i).t())
    return made


def both(name, given, **kwargs):
    """Small types are compared with PyTorch's float32 results."""
    import lamella

    dtype = given[0][0].dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    theirs = [[t.clone().to(wide) for t in one] if isinstance(one, list) else one for one in given]
    ours = [to_lamella([t.clone() for t in o] if isinstance(o, list) else o) for o in given]
    run(torch, name, theirs, kwargs)
    run(lamella, name, ours, {k: to_lamella(v) for k, v in kwargs.items()})
    tolerance = SMALL.get(given[0][0].dtype, (1e-9, 1e-9))
    for mine, other, like in zip(ours, theirs, given):
        if isinstance(other, list):
            other = [t.to(one.dtype) for t, one in zip(other, like)]
            compare(mine, other, False, name, tolerance)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize(
    "momentum, nesterov, first",
    [(0.0, False, True), (0.9, False, True), (0.9, False, False), (0.8, True, False)],
)
def test_fused_sgd(momentum, nesterov, first, dtype):
    p, g, b = lists(dtype, 3)
    for decay in (0.0, 0.1):
        for maximize in (False, True):
            both(
                "_fused_sgd_",
                [p, g, b if momentum else []],
                weight_decay=decay,
                momentum=momentum,
                lr=0.05,
                dampening=0.0 if nesterov else 0.3,
                nesterov=nesterov,
                maximize=maximize,
                is_first_step=first,
            )


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", ["_fused_adam_", "_fused_adamw_"])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_fused_adam(amsgrad, name, dtype):
    p, g, m = lists(dtype, 3)
    v, largest = ([t.abs() for t in one] for one in lists(dtype, 2))
    steps = [torch.tensor(float(i + 1)) for i in range(len(p))]
    options = dict(beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-6, amsgrad=amsgrad)
    given = [p, g, m, v, largest if amsgrad else [], steps]
    both(name, given, lr=0.01, maximize=False, **options)
    both(name + ".tensor_lr", given, lr=torch.tensor(0.01), maximize=True, **options)


def test_scaled_gradients_and_overflow():
    p, g = lists(torch.float32, 2)
    options = dict(momentum=0.0, lr=0.1, dampening=0.0, weight_decay=0.0)
    options.update(nesterov=False, maximize=False, is_first_step=True)
    for found in (0.0, 1.0):
        scale, inf = torch.tensor(4.0), torch.tensor(found)
        both("_fused_sgd_", [p, g, []], grad_scale=scale, found_inf=inf, **options)


def test_lists():
    a, b, c = lists(torch.float32, 3)
    positive = [t.abs() + 0.5 for t in c]
    for name, given, kwargs in (
        ("_foreach_zero_", [a], {}),
        ("_foreach_neg_", [a], {}),
        ("_foreach_sqrt_", [positive], {}),
        ("_foreach_add_.Scalar", [a, 2.0], {}),
        ("_foreach_add_.List", [a, b], dict(alpha=0.5)),
        ("_foreach_sub_.List", [a, b], dict(alpha=2)),
        ("_foreach_mul_.Scalar", [a, 0.5], {}),
        ("_foreach_mul_.List", [a, b], {}),
        ("_foreach_mul_.Tensor", [a, torch.tensor(3.0)], {}),
        ("_foreach_div_.Scalar", [a, 3.0], {}),
        ("_foreach_div_.List", [a, positive], {}),
        ("_foreach_maximum_.List", [a, b], {}),
        ("_foreach_addcmul_.Scalar", [a, b, c, 0.1], {}),
        ("_foreach_addcdiv_.Scalar", [a, b, positive, 0.1], {}),
        ("_foreach_lerp_.Scalar", [a, b, 0.3], {}),
        ("_foreach_copy_", [a, b], {}),
    ):
        both(name, given, **kwargs)


def test_norms_of_lists():
    import lamella

    (a,) = lists(torch.float32, 1)
    for order in (1, 2, float("inf")):
        got = lamella.ops.aten._foreach_norm.Scalar([to_lamella(t) for t in a], order)
        compare(got, torch._foreach_norm(a, order), False, "norm", (1e-5, 1e-6))


def test_writes_are_counted():
    import lamella

    p, g = lamella.ones(3), lamella.ones(3)
    before = p._version
    lamella.ops.aten._fused_sgd_.default(
        [p],
        [g],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.5,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    )
    assert p._version == before + 1 and p.tolist() == [0.5] * 3


def test_errors():
    import lamella

    with pytest.raises(RuntimeError) as caught:
        lamella.ops.aten._foreach_add_.List([lamella.ones(1)], [])
    assert str(caught.value) == (
        "_foreach_add_: expected 'other' to have 1 tensors, one for each in 'self', got 0"
    )


STEP = dict(weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0, nesterov=False)
STEP |= dict(maximize=False, is_first_step=False)


def test_all_is_checked_before_any_is_written():
    import lamella

    first, second = lamella.ones(3), lamella.ones(2)
    with pytest.raises(RuntimeError) as caught:
        lamella._fused_sgd_([first, second], [lamella.ones(3), lamella.ones(5)], [], **STEP)
    assert str(caught.value) == (
        "_fused_sgd_: expected the tensors in 'grads' to have shape and dtype of those in 'self', "
        "[2] and float32, got [5] and float32"
    )
    states = [[lamella.zeros(3), lamella.zeros(2)] for _ in range(3)]
    steps = [lamella.ones(()), lamella.ones(2)]
    options = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-6)
    with pytest.raises(RuntimeError) as caught:
        lamella._fused_adam_(
            [first, second], *states, [], steps, amsgrad=False, maximize=False, **options
        )
    assert str(caught.value) == (
        "_fused_adam_: expected the tensors in 'state_steps' to hold one number, got [2]"
    )
    with pytest.raises(RuntimeError) as caught:
        lamella._fused_sgd_([first, lamella.ones(1).expand(3)], [first, first], [], **STEP)
    assert str(caught.value) == (
        "_fused_sgd_: expected 'self' to have memory of its own for each element it writes, got "
        "one expanded to [3]; clone it first"
    )
    assert first.tolist() == [1, 1, 1]


def test_gradients_may_be_expanded():
    import lamella

    p = lamella.ones(3)
    lamella._fused_sgd_([p], [lamella.ones(1).expand(3)], [], **STEP)
    assert p.tolist() == [0.5, 0.5, 0.5]
