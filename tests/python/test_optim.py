"""Optimizers and schedules of learning rates, against PyTorch's."""

import copy
import inspect
import math
import pickle

import pytest

import lamella
from lamella import optim
from lamella.optim import lr_scheduler

torch = pytest.importorskip("torch")

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.3}),
]


def own(tensor):
    return lamella.from_numpy(tensor.detach().numpy().copy())


def pair(dtype=torch.float32):
    """The same parameters for both."""
    torch.manual_seed(0)
    shapes = [(3, 4), (5,), (), (1000,)]
    their = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]
    return [lamella.nn.Parameter(own(p)) for p in their], their


def give_gradients(mine, their, but=None):
    for i, (p, q) in enumerate(zip(mine, their)):
        q.grad = None if i == but else torch.randn_like(q)
        p.grad = None if i == but else own(q.grad)


def same(found, wanted, tolerance=1e-6):
    assert tuple(found.shape) == tuple(wanted.shape)
    near = pytest.approx(wanted.detach().flatten().tolist(), rel=tolerance * 10, abs=tolerance)
    assert found.detach().flatten().tolist() == near


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_steps(name, options, dtype):
    mine, their = pair(dtype)
    a = getattr(optim, name)(mine, **options)
    b = getattr(torch.optim, name)(their, **options)
    for step in range(8):
        # A parameter without a gradient is left alone; its state begins when it has one.
        give_gradients(mine, their, but=1 if step in (0, 1, 4) else None)
        a.step()
        b.step()
        for p, q in zip(mine, their):
            same(p, q)
        if step == 3:
            # From its state the optimizer goes on as if nothing had happened.
            state = a.state_dict()
            a = getattr(optim, name)(mine, lr=5.0)
            a.load_state_dict(state)
    found, wanted = a.state_dict(), b.state_dict()
    assert found["param_groups"] == wanted["param_groups"]
    assert found["state"].keys() == wanted["state"].keys()
    for number, state in wanted["state"].items():
        state = {key: value for key, value in state.items() if value is not None}
        assert found["state"][number].keys() == state.keys()
        for key, value in state.items():
            same(found["state"][number][key], value)
    assert repr(a) == repr(b)


@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_complex_parameters(name, options):
    torch.manual_seed(0)
    q = torch.nn.Parameter(torch.randn(4, dtype=torch.complex128))
    p = lamella.nn.Parameter(own(q))
    a, b = getattr(optim, name)([p], **options), getattr(torch.optim, name)([q], **options)
    for _ in range(3):
        give_gradients([p], [q])
        a.step()
        b.step()
    assert p.detach().tolist() == pytest.approx(q.detach().tolist(), rel=1e-6)


