"""lamella.compile of training steps: backward, optimizer and gradients inside, equal to eager."""

import collections
import copy

import pytest

lamella = pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")
from lamella import nn  # noqa: E402
from lamella.nn import functional  # noqa: E402


def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), lamella.randn(8, 6)


def conv_net():
    layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(16, 3)]
    return nn.Sequential(*layers), lamella.randn(8, 2, 6, 6)


class Encoder(nn.Module):
    """A layer of a transformer, and a class for each sequence."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(8, 24)
        self.mix = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        batch, tokens, width = x.shape
        heads = self.parts(x).reshape(batch, tokens, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*heads).transpose(1, 2)
        x = self.norm(x + self.mix(seen.reshape(x.shape)))
        return self.last((x + self.inner(x)).mean(1))


def encoder():
    return Encoder(), lamella.randn(8, 5, 8)


class Tied(nn.Module):
    """One weight in two places."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x).tanh()))


def tied():
    return Tied(), lamella.randn(8, 6)


NETS = {"mlp": mlp, "conv": conv_net, "encoder": encoder, "tied": tied}
OPTIMIZERS = {
    "sgd": lambda p: lamella.optim.SGD(p, lr=0.1),
    "decay": lambda p: lamella.optim.SGD(p, lr=0.01, weight_decay=0.01, maximize=True),
    "momentum": lambda p: lamella.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: lamella.optim.Adam(p, lr=1e-2),
    "amsgrad": lambda p: lamella.optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=0.01),
    "adamw": lambda p: lamella.optim.AdamW(p, lr=1e-2),
}
# Those that step by the sign or the size of a gradient, also where it is 0 but for rounding, are
# compared where no gradient is.
RARER = {
    "asgd": lambda p: lamella.optim.ASGD(p, lr=0.05, t0=3),
    "adadelta": lambda p: lamella.optim.Adadelta(p, lr=0.5),
    "adagrad": lambda p: lamella.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "adamax": lambda p: lamella.optim.Adamax(p, lr=0.05, weight_decay=0.01),
    "nadam": lambda p: lamella.optim.NAdam(p, lr=0.05, decoupled_weight_decay=True),
    "radam": lambda p: lamella.optim.RAdam(p, lr=0.05, weight_decay=0.01),
    "rmsprop": lambda p: lamella.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "rprop": lambda p: lamella.optim.Rprop(p, lr=0.01),
    "adafactor": lambda p: lamella.optim.Adafactor(p, lr=0.05),
}


