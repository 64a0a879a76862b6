"""Learning-rate schedulers against PyTorch: rates, state dicts, and resuming."""

import warnings

import pytest

import lamella
from lamella import optim
from lamella.optim import lr_scheduler

torch = pytest.importorskip("torch")

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
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 3}),
    ("CyclicLR",
     {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 2, "step_size_down": 4,
      "gamma": 0.9} | {"mode": "exp_range"}),
    ("CyclicLR",
     {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 2,
      "mode": "triangular2"} | {"cycle_momentum": False}),
    ("CyclicLR",
     {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 2, "scale_fn": lambda x: 1 / (1 + x)}),
    ("OneCycleLR",
     {"max_lr": 0.1, "total_steps": 21, "three_phase": True, "anneal_strategy": "linear"}),
]  # fmt: skip


def both(**options):
    return (
        optim.SGD([lamella.nn.Parameter(lamella.ones(1))], momentum=0.9, **options),
        torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], momentum=0.9, **options),
    )


def same_rates(a, b):
    for name in ("lr", "momentum"):
        found, wanted = a.param_groups[0][name], b.param_groups[0][name]
        assert found == wanted, name


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


def test_schedules_at_once():
    a, b = both(lr=0.1)

    def make(optimizer, schedulers):
        return schedulers.ChainedScheduler(
            [schedulers.ConstantLR(optimizer, 0.1, 2), schedulers.ExponentialLR(optimizer, 0.9)]
        )

    mine, their = make(a, lr_scheduler), make(b, torch.optim.lr_scheduler)
    for _ in range(6):
        same_rates(a, b)
        b.step()
        mine.step()
        their.step()
    again = make(both(lr=0.1)[0], lr_scheduler)
    again.load_state_dict(mine.state_dict())
    assert again.get_last_lr() == mine.get_last_lr()


def test_plateaus():
    a, b = both(lr=0.1)
    mine = lr_scheduler.ReduceLROnPlateau(a, patience=2, cooldown=1)
    their = torch.optim.lr_scheduler.ReduceLROnPlateau(b, patience=2, cooldown=1)
    for metric in [3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]:
        mine.step(metric)
        their.step(metric)
        same_rates(a, b)


def states(schedulers, optimizer):
    yield schedulers.SequentialLR(
        optimizer, [schedulers.ConstantLR(optimizer), schedulers.StepLR(optimizer, 2)], [3]
    )
    yield schedulers.ChainedScheduler(
        [schedulers.ConstantLR(optimizer), schedulers.ExponentialLR(optimizer, 0.5)]
    )
    yield schedulers.ReduceLROnPlateau(optimizer, mode="max", min_lr=[0.1])
    yield schedulers.LambdaLR(optimizer, lambda epoch: 0.5)
    for name, options in SCHEDULES:
        if "scale_fn" not in options and "lr_lambda" not in options:
            yield getattr(schedulers, name)(optimizer, **options)


def test_states_are_pytorch_s():
    a, b = both(lr=0.3)
    for mine, their in zip(states(lr_scheduler, a), states(torch.optim.lr_scheduler, b)):
        found, wanted = mine.state_dict(), their.state_dict()
        assert list(found) == list(wanted), type(mine).__name__
        assert found == wanted, (type(mine).__name__, found, wanted)
        their.load_state_dict(found)
        mine.load_state_dict(wanted)


RESUMED = [
    ("StepLR", {"step_size": 2}),
    ("MultiStepLR", {"milestones": [2, 3]}),
    ("ConstantLR", {"total_iters": 4}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.7}),
    ("PolynomialLR", {"total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 5}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9}),
]


@pytest.mark.parametrize("is_tensor", [False, True])
@pytest.mark.parametrize("name, options", RESUMED)
def test_schedules_that_go_on(name, options, is_tensor):
    """A scheduler that is made with last_epoch takes the rate of a checkpoint as it is."""
    rates = []
    for library, schedulers in ((lamella, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        group = {"params": [library.nn.Parameter(library.ones(1))], "initial_lr": 0.4}
        rate = library.tensor(0.25) if is_tensor else 0.25
        optimizer = library.optim.SGD([group], lr=rate)
        schedule = getattr(schedulers, name)(optimizer, last_epoch=1, **options)
        mine = [schedule.get_last_lr()[0]]
        for _ in range(4):
            optimizer.step()
            schedule.step()
            mine.append(schedule.get_last_lr()[0])
        rates.append([float(lr) for lr in mine])
    assert rates[0] == rates[1]


def test_rates_asked_for_outside_a_step():
    schedule = lr_scheduler.ExponentialLR(both(lr=0.1)[0], 0.5)
    message = (
        "^ExponentialLR: get_lr\\(\\) computes the rates of a step from those of the step before; "
        "get_last_lr\\(\\) gives the rates that were set last$"
    )
    with pytest.warns(UserWarning, match=message):
        schedule.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_last_rates_stay_as_they_were():
    p = lamella.nn.Parameter(lamella.ones(1))
    for make in (
        lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
        lambda o: lr_scheduler.ExponentialLR(o, 0.5),
    ):
        optimizer = optim.SGD([p], lr=lamella.tensor(0.5))
        schedule = make(optimizer)
        before = schedule.get_last_lr()
        for _ in range(2):
            schedule.step(*([1.0] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))
        assert before[0].item() == 0.5
        assert optimizer.param_groups[0]["lr"].item() < 0.5


def test_epochs_that_are_given():
    optimizer = both(lr=0.1)[0]
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    for call in (lambda: schedule.step(2), lambda: plateau.step(1.0, 3)):
        with pytest.warns(UserWarning, match="^step: expected no 'epoch'") as caught:
            call()
        assert caught[0].message.args[0] == lr_scheduler.EPOCH_DEPRECATION_WARNING
    assert schedule.get_last_lr() == [0.025] and plateau.last_epoch == 3


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_one_cycle_loads_a_state_with_the_function(strategy):
    make = lambda: lr_scheduler.OneCycleLR(  # noqa: E731
        both(lr=0.1)[0], max_lr=1.0, total_steps=10, anneal_strategy=strategy
    )
    wanted, loaded = make(), make()
    state = loaded.state_dict()
    del state["_anneal_func_type"], loaded._anneal_func_type
    state["anneal_func"] = getattr(lr_scheduler.OneCycleLR, f"_annealing_{strategy}")
    loaded.load_state_dict(state)
    for _ in range(9):
        wanted.step()
        loaded.step()
        assert loaded.get_last_lr() == wanted.get_last_lr()


def test_rates_of_averaging_are_not_shared():
    rate = lamella.tensor(0.05)
    groups = [{"params": [lamella.nn.Parameter(lamella.ones(1))]} for _ in range(2)]
    optimizer = optim.SGD(groups, lr=0.1)
    optim.swa_utils.SWALR(optimizer, swa_lr=rate)
    rate.mul_(0.5)
    optimizer.param_groups[0]["swa_lr"].mul_(3)
    assert optimizer.param_groups[1]["swa_lr"].item() == pytest.approx(0.05)