def test_groups():
    mine, their = pair()
    groups = [slice(0, 2), slice(2, 4)]
    a = optim.SGD([{"params": mine[s], "lr": 0.1 * (i + 1)} for i, s in enumerate(groups)], lr=1.0)
    b = torch.optim.SGD(
        [{"params": their[s], "lr": 0.1 * (i + 1)} for i, s in enumerate(groups)], lr=1.0
    )
    give_gradients(mine, their)
    a.step()
    b.step()
    for p, q in zip(mine, their):
        same(p, q)
    named = optim.SGD([("a", mine[0]), ("b", mine[1])], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["a", "b"]
    a.zero_grad(set_to_none=False)
    assert mine[0].grad.abs().sum().item() == 0
    a.zero_grad()
    assert all(p.grad is None for p in mine)


def test_what_is_refused():
    p = lamella.nn.Parameter(lamella.ones(2))
    cases = [
        (lambda: optim.SGD([p], lr=-1.0), "SGD: expected 'lr' not to be negative, got -1.0"),
        (lambda: optim.SGD([]), "SGD: expected 'params' not to be empty"),
        (lambda: optim.SGD(p), "SGD: expected 'params' to be a list of tensors or dicts, got a Te"),
        (lambda: optim.SGD([3]), "SGD: expected parameters to be tensors, got int"),
        (lambda: optim.SGD([p, p]), "SGD: a parameter stands in two places"),
        (lambda: optim.SGD([p * 1]), "SGD: expected parameters to be leaves, got a result of ot"),
        (
            lambda: optim.SGD([p], nesterov=True),
            "SGD: expected 'nesterov' to have a momentum above 0 and no dampening, got momentum 0",
        ),
        (
            lambda: optim.Adam([p], betas=(0.9, 1.0)),
            "Adam: expected 'betas' 1 to be at least 0 and below 1, got 1.0",
        ),
        (
            lambda: optim.AdamW([p]).load_state_dict({"state": {}, "param_groups": []}),
            "load_state_dict: expected 1 parameter groups, got 0",
        ),
    ]
    for call, text in cases:
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        assert str(error.value).startswith(text)


def test_closures_hooks_and_copies():
    p = lamella.nn.Parameter(lamella.ones(2))
    optimizer = optim.SGD([p], lr=0.5, momentum=0.9)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with lamella.no_grad():
        assert optimizer.step(closure).item() == 2
    assert p.tolist() == [0, 0]
    order = []
    pre = optimizer.register_step_pre_hook(lambda o, args, kwargs: order.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: order.append("after"))
    optimizer.step()
    pre.remove()
    optimizer.step()
    assert order == ["before", "after", "after"]
    for made in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert made.param_groups[0]["lr"] == 0.5
        param = made.param_groups[0]["params"][0]
        assert made.state[param]["momentum_buffer"].tolist() == [
            pytest.approx(x) for x in optimizer.state[p]["momentum_buffer"].tolist()
        ]
        made.step()


SCHEDULES = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9]}),
    ("ConstantLR", {}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7, "power": 2}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.95}),
    ("OneCycleLR", {"max_lr": 0.1, "total_steps": 21}),
    (
        "OneCycleLR",
        {"max_lr": 0.1, "total_steps": 21, "three_phase": True, "anneal_strategy": "linear"},
    ),
]


def both(**options):
    return (
        optim.SGD([lamella.nn.Parameter(lamella.ones(1))], momentum=0.9, **options),
        torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], momentum=0.9, **options),
    )


def same_rates(a, b):
    for name in ("lr", "momentum"):
        found, wanted = a.param_groups[0][name], b.param_groups[0][name]
        assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12), name


@pytest.mark.parametrize("name, options", SCHEDULES)
def test_schedules(name, options):
    a, b = both(lr=0.3)
    mine, their = getattr(lr_scheduler, name)(a, **options), None
    their = getattr(torch.optim.lr_scheduler, name)(b, **options)
    for step in range(20):
        same_rates(a, b)
        b.step()
        mine.step()
        their.step()
        if step == 10:
            state, group = mine.state_dict(), dict(a.param_groups[0])
            mine = getattr(lr_scheduler, name)(a, **options)
            mine.load_state_dict(state)
            a.param_groups[0].update(group)
    assert mine.get_last_lr() == [a.param_groups[0]["lr"]]


def test_schedules_one_after_the_other():
    a, b = both(lr=0.1)

    def make(optimizer, schedulers):
        parts = [
            schedulers.ConstantLR(optimizer, 0.1, 2),
            schedulers.ExponentialLR(optimizer, 0.9),
        ]
        return schedulers.SequentialLR(optimizer, parts, [4])

    mine, their = make(a, lr_scheduler), make(b, torch.optim.lr_scheduler)
    for _ in range(10):
        same_rates(a, b)
        b.step()
        mine.step()
        their.step()


def test_plateaus():
    a, b = both(lr=0.1)
    mine = lr_scheduler.ReduceLROnPlateau(a, patience=2, cooldown=1)
    their = torch.optim.lr_scheduler.ReduceLROnPlateau(b, patience=2, cooldown=1)
    for metric in [3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]:
        mine.step(metric)
        their.step(metric)
        same_rates(a, b)


def test_signatures_are_those_of_torch():
    pairs = [(getattr(optim, n), getattr(torch.optim, n)) for n in ("SGD", "Adam", "AdamW")]
    for name in lr_scheduler.__all__:
        pairs.append((getattr(lr_scheduler, name), getattr(torch.optim.lr_scheduler, name)))
    for mine, their in pairs:
        rows = []
        for function in (mine, their):
            found = inspect.signature(function).parameters.values()
            rows.append([(p.name, p.kind, p.default) for p in found])
        assert rows[0] == rows[1], mine.__name__
