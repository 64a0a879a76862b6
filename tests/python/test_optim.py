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
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
    ("ASGD", {"t0": 2, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"eps": 1e-3, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1}),
    ("NAdam", {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"alpha": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "eps": 1e-2}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}),
]
# Of real parameters, and of matrices alone.
MATRICES = [
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"beta2_decay": -0.5, "eps": (1e-3, 1e-2), "weight_decay": 0.1}),
    ("Adafactor", {"d": 2.0, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"momentum": 0.8, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"weight_decay": 0, "ns_steps": 3, "adjust_lr_fn": "original"}),
]
NAMES = sorted({name for name, _ in OPTIMIZERS + MATRICES}) + ["LBFGS"]


def own(tensor):
    return lamella.from_numpy(tensor.detach().numpy().copy())


def pair(dtype=torch.float32, shapes=((3, 4), (5,), (), (1000,))):
    """The same parameters for both."""
    torch.manual_seed(0)
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
@pytest.mark.parametrize("name, options", OPTIMIZERS + MATRICES)
def test_steps(name, options, dtype):
    shapes = {"Muon": [(8, 4), (3, 5)], "Adafactor": [(3, 4), (5,), (2, 3, 4), ()]}
    mine, their = pair(dtype, shapes[name]) if name in shapes else pair(dtype)
    # Muon computes in bfloat16.
    tolerance = 1e-3 if name == "Muon" else 1e-6
    a = getattr(optim, name)(mine, **options)
    b = getattr(torch.optim, name)(their, **options)
    for step in range(8):
        # A parameter without a gradient is left alone; its state begins when it has one.
        give_gradients(mine, their, but=1 if step in (0, 1, 4) else None)
        a.step()
        b.step()
        for p, q in zip(mine, their):
            same(p, q, tolerance)
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
            same(found["state"][number][key], value, tolerance)
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
        (lambda: optim.SGD(p),
         "SGD: expected 'params' to be a list of tensors or dicts, got a Te"),
        (lambda: optim.SGD([3]), "SGD: expected parameters to be tensors, got int"),
        (lambda: optim.SGD([{"params": [p]}, {"params": [p]}]),
         "SGD: a parameter is in two groups"),
        (lambda: optim.SGD([p * 1]),
         "SGD: expected parameters to be leaves, got a result of ot"),
        (lambda: optim.SGD([p], nesterov=True),
         "SGD: expected 'nesterov' to have a momentum above 0 and no dampening, got momentum 0"),
        (lambda: optim.Adam([p], betas=(0.9, 1.0)),
         "Adam: expected 'betas' 1 to be at least 0 and below 1, got 1.0"),
        (lambda: optim.RAdam([p], eps=-1.0),
         "RAdam: expected 'eps' not to be negative, got -1.0"),
        (lambda: optim.NAdam([p], betas=(1.0, 0.9)),
         "NAdam: expected 'betas' 0 to be at least 0"),
        (lambda: optim.Adadelta([p], rho=2),
         "Adadelta: expected 'rho' to be from 0 to 1, got 2"),
        (lambda: optim.Rprop([p], etas=(1.5, 2)),
         "Rprop: expected 'etas' to be a number below 1 and one above, got 1.5 and 2"),
        (lambda: optim.Adagrad([p], lr=lamella.ones(2)),
         "Adagrad: expected 'lr' to have one element, got 2"),
        (lambda: optim.Adafactor([p], d=0.5),
         "Adafactor: expected 'd' to be at least 1, got 0.5"),
        (lambda: optim.Muon([p]), "Muon: expected parameters to have 2 dimensions, got [2]"),
        (lambda: optim.Muon([p], adjust_lr_fn="none"),
         "Muon: expected 'adjust_lr_fn' to be original, match_rms_adamw or None, got 'none'"),
        (lambda: optim.LBFGS([{"params": p}, {"params": []}]),
         "LBFGS: expected one parameter gr"),
        (lambda: optim.LBFGS([p], line_search_fn="wolfe"),
         "LBFGS: expected 'line_search_fn' to be strong_wolfe or None, got 'wolfe'"),
        (lambda: optim.LBFGS([p]).step(),
         "LBFGS: expected 'closure' to be a function, got None"),
        (lambda: optim.AdamW([p]).load_state_dict({"state": {}, "param_groups": []}),
         "load_state_dict: expected 1 parameter groups, got 0"),
    ]  # fmt: skip
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


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, {"lr": 0.3, "max_iter": 5, "history_size": 3}])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_lbfgs(options, line_search_fn, dtype):
    mine, their = pair(dtype, ((3, 4), (5,), ()))
    a = optim.LBFGS(mine, line_search_fn=line_search_fn, **options)
    b = torch.optim.LBFGS(their, line_search_fn=line_search_fn, **options)

    def closure(optimizer, params):
        def evaluate():
            optimizer.zero_grad()
            # Rosenbrock's function of neighbours, which bends the way.
            flat = [p.reshape(-1).abs() for p in params[:2]]
            loss = sum((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() for x in flat)
            loss.backward()
            return loss

        return evaluate

    for step in range(4):
        found, wanted = a.step(closure(a, mine)), b.step(closure(b, their))
        if not bool(wanted.isfinite()) or wanted > 1e6:
            # Without a search the first steps of lr may be too long: both go the same way.
            assert found.item() == pytest.approx(wanted.item(), rel=1e-5, nan_ok=True)
            return
        same(found, wanted, 1e-6)
        for p, q in zip(mine, their):
            assert torch.allclose(
                torch.from_numpy(p.detach().numpy()), q.detach(), rtol=1e-5, atol=1e-7
            )
        own_state, their_state = a.state_dict()["state"][0], b.state_dict()["state"][0]
        assert own_state.keys() == their_state.keys()
        for key in ("func_evals", "n_iter"):
            assert own_state[key] == their_state[key]
        if step == 1:
            state = copy.deepcopy(a.state_dict())
            a = optim.LBFGS(mine, line_search_fn=line_search_fn)
            a.load_state_dict(state)


def test_state_hooks():
    p = lamella.nn.Parameter(lamella.ones(2))
    optimizer = optim.RMSprop([p])
    order = []
    optimizer.register_state_dict_pre_hook(lambda o: order.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    handle = optimizer.register_load_state_dict_pre_hook(
        lambda o, state: state.pop("more") and None
    )
    optimizer.register_load_state_dict_post_hook(lambda o: order.append("loaded"))
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    handle.remove()
    assert order == ["save", "loaded"] and state["more"] == 1


RECORDED = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1}),
    ("ASGD", {"lambd": 0.1, "weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), RECORDED, ids=str)
def test_differentiable(name, options):
    """Steps as a function of where they began, and of the gradients."""
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(8, 3, dtype=torch.float64, generator=generator)
    found = []
    for package in (torch, lamella):
        own = [package.tensor(row, dtype=package.float64) for row in data.tolist()]
        first, *grads = (row.requires_grad_() for row in own)
        p = first * 1
        optimizer = getattr(package.optim, name)([p], differentiable=True, **options)
        for grad in grads:
            p.grad = grad * p.detach().sin() + p * 0.1
            optimizer.step()
        p.pow(3).sum().backward()
        found.append([p.tolist(), *(t.grad if t.grad is None else t.grad.tolist() for t in own)])
    for got, expected in zip(found[1], found[0]):
        assert got == (None if expected is None else pytest.approx(expected, rel=1e-4, abs=1e-7))


MORE_RECORDED = [
    ("Adam", {"amsgrad": True}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adamax", {}),
    ("NAdam", {}), ("RAdam", {}), ("Rprop", {"lr": 0.1}),
    ("Adagrad", {}), ("Adadelta", {}), ("AdamW", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), MORE_RECORDED, ids=str)
def test_differentiable_in_every_way(name, options):
    """By finite differences, of the learning rate too: PyTorch stops at some of these."""
    first = lamella.tensor([0.5, -1.5], dtype=lamella.float64, requires_grad=True)
    grads = lamella.tensor([[0.3, 1.0], [-0.7, 0.4], [0.2, -0.9]], dtype=lamella.float64)
    lr = lamella.tensor(0.1, dtype=lamella.float64, requires_grad=name != "Rprop")

    def steps(first, lr, grads):
        p = first * 1
        rate = lr if name != "Rprop" else 0.1
        optimizer = getattr(lamella.optim, name)(
            [p], differentiable=True, **{**options, "lr": rate}
        )
        for grad in grads:
            p.grad = grad + 0.1 * p
            optimizer.step()
        return p

    sides = (first, lr, grads.requires_grad_(name != "Rprop"))
    assert lamella.autograd.gradcheck(steps, sides, atol=1e-6)


def test_ways_that_exclude_each_other():
    for package in (torch, lamella):
        p = package.ones(2, requires_grad=True)
        p.grad = package.ones(2)
        for name in ("SGD", "Adam", "AdamW", "Adagrad"):
            for more in ("foreach", "differentiable"):
                with pytest.raises(RuntimeError) as error:
                    getattr(package.optim, name)([p], fused=True, **{more: True})
        for name in "Adam AdamW RMSprop Adadelta Adamax NAdam RAdam ASGD Rprop".split():
            with pytest.raises(AssertionError) as refused:
                getattr(package.optim, name)([p], capturable=True).step()
    assert str(error.value) == (
        "Adagrad: expected at most one of 'fused' and 'differentiable' to be True"
    )
    assert str(refused.value) == (
        "Rprop: expected 'capturable' to be False for parameters on the CPU, which captures no "
        "graphs"
    )


@pytest.mark.parametrize("options", [
    {},
    {"avg_fn": "get_ema_avg_fn"},
    {"multi_avg_fn": "get_ema_multi_avg_fn", "use_buffers": True},
])  # fmt: skip
def test_averaged_models(options):
    models, means, values = [], [], []
    torch.manual_seed(0)
    data = [torch.randn(4, 3) for _ in range(5)]
    for package in (lamella, torch):
        package.manual_seed(0)
        swa = package.optim.swa_utils
        net = package.nn.Sequential(package.nn.Linear(3, 4), package.nn.BatchNorm1d(4))
        made = {k: getattr(swa, v)(0.9) if k != "use_buffers" else v for k, v in options.items()}
        mean = swa.AveragedModel(net, **made)
        optimizer = package.optim.SGD(net.parameters(), lr=0.1)
        schedule = swa.SWALR(optimizer, 0.02, anneal_epochs=3)
        rates = []
        for x in data:
            x = own(x) if package is lamella else x
            net(x).square().sum().backward()
            optimizer.step()
            mean.update_parameters(net)
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        swa.update_bn([own(x) if package is lamella else x for x in data], mean)
        models.append(mean.state_dict())
        means.append(rates)
        values.append(mean(own(data[0]) if package is lamella else data[0]))
    assert means[0] == pytest.approx(means[1], rel=1e-9)
    assert list(models[0]) == list(models[1])
    for key, value in models[1].items():
        same(models[0][key], value, 1e-5)
    same(values[0], values[1], 1e-4)


def test_signatures_are_those_of_torch():
    pairs = [(getattr(optim, n), getattr(torch.optim, n)) for n in NAMES]
    for name in lr_scheduler.__all__:
        pairs.append((getattr(lr_scheduler, name), getattr(torch.optim.lr_scheduler, name)))
    for mine, their in pairs:
        rows = []
        for function in (mine, their):
            found = inspect.signature(function).parameters.values()
            rows.append([(p.name, p.kind, p.default) for p in found])
        assert rows[0] == rows[1], mine.__name__


def test_parameters_that_stand_twice_in_a_group_warn():
    p = lamella.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="SGD: a parameter is twice in one group"):
        optim.SGD([p, p])


def test_hooks_of_all_optimizers():
    from lamella.optim import optimizer as module

    p = lamella.zeros(1, requires_grad=True)
    p.grad = lamella.ones(1)
    seen = []
    before = optim.SGD([p])
    before.register_step_pre_hook(lambda o, a, k: seen.append("own pre"))
    before.register_step_post_hook(lambda o, a, k: seen.append("own post"))
    with (
        module.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("pre")),
        module.register_optimizer_step_post_hook(lambda o, a, k: seen.append("post")),
    ):
        before.step()
        optim.Adam([p]).step()
    assert seen == ["pre", "own pre", "own post", "post", "pre", "post"]
    before.step()
    assert seen[6:] == ["own pre", "own post"]


def test_lbfgs_takes_a_step_of_no_length():
    p = lamella.zeros(2, requires_grad=True)
    made = optim.LBFGS([p], tolerance_grad=-math.inf)

    def closure():
        made.zero_grad()
        loss = (p * 0).sum()
        loss.backward()
        return loss

    assert float(made.step(closure)) == 0 and p.tolist() == [0, 0]


@pytest.mark.parametrize("named", [(True, False), (False, True), (True, True)])
def test_names_stay_where_the_state_has_none(named):
    model = lamella.nn.Linear(2, 1)
    first, second = (
        lamella.optim.SGD(model.named_parameters() if has else model.parameters(), lr=0.1)
        for has in named
    )
    second.load_state_dict(first.state_dict())
    assert second.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