def step_of(net, optimizer, order):
    def zero_first(x, y):
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def zero_last(x, y):
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def zeros(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return {"first": zero_first, "last": zero_last, "zeros": zeros}[order]


def lines(compiled):
    """How many programs there are, and how many kinds of calls run as they are."""
    rows = compiled.explanation().splitlines()
    return [sum(" was compiled" in row for row in rows), sum(" uncompiled" in row for row in rows)]


def same(mine, eager, tolerance=2e-5):
    assert (mine is None) == (eager is None)
    if eager is None:
        return
    mine, eager = mine.detach(), eager.detach()
    assert mine.dtype == eager.dtype and mine.shape == eager.shape
    assert lamella.allclose(mine, eager, rtol=tolerance, atol=tolerance), f"{eager} and {mine}"


def train(make, optimize, order, is_compiled, dtype, steps=20):
    lamella.manual_seed(1)
    net, x = make()
    net, x = net.to(dtype), x.to(dtype)
    y = lamella.arange(8) % 3
    optimizer = optimize(net.parameters())
    step = step_of(net, optimizer, order)
    if is_compiled:
        step = lamella.compile(step)
    losses = [step(x + 0.01 * i, y).item() for i in range(steps)]
    return net, optimizer, losses, step


@pytest.mark.parametrize(
    ("net", "order", "optimizer"),
    [
        *((net, "first", optimizer) for net in NETS for optimizer in OPTIMIZERS),
        *(("mlp", order, optimizer) for order in ("last", "zeros") for optimizer in OPTIMIZERS),
        *(("mlp", "first", optimizer) for optimizer in RARER),
    ],
)
def test_twenty_steps(net, optimizer, order):
    # In float32 a gradient that is 0 but for rounding makes a whole step of Adam's.
    dtype = lamella.float32 if optimizer == "sgd" else lamella.float64
    tolerance = 1e-4 if optimizer == "sgd" else 1e-6
    make, optimize = NETS[net], {**OPTIMIZERS, **RARER}[optimizer]
    eager, eager_optimizer, expected, _ = train(make, optimize, order, False, dtype)
    mine, my_optimizer, got, step = train(make, optimize, order, True, dtype)
    assert got == pytest.approx(expected, rel=tolerance, abs=tolerance)
    assert lines(step)[0] >= 1 and lines(step)[1] <= 1, step.explanation()
    assert len(step._entries) <= 3, step.explanation()
    for a, b in zip(mine.state_dict().values(), eager.state_dict().values()):
        same(a, b, tolerance)
    for a, b in zip(mine.parameters(), eager.parameters()):
        same(a.grad, b.grad, tolerance)
    states = my_optimizer.state_dict()["state"], eager_optimizer.state_dict()["state"]
    assert states[0].keys() == states[1].keys()
    for at, row in states[1].items():
        for key, value in row.items():
            same(states[0][at][key], value, tolerance)


def test_rates_are_inputs():
    net, x = mlp()
    optimizer = lamella.optim.SGD(net.parameters(), lr=0.5)
    schedule = lamella.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    twin = copy.deepcopy(net)
    other = lamella.optim.SGD(twin.parameters(), lr=0.5)
    step = lamella.compile(step_of(net, optimizer, "last"))
    plain = step_of(twin, other, "last")
    y = lamella.arange(8) % 3
    for _ in range(6):
        step(x, y)
        plain(x, y)
        schedule.step()
        other.param_groups[0]["lr"] *= 0.5
    assert lines(step) == [1, 0], step.explanation()
    for a, b in zip(net.parameters(), twin.parameters()):
        same(a, b)


def test_accumulated_gradients():
    """A backward alone adds to the gradients that are there, in their memory."""
    weight = lamella.randn(3, 4, requires_grad=True)
    x = lamella.randn(5, 4)

    @lamella.compile
    def step(x):
        loss = functional.linear(x, weight).square().sum()
        loss.backward()
        return loss

    step(x)
    first = weight.grad
    step(x)
    assert weight.grad is first
    step(x)
    expected = lamella.autograd.grad(functional.linear(x, weight).square().sum(), weight)[0]
    same(weight.grad, 3 * expected)
    assert lines(step) == [2, 0], step.explanation()
    weight.grad = None
    step(x)
    same(weight.grad, expected)


def test_gradients_are_read():
    weight = lamella.ones(3, requires_grad=True)

    @lamella.compile
    def update():
        with lamella.no_grad():
            if weight.grad is not None:
                weight.sub_(weight.grad, alpha=0.5)
                weight.grad = None

    update()
    assert weight.tolist() == [1, 1, 1]
    for _ in range(2):
        weight.grad = lamella.tensor([0.0, 1.0, 2.0])
        update()
        assert weight.grad is None
    assert weight.tolist() == [1, 0, -1]
    update()
    assert weight.tolist() == [1, 0, -1]


def test_gradients_that_the_code_does_not_name():
    weight = lamella.ones(3, requires_grad=True)
    name = "grad"

    @lamella.compile
    def read(x):
        grad = getattr(weight, name)
        return x if grad is None else x + grad

    x = lamella.zeros(3)
    assert read(x).tolist() == [0, 0, 0]
    weight.grad = lamella.tensor([0.0, 1.0, 2.0])
    assert read(x).tolist() == [0, 1, 2]
    weight.grad = lamella.tensor([4.0, 1.0, 2.0])
    assert read(x).tolist() == [4, 1, 2]


def test_gradients_of_two_leaves_are_apart():
    a, b = lamella.ones(3, requires_grad=True), lamella.ones(3, requires_grad=True)

    @lamella.compile
    def step():
        (a + b).sum().backward()

    step()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1, 1, 1] and a.grad.tolist() == [5, 5, 5]
    assert lines(step) == [1, 0], step.explanation()


def test_updates_by_hand_and_clipping():
    def run(is_compiled):
        lamella.manual_seed(3)
        net, x = mlp()
        params = list(net.parameters())
        y = lamella.arange(8) % 3

        def step(x, y):
            loss = functional.cross_entropy(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(params, 0.1)
            with lamella.no_grad():
                for p in params:
                    p -= 0.5 * p.grad
                    p.grad = None
            return loss

        step = lamella.compile(step) if is_compiled else step
        for _ in range(5):
            step(x, y)
        return params, step

    (expected, _), (got, step) = run(False), run(True)
    for a, b in zip(got, expected):
        same(a, b)
    assert lines(step) == [1, 0], step.explanation()


def test_dropout_in_a_step():
    def run(is_compiled):
        lamella.manual_seed(4)
        net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 3))
        optimizer = lamella.optim.SGD(net.parameters(), lr=0.1)
        step = step_of(net, optimizer, "last")
        step = lamella.compile(step) if is_compiled else step
        x, y = lamella.ones(8, 6), lamella.arange(8) % 3
        return [step(x, y).item() for _ in range(4)]

    assert run(True) == pytest.approx(run(False), rel=1e-5)


