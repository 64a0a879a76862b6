"""lamella.compile of many kinds of programs: eager's results, or a reason to run uncompiled."""

import collections
import copy
import dataclasses
from typing import NamedTuple

import pytest
from in_threads import in_threads

lamella = pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")
from lamella import nn  # noqa: E402
from lamella.nn import functional  # noqa: E402

CASES = []


def case(make):
    """make() gives a function or module, and a list of the arguments of its calls."""
    CASES.append(pytest.param(make, id=make.__name__))
    return make


def numbers(*shape):
    return lamella.randn(*shape)


@case
def attention_block():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.parts, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x, mask=None):
            q, k, v = self.parts(self.norm(x)).chunk(3, dim=-1)
            scores = q @ k.transpose(-2, -1) / 8**0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            return x + self.out(functional.softmax(scores, dim=-1) @ v)

    x, mask = numbers(2, 5, 8), lamella.ones(5, 5, dtype=lamella.bool).tril()
    return Block(), [(x,), (x, mask), (numbers(3, 5, 8), mask)]


@case
def recurrence():
    w, u = numbers(4, 4) * 0.3, numbers(3, 4)

    def run(x, h):
        states = []
        for t in range(x.shape[0]):
            h = lamella.tanh(h @ w + x[t] @ u)
            states.append(h)
        return lamella.stack(states), h

    return run, [(numbers(6, 2, 3), numbers(2, 4)), (numbers(3, 2, 3), numbers(2, 4))]


@case
def running_statistics():
    net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU())

    def run(x, training):
        net.train(training)
        return net(x), net[1].running_mean.clone(), net[1].num_batches_tracked.clone()

    x = numbers(4, 2, 5, 5)
    return run, [(x, True), (x, True), (x, False), (x, True)]


@case
def batch_norm_module():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten())
    return net, [(numbers(4, 2, 5, 5),), (numbers(4, 2, 5, 5),), (numbers(4, 2, 5, 5),)]


@case
def dropout():
    return (lambda x: functional.dropout(x, 0.5) + lamella.rand_like(x)), [(numbers(4, 5),)] * 3


@case
def embedding_and_loss():
    table, last = nn.Embedding(10, 6), nn.Linear(6, 4)

    def run(tokens, labels):
        return functional.cross_entropy(last(table(tokens).mean(1)), labels, ignore_index=-100)

    tokens = lamella.randint(0, 10, (3, 5))
    return run, [(tokens, lamella.tensor([0, 3, -100])), (tokens + 0, lamella.tensor([1, 2, 3]))]


@dataclasses.dataclass
class Batch:
    x: lamella.Tensor
    scale: float


class Pair(NamedTuple):
    first: lamella.Tensor
    second: lamella.Tensor


@case
def structures():
    def run(batch, *more, weight=1.0, **others):
        total = batch.x * batch.scale + sum(more) * weight
        made = Pair(total, total.sum())
        return {"pair": made, "list": [total + others["bias"], None, 3], "text": "x"}

    x = numbers(3)
    return run, [
        (Batch(x, 2.0), x, x),
        (Batch(x + 1, 2.0), x),
        (Batch(x, 3.0), x),
    ]


@case
def objects_as_results():
    return (lambda x: Batch(x * 2, 1.0)), [(numbers(3),), (numbers(3),)]


@case
def kinds_of_numbers():
    x = lamella.arange(3)
    calls = [(x, 1), (x, 1.0), (x, True), (x, 0.0), (x, -0.0), (x, 1)]
    return (lambda x, k: (x * k, lamella.ones(()) / lamella.tensor(k), k)), calls


@case
def writes_through_views():
    def run(x):
        x = x.clone()
        x[1:].mul_(2)
        x[:, 0] = 7
        row = x[0]
        row += 1
        x.t()[1].zero_()
        return x, row

    return run, [(numbers(3, 4),), (numbers(3, 4),)]


@case
def writes_arguments():
    def run(x, out):
        out[0].copy_(x)
        out.add_(1)
        return out[1]

    return run, [(numbers(3), numbers(2, 3)), (numbers(3), numbers(2, 3))]


@case
def masks():
    def run(x):
        return lamella.where(x > 0, x, -x), (x > 0).sum(), x.masked_fill(x < 0, 0)

    return run, [(numbers(4, 3),), (numbers(4, 3),)]


@case
def selection_by_mask():
    return (lambda x: x[x > 0] * 2), [(numbers(20),), (numbers(20),)]


@case
def branch_on_elements():
    return (lambda x: x * 2 if x.sum() > 0 else x - 1), [(numbers(4).abs(),), (-numbers(4).abs(),)]


@case
def branch_on_shapes():
    def run(x):
        parts = [x[..., i : i + 2] for i in range(0, x.shape[-1], 2)]
        return lamella.cat([p.flip(0) for p in parts], -1) if x.dim() > 1 else x.sum()

    return run, [(numbers(2, 5),), (numbers(4),), (numbers(3, 4),)]


@case
def complex_numbers():
    def run(x):
        y = lamella.complex(x, x.flip(0) * 2) * (1 - 2j)
        return (y * y.conj()).real, lamella.view_as_real(y), y.angle(), y.conj()

    return run, [(numbers(8),), (numbers(8),)]