def test_what_steps_run_as_they_are():
    net, x = mlp()
    optimizer = lamella.optim.SGD(net.parameters(), lr=0.1)
    schedule = lamella.optim.lr_scheduler.StepLR(optimizer, 1)
    y = lamella.arange(8) % 3

    def scheduled(x, y):
        functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    compiled = lamella.compile(scheduled)
    compiled(x, y)
    assert "test_compile_steps.py:" in compiled.explanation()  # where the scheduler reads the rate
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)

    def read(x, y):
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.zero_grad()
        return loss.item()

    compiled = lamella.compile(read)
    assert isinstance(compiled(x, y), float)
    assert ", got item() at " in compiled.explanation() or "_local_scalar_dense at " in (
        compiled.explanation()
    )
    assert "test_compile_steps.py:" in compiled.explanation()

    # A result whose backward has not run keeps its history.
    def two(x, y):
        loss = functional.cross_entropy(net(x), y)
        other = net(x).sum()
        loss.backward()
        return other

    compiled = lamella.compile(two)
    other = compiled(x, y)
    assert other.requires_grad and "returns results with gradients" in compiled.explanation()
    other.backward()


def test_groups_and_hooks_that_come_later():
    net, x = mlp()
    extra = lamella.ones(3, requires_grad=True)
    optimizer = lamella.optim.SGD(net.parameters(), lr=0.1)
    y = lamella.arange(8) % 3

    def step(x, y):
        optimizer.zero_grad()
        functional.cross_entropy(net(x) * extra, y).backward()
        optimizer.step()

    compiled = lamella.compile(step)
    for _ in range(3):
        compiled(x, y)
    assert extra.tolist() == [1, 1, 1]
    optimizer.add_param_group({"params": [extra]})
    compiled(x, y)
    assert extra.tolist() != [1, 1, 1]
    called = []
    optimizer.register_step_post_hook(lambda *_: called.append(1))
    before = extra.tolist()
    compiled(x, y)
    compiled(x, y)
    assert extra.tolist() != before and called


def test_parameters_that_are_not_contiguous_and_rates_of_other_types():
    lamella.manual_seed(0)
    nets = [nn.Conv2d(3, 4, 2).to(memory_format=lamella.channels_last)]
    nets.append(copy.deepcopy(nets[0]))
    x = lamella.randn(1, 3, 4, 4)

    def training(net):
        optimizer = lamella.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return optimizer, step

    (first, eager), (second, fn) = map(training, nets)
    compiled = lamella.compile(fn)
    for lr in (0.1, 0.1, 0.1, 0.05, 1, lamella.tensor(0.02), 0.3):
        for optimizer in (first, second):
            optimizer.param_groups[0]["lr"] = lr
        assert lamella.allclose(compiled(x), eager(x))
        for expected, got in zip(nets[0].parameters(), nets[1].parameters()):
            assert lamella.allclose(got, expected) and got.stride() == expected.stride()
            assert lamella.allclose(got.grad, expected.grad)
    assert "step of" in compiled.explanation().splitlines()[-1]


def test_what_is_written_may_share_memory_with_another_argument():
    def fn(p, q):
        p.add_(q)
        return p, q * 2

    compiled = lamella.compile(fn)
    for shared in (False, True, False):
        results = []
        for run in (compiled, fn):
            base = lamella.arange(4.0)
            p, q = base[:2], base[2:] if shared else lamella.ones(2)
            made = run(p, q)
            assert made[0] is p
            results.append((made[1].tolist(), base.tolist()))
        assert results[0] == results[1]


def test_views_with_gradients_and_named_results():
    named = collections.namedtuple("named", "sum view whole")
    w = lamella.ones(4, requires_grad=True)
    compiled = lamella.compile(lambda x: named((x * w).sum(), x.view(2, 2), x))
    for _ in range(3):
        x = lamella.arange(4.0).requires_grad_()
        made = compiled(x)
        (made.sum + made.view.sum()).backward()
        assert type(made) is named and made.whole is x
        assert x.grad.tolist() == [2, 2, 2, 2] and made.view.grad_fn is not None