@case
def integers():
    def run(x, k):
        return (x // 3) % 5, x << k, x & 6, x.cumsum(0), x.bincount(minlength=20), x.float().mean()

    x = lamella.arange(12)
    return run, [(x, 2), (x + 1, 2), (x, 1)]


@case
def mixed_precision():
    layer = nn.Linear(6, 4)

    def run(x):
        with lamella.autocast("cpu", dtype=lamella.bfloat16):
            y = layer(x)
        return y, y.float().softmax(-1)

    return run, [(numbers(3, 6),), (numbers(3, 6),)]


@case
def modes_inside():
    weight = numbers(3).requires_grad_()

    def run(x):
        with lamella.no_grad():
            scale = (weight * 2).sum()
        return weight * x * scale, lamella.is_grad_enabled()

    return run, [(numbers(3),), (numbers(3),)]


@case
def nested_compile():
    inner = lamella.compile(lambda x: x.exp() + 1)
    return (lambda x: inner(x) * inner(x * 2)), [(numbers(4),), (numbers(5),)]


@case
def vmap_inside():
    return lamella.vmap(lambda a, b: (a * b).sum() + a.max()), [(numbers(3, 4), numbers(3, 4))] * 2


@case
def vmap_of_compiled():
    inner = lamella.compile(lambda x: x.tanh().sum())
    return lamella.vmap(inner), [(numbers(3, 4),), (numbers(3, 4),)]


@case
def grad_of_compiled():
    inner = lamella.compile(lambda x: (x.tanh() ** 2).sum())
    return lamella.func.grad(inner), [(numbers(4),), (numbers(4),)]


@case
def jacobian_inside():
    return (lambda x: lamella.func.jacrev(lambda y: y**3)(x)), [(numbers(3),), (numbers(3),)]


@case
def default_dtype():
    def run(kind, x):
        before = lamella.get_default_dtype()
        lamella.set_default_dtype(kind)
        try:
            return lamella.ones(3) * 2, lamella.arange(3.0) + x
        finally:
            lamella.set_default_dtype(before)

    return run, [(lamella.float64, numbers(3)), (lamella.float32, numbers(3))]


@case
def sorted_and_gathered():
    def run(x):
        values, order = x.sort(-1)
        top = x.topk(2)
        return values, order, x.gather(-1, order), top.values, top.indices

    return run, [(numbers(3, 6),), (numbers(3, 6),)]


@case
def scatter_and_index():
    def run(x, at):
        y = lamella.zeros(5, 3).index_add(0, at, x)
        return y.scatter(1, at[:, None], 9.0), y[at], y.index_select(0, at)

    return run, [
        (numbers(3, 3), lamella.tensor([0, 2, 1])),
        (numbers(3, 3), lamella.tensor([2, 2, 0])),
    ]


@case
def einsum_and_norms():
    def run(a, b):
        c = lamella.einsum("bij,bjk->bik", a, b)
        return c, lamella.linalg.norm(c), functional.normalize(c, dim=-1), c.logsumexp((0, 1))

    return run, [(numbers(2, 3, 4), numbers(2, 4, 3))] * 2


@case
def numbers_in_and_out():
    return (lambda x, k, name: (x * k, k + 1, name)), [(numbers(2), 2, "a"), (numbers(2), 3, "b")]


def leaves(value):
    if isinstance(value, lamella.Tensor):
        return [value]
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def same(mine, eager):
    mine, eager = leaves(mine), leaves(eager)
    assert len(mine) == len(eager)
    for a, b in zip(mine, eager):
        if not isinstance(b, lamella.Tensor):
            assert a == b and type(a) is type(b)
            continue
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        a, b = a.detach().resolve_conj(), b.detach().resolve_conj()
        assert lamella.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True), f"{b} and {a}"


@pytest.mark.parametrize("grad", [True, False], ids=["gradients", "plain"])
@pytest.mark.parametrize("make", CASES)
def test_case(make, grad):
    results = []
    for compiled in (False, True):
        lamella.manual_seed(5)
        fn, calls = make()
        keywords = {"bias": lamella.ones(3), "weight": 0.5} if make is structures else {}
        run = lamella.compile(fn) if compiled else fn
        rows = []
        with lamella.set_grad_enabled(grad):
            for _ in range(2):
                for args in calls:
                    lamella.manual_seed(6)
                    given = copy.deepcopy(args)
                    rows.append((run(*given, **keywords), [t for t in leaves(given)]))
                    made = [
                        t
                        for t in leaves(rows[-1][0])
                        if isinstance(t, lamella.Tensor) and t.requires_grad
                    ]
                    if isinstance(fn, nn.Module) and made:
                        fn.zero_grad()
                        lamella.autograd.backward(made, [lamella.ones_like(t) for t in made])
                        rows.append(([p.grad.clone() for p in fn.parameters()], []))
        results.append(rows)
    for mine, eager in zip(results[1], results[0]):
        same(mine, eager)
    assert run.explanation()


def test_globals_and_closures_that_change():
    box = {"scale": lamella.ones(3), "list": [lamella.ones(3)], "tuple": (lamella.ones(3), 2)}
    count = 1

    @lamella.compile
    def run(x):
        return x * box["scale"] + box["list"][0] * count + box["tuple"][0] * box["tuple"][1]

    def check():
        expected = x * box["scale"] + box["list"][0] * count
        same(run(x), expected + box["tuple"][0] * box["tuple"][1])

    x = lamella.arange(3.0)
    check()
    box["scale"] = lamella.full((3,), 5.0)
    check()
    box["list"][0] = lamella.full((3,), 7.0)
    check()
    count = 4
    check()
    box["tuple"] = (lamella.full((3,), 3.0), 5)
    check()
    box["list"].append(1)
    check()


def test_globals_of_methods():
    class Net(nn.Module):
        def forward(self, x):
            return x * FACTOR["value"]

    net = lamella.compile(Net())
    x = lamella.ones(2)
    FACTOR["value"] = 2.0
    assert net(x).tolist() == [2, 2]
    FACTOR["value"] = 3.0
    assert net(x).tolist() == [3, 3]


FACTOR = {}


def test_replaced_parameters_and_modes():
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.9))
    run = lamella.compile(net.eval())
    x = lamella.randn(4, 3)
    same(run(x), net(x))
    net[0].weight = nn.Parameter(lamella.zeros(2, 3))
    same(run(x), net(x))
    net[0] = nn.Linear(3, 5)
    same(run(x), net(x))
    net.train()
    lamella.manual_seed(1)
    expected = net(x)
    lamella.manual_seed(1)
    same(run(x), expected)
    net.eval()
    same(run(x), net(x))
    net[0].register_parameter("bias", None)
    same(run(x), net(x))


def test_parameters_that_are_not_used():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.unused, self.used = nn.Linear(3, 3), nn.Linear(3, 2)

        def forward(self, x):
            return self.used(x)

    net = Net()
    run = lamella.compile(net)
    for _ in range(2):
        run(lamella.ones(1, 3)).sum().backward()
    assert net.unused.weight.grad is None and net.used.bias.grad.tolist() == [2, 2]


def test_effects_in_python():
    """Attributes and globals that a function changes are changed at each call."""

    class Counter:
        calls = 0

        def __init__(self):
            self.seen = 0

        def __call__(self, x):
            self.seen += 1
            return x * self.seen

    fn = Counter()
    run = lamella.compile(fn)
    assert [run(lamella.ones(1)).item() for _ in range(3)] == [1, 2, 3] and fn.seen == 3
    assert len(run.explanation().splitlines()) == 1
    assert "it changes seen" in run.explanation()

    class Caches(nn.Module):
        table = None

        def forward(self, x):
            if self.table is None:
                self.table = lamella.arange(3.0)
            return x + self.table

    net = Caches()
    run = lamella.compile(net)
    for _ in range(3):
        assert run(lamella.ones(3)).tolist() == [1, 2, 3]
    first, second = run.explanation().splitlines()
    assert first.endswith("it changes table") and "was compiled again" in second

    class Keeps(nn.Module):
        def forward(self, x):
            self.last = x + 1
            return x * 2

    net = Keeps()
    run = lamella.compile(net)
    for value in (1.0, 2.0):
        assert run(lamella.full((1,), value)).item() == 2 * value
        assert net.last.item() == value + 1
    assert "it changes last" in run.explanation()


def test_errors_in_the_middle():
    calls = []

    def fails(x, y):
        calls.append(1)
        x.add_(1)
        if y is None:
            raise KeyError("in the middle")
        return x @ y

    run = lamella.compile(fails)
    x = lamella.zeros(2, 2)
    with pytest.raises(KeyError, match="in the middle"):
        run(x, None)
    assert x.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError):
        run(x, lamella.ones(3, 3))
    same(run(x, lamella.ones(2, 2)), lamella.full((2, 2), 6.0))


def test_threads():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    run = lamella.compile(net)
    inputs = [lamella.randn(1 + i % 3, 4) for i in range(12)]
    expected = [net(x) for x in inputs]
    got = collections.defaultdict(list)

    def work(first):
        for i in range(first, len(inputs), 3):
            for _ in range(20):
                got[i].append(run(inputs[i]))

    in_threads(work, over=(0, 1, 2, 0, 1, 2))
    for i, made in got.items():
        assert len(made) == 40
        for one in made:
            same(one, expected[i])


def test_operators_see_the_storage_of_arguments():
    # What is kept with a storage, as the packed form of a weight, is found there by its versions.
    seen = []
    library = lamella.library.Library("compiled_storage", "DEF")
    library.define("probe(Tensor x) -> Tensor")

    def probe(x):
        seen.append(x._version)
        return x + 1

    library.impl("probe", probe, "CPU")
    library.impl("probe", lambda x: lamella.empty_like(x), "Meta")
    compiled = lamella.compile(lambda x: lamella.ops.compiled_storage.probe(x))
    x = lamella.ones(3)
    for _ in range(3):
        x.add_(1)
        assert compiled(x).tolist() == (x + 1).tolist()
        assert seen[-1] == x._version
