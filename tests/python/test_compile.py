"""lamella.compile: equal to eager calls, with gradients; guards; functions that run uncompiled."""

import copy
import os
import pathlib
import sys

import pytest
from in_threads import in_threads

lamella = pytest.importorskip("lamella")
pytest.importorskip("lamella.hlo")
from lamella import nn  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from operator_rows import ROWS  # noqa: E402


def tensors_of(value):
    if isinstance(value, lamella.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def close(got, expected, tolerance=1e-5):
    assert len(got) == len(expected)
    for mine, eager in zip(got, expected):
        if eager is None:
            assert mine is None
            continue
        mine, eager = mine.detach(), eager.detach()
        assert mine.dtype == eager.dtype and mine.shape == eager.shape
        assert lamella.allclose(
            mine, eager, rtol=tolerance, atol=tolerance, equal_nan=True
        ), f"expected {eager}, got {mine}"


def programs(compiled):
    """Lines of the explanation: how many programs, and how many functions that run as they are."""
    lines = compiled.explanation().splitlines()
    return [sum(" was compiled" in line for line in lines), sum(" uncompiled" in l for l in lines)]


@pytest.mark.parametrize("recorded", [False, True])
def test_compiling_runs_the_function_once_and_verifies_a_module_once(recorded, capsys):
    if "LAMELLA_SANITIZED" in os.environ:
        pytest.skip("debug builds verify a module after each pass")
    weight = lamella.ones(3).requires_grad_(recorded)

    def function(x):
        print("called")
        return (x * weight).sin(), x[0]

    compiled = lamella.compile(function)
    x = lamella.rand(2, 3).requires_grad_(recorded)
    with lamella.profiler.profile() as profile:
        result, _ = compiled(x)
        again, view = compiled(x)
    assert capsys.readouterr().out == "called\n" and programs(compiled) == [1, 0]
    names = [event.name for event in profile.events()]
    assert names.count("forward: verify") == 1 and names.count("backward: verify") == recorded
    assert result.equal(again) and view.data_ptr() == x.data_ptr()
    if recorded:
        grads = lamella.autograd.grad(again.sum() + view.sum(), [x, weight])
        expected = lamella.autograd.grad(sum(t.sum() for t in function(x)), [x, weight])
        close(grads, expected)


# Rows that run as they are, as their sizes depend on values or an operator asks for strides. The
# list can only shrink.
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row):
    for dtype in row.dtypes:
        function, inputs = row.call(dtype)
        compiled = lamella.compile(function)
        with lamella.no_grad():
            lamella.manual_seed(3)
            expected = tensors_of(function(*[t.clone() for t in inputs]))
            for _ in range(2):  # the first call goes through Python, others do not
                lamella.manual_seed(3)
                close(tensors_of(compiled(*[t.clone() for t in inputs])), expected, 1e-9)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gradients_of_rows(row):
    for dtype in row.dtypes:
        function, inputs = row.call(dtype)
        compiled = lamella.compile(function)
        results = []
        for f in (function, compiled, compiled):
            given = [
                t.detach().clone().requires_grad_(t.is_floating_point() or t.is_complex())
                for t in inputs
            ]
            lamella.manual_seed(3)
            made = [t for t in tensors_of(f(*given)) if t.requires_grad]
            if not made:
                break
            into = [t for t in given if t.requires_grad]
            ones = [lamella.ones_like(t) for t in made]
            grads = lamella.autograd.grad(made, into, ones, allow_unused=True)
            results.append([*made, *grads])
        for got in results[1:]:
            close(got, results[0], 1e-8)


# ---- Functions -----------------------------------------------------------------------------------


def test_arguments_and_results():
    def function(x, pair, *, scale=1.0, flags=None):
        a, b = pair
        return {"sum": a + b * scale, "both": (x, [a * 2, None, "text"])}, flags

    compiled = lamella.compile(function)
    x, a, b = lamella.randn(2), lamella.randn(2, 3), lamella.randn(3)
    for scale in (1.0, 2.0, 1.0):
        got = compiled(x, (a, b), scale=scale, flags={"on": True})
        expected = function(x, (a, b), scale=scale, flags={"on": True})
        assert got[1] == {"on": True} and got[0]["both"][1][1:] == [None, "text"]
        assert got[0]["both"][0] is x
        close(tensors_of(got), tensors_of(expected))
    assert programs(compiled) == [2, 0]


def test_recompiles_and_says_why():
    compiled = lamella.compile(lambda x, n: x * n)
    x = lamella.ones(2, 3)
    calls = [(x, 2), (x, 3), (lamella.ones(3, 2), 3), (lamella.ones(2, 3).t(), 3), (x.double(), 3)]
    for call in calls:
        assert compiled(*call).shape == call[0].shape
    text = compiled.explanation()
    for words in [
        "has another dtype",
        "has shape [3, 2], had [2, 3]",
        "has strides [1, 3], had [2, 1]",
    ]:
        assert words in text, text
    assert programs(compiled) == [5, 0]
    for call in calls:
        compiled(*call)
    assert programs(compiled) == [5, 0]
    with lamella.no_grad():
        compiled(x.double(), 3)
    assert "as grad mode has changed" in compiled.explanation()


OFFSET = 1.0


def test_programs_are_bounded():
    def doubled(x, n):
        return x * 2 + n

    compiled = lamella.compile(doubled, dynamic=True)
    for size in range(64):
        compiled(lamella.ones(size + 1), 0)
    assert programs(compiled) == [64, 0]
    with pytest.warns(RuntimeWarning) as caught:
        close([compiled(lamella.ones(100), 0)], [2 * lamella.ones(100)])
        close([compiled(lamella.ones(101), 0)], [2 * lamella.ones(101)])
    text = (
        "test_programs_are_bounded.<locals>.doubled has 64 programs, so other calls run "
        "uncompiled: in this one argument 0 has shape [100], had [64]"
    )
    assert [str(one.message) for one in caught] == [f"compile: {text}"]
    assert programs(compiled) == [64, 1] and compiled.explanation().endswith(text)
    # The programs that are there stay.
    close([compiled(lamella.ones(3), 0)], [2 * lamella.ones(3)])

    whole = lamella.compile(doubled, fullgraph=True)
    for n in range(64):
        whole(lamella.ones(2), n)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="has 64 programs, so other calls run uncompiled"):
            whole(lamella.ones(2), 64)


def test_values_that_a_function_reads():
    global OFFSET
    weight = lamella.ones(3)

    def function(x):
        return x * weight + OFFSET

    compiled = lamella.compile(function)
    x = lamella.ones(3)
    assert compiled(x).tolist() == [2.0] * 3
    weight.mul_(2)  # written in place: read at each call
    assert compiled(x).tolist() == [3.0] * 3
    weight = lamella.full((3,), 5.0)
    assert compiled(x).tolist() == [6.0] * 3
    assert programs(compiled) == [1, 0]
    OFFSET = 2.0
    assert compiled(x).tolist() == [7.0] * 3
    assert programs(compiled) == [2, 0] and "'OFFSET' is 2.0, was 1.0" in compiled.explanation()
    OFFSET = 1.0


class Plain:
    def __init__(self):
        self.weights = {"w": lamella.ones(3)}
        self.scale = 2.0

    def __call__(self, x):
        return self.step(x)

    def step(self, x):
        return x * self.weights["w"] * self.scale


def test_attributes_of_objects():
    model = Plain()
    for compiled in (lamella.compile(model.step), lamella.compile(lambda m, x: m.step(x))):
        call = compiled if compiled._fn == model.step else lambda x: compiled(model, x)  # noqa: B023
        model.weights["w"], model.scale = lamella.ones(3), 2.0
        assert call(lamella.ones(3)).tolist() == [2.0] * 3
        model.weights["w"] = lamella.full((3,), 2.0)
        assert call(lamella.ones(3)).tolist() == [4.0] * 3
        assert programs(compiled) == [1, 0]
        model.scale = 3.0
        assert call(lamella.ones(3)).tolist() == [6.0] * 3
        assert programs(compiled) == [2, 0]


def test_writes_and_aliases():
    def function(x, y):
        x.add_(1)
        x[0] = 5
        y = y.relu()
        y.mul_(2)
        return x, x[1], y, x.t()

    compiled = lamella.compile(function)
    for _ in range(2):
        x, y = lamella.randn(3, 3), lamella.randn(2)
        mine, eager = x.clone(), x.clone()
        got, expected = compiled(mine, y), function(eager, y)
        close([mine, *got], [eager, *expected])
        assert got[0] is mine and got[1].data_ptr() == mine[1].data_ptr()
        got[1].fill_(7)
        assert mine[1].tolist() == [7.0] * 3
    assert programs(compiled) == [1, 0]

    # In the order of the writes, and with a gradient beside them.
    def reversed_order(x, y, w):
        y.add_(x)
        x.mul_(y)
        return (x * w).sum()

    compiled = lamella.compile(reversed_order)
    given = [lamella.randn(2), lamella.randn(2), lamella.randn(2).requires_grad_()]
    sets = [[t.detach().clone().requires_grad_(t.requires_grad) for t in given] for _ in range(2)]
    for f, tensors in zip((compiled, reversed_order), sets):
        f(*tensors).backward()
    close([*sets[0], sets[0][2].grad], [*sets[1], sets[1][2].grad])
    assert programs(compiled) == [1, 0]
    # One tensor in two places.
    x = lamella.ones(3, 3)
    both = lamella.compile(lambda a, b: a.add_(b.sum()))
    both(x, x)
    assert x[0, 0].item() == 10.0


def test_what_runs_as_it_is():
    @lamella.compile
    def branch(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    assert branch(lamella.ones(2)).tolist() == [2.0, 2.0]
    assert branch(-lamella.ones(2)).tolist() == [-2.0, -2.0]
    text = branch.explanation()
    assert "branch runs uncompiled: " in text and "test_compile.py:" in text
    whole = lamella.compile(lambda x: x[x > 0], fullgraph=True)
    with pytest.raises(RuntimeError, match="compile: expected a function that is one program"):
        whole(lamella.ones(2))
    # What the function raises, it raises.
    with pytest.raises(RuntimeError, match="mm|matmul|shape"):
        lamella.compile(lambda x: x @ lamella.ones(5, 5))(lamella.ones(2, 2))


def test_random_numbers():
    compiled = lamella.compile(lambda x: nn.functional.dropout(x, 0.5) + lamella.rand(4))
    for seed in (0, 1):
        lamella.manual_seed(seed)
        expected = compiled._fn(lamella.ones(4))
        lamella.manual_seed(seed)
        close([compiled(lamella.ones(4))], [expected])


def test_layers_around():
    function = lambda x, y: lamella.sin(x) * y  # noqa: E731
    compiled = lamella.compile(function)
    x, y = lamella.randn(3, 4), lamella.randn(3, 4)
    close([lamella.vmap(compiled)(x, y)], [function(x, y)])
    close([lamella.func.grad(lambda a: compiled(a, y).sum())(x)], [lamella.cos(x) * y])
    graph = lamella.trace(compiled, x, y, check=False)
    assert [node.op for node in graph.nodes] == ["aten::sin", "aten::mul.Tensor"]
    weight = lamella.randn(4, 4)
    product = lamella.compile(lambda x: x @ weight)
    with lamella.autocast("cpu"):
        assert product(x).dtype == lamella.bfloat16
    assert product(x).dtype == lamella.float32


def test_seeds_are_not_compiled():
    def function(x):
        lamella.manual_seed(4)
        return x + lamella.rand(2)

    compiled = lamella.compile(function)
    x = lamella.zeros(2)
    assert compiled(x).tolist() == compiled(x).tolist() == function(x).tolist()
    assert "it seeds the random numbers" in compiled.explanation()


def test_sizes_that_depend_on_elements():
    for function in (lamella.nonzero, lambda x: x[x > 0], lambda x: lamella.unique(x)):
        compiled = lamella.compile(function)
        for given in ([1.0, 0.0, 2.0], [0.0, 0.0, 1.0]):
            x = lamella.tensor(given)
            close(tensors_of(compiled(x)), tensors_of(function(x)))
        assert programs(compiled)[0] == 0, compiled.explanation()


# ---- Modules -------------------------------------------------------------------------------------


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.inner = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.more = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, ids):
        x = self.embedding(ids)
        q, k, v = self.inner(x).chunk(3, -1)
        split = lambda t: t.reshape(2, 5, 2, 4).transpose(1, 2)  # noqa: E731
        a = nn.functional.scaled_dot_product_attention(split(q), split(k), split(v))
        x = self.norm(x + self.out(a.transpose(1, 2).reshape(2, 5, 8)))
        return (x + self.more(x)).mean(1)


MODULES = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)),
        lambda: lamella.randn(6, 4),
    ),
    "conv": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, stride=2, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(16, 3),
        ),
        lambda: lamella.randn(2, 1, 12, 12),
    ),
    "encoder": (Encoder, lambda: lamella.randint(0, 11, (2, 5))),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_training(name):
    make, data = MODULES[name]
    lamella.manual_seed(0)
    mine = make()
    eager = copy.deepcopy(mine)
    compiled = lamella.compile(mine)
    optimizers = [lamella.optim.SGD(m.parameters(), lr=0.1) for m in (mine, eager)]
    for _ in range(3):
        given = data()
        for model, optimizer in zip((compiled, eager), optimizers):
            optimizer.zero_grad()
            (model(given) ** 2).sum().backward()
            optimizer.step()
        close(list(mine.state_dict().values()), list(eager.state_dict().values()), 1e-4)
    assert programs(compiled) == [1, 0], compiled.explanation()
    compiled.eval()
    eager.eval()
    with lamella.no_grad():
        close([compiled(given)], [eager(given)], 1e-4)


def test_steps_with_gradients_inside():
    def penalty(x):
        (slope,) = lamella.autograd.grad(lamella.sin(x).sum(), x)
        return (slope**2).sum()

    wanted = lamella.randn(3).requires_grad_()
    compiled = lamella.compile(penalty)
    close([compiled(wanted)], [penalty(wanted)])

    x, y = lamella.randn(6, 4), lamella.randn(6, 3)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    params = {name: p.detach().clone() for name, p in net.named_parameters()}

    def loss(params):
        return ((lamella.func.functional_call(net, params, (x,)) - y) ** 2).mean()

    def step(params):
        grads, value = lamella.func.grad_and_value(loss)(params)
        return {name: p - 0.1 * grads[name] for name, p in params.items()}, value

    compiled = lamella.compile(step)
    with lamella.no_grad():
        for _ in range(2):
            got, expected = compiled(params), step(params)
            close(tensors_of(list(got)), tensors_of(list(expected)))
            params = got[0]
    assert programs(compiled) == [1, 0], compiled.explanation()

    optimizer = lamella.optim.SGD(net.parameters(), lr=0.1)

    def classic():
        optimizer.zero_grad()
        value = ((net(x) - y) ** 2).mean()
        value.backward()
        optimizer.step()
        return value.detach()

    compiled = lamella.compile(classic)
    first = compiled().item()
    assert compiled().item() < first
    # One for parameters without gradients, one for those with.
    assert programs(compiled) == [2, 0], compiled.explanation()


def test_graphs_outlive_functions():
    import gc

    x = lamella.randn(3).requires_grad_()
    compiled = lamella.compile(lambda x: (x.sin(), x.detach() * 2, (x * x).sum()))
    for _ in range(2):
        sine, twice, square = compiled(x)
        assert sine.requires_grad and square.requires_grad and not twice.requires_grad
    del compiled
    gc.collect()
    (sine.sum() + square).backward()
    close([x.grad], [lamella.cos(x) + 2 * x])
    # Tensors that are kept for the gradient are checked.
    weight = lamella.ones(3)
    compiled = lamella.compile(lambda x, w: (x * w).sum())
    for _ in range(2):
        value = compiled(x, weight)
        weight.add_(1)
        with pytest.raises(RuntimeError, match="version"):
            value.backward()


def test_compiled_modules_among_modules():
    inner = nn.Linear(3, 3)
    compiled = lamella.compile(inner)
    assert isinstance(compiled, nn.Module) and isinstance(compiled, nn.Linear)
    outer = nn.Sequential(compiled, nn.ReLU())
    assert [name for name, _ in outer.named_parameters()] == ["0.weight", "0.bias"]
    assert list(outer.state_dict()) == ["0.weight", "0.bias"]
    x = lamella.randn(2, 3)
    close([outer(x)], [inner(x).relu()])
    assert programs(compiled) == [1, 0]
    outer.eval()
    assert not inner.training
    again = copy.deepcopy(compiled)
    again.weight.data.zero_()
    close([again(x)], [inner.bias.expand(2, 3)])
    close([compiled(x)], [inner(x)])
    whole = lamella.compile(outer)
    close([whole(x)], [outer(x)])


def test_threads():
    net = nn.Linear(3, 3)
    compiled = lamella.compile(net)
    data = [lamella.randn(n, 3) for n in (1, 2, 3, 4)]
    expected = [net(x) for x in data]
    results = {}

    def work(i):
        for _ in range(20):
            results[i] = compiled(data[i])

    in_threads(work, over=range(4))
    close([results[i] for i in range(4)], expected)
    assert programs(compiled) == [4, 0], compiled.explanation()


def test_tensors_are_let_go():
    import weakref

    net = nn.Linear(3, 3)
    compiled = lamella.compile(net)
    x = lamella.randn(2, 3)
    compiled(x)
    seen = [weakref.ref(x), weakref.ref(net.weight)]
    net.weight = nn.Parameter(lamella.ones(3, 3))
    del x
    compiled(lamella.randn(2, 3))
    import gc

    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_methods_and_partial():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        @lamella.compile
        def forward(self, x):
            return x * self.factor

    model = Scaled()
    assert model(lamella.ones(2)).tolist() == [2.0, 2.0]
    model.factor = 3.0
    assert model(lamella.ones(2)).tolist() == [3.0, 3.0]
    import functools

    partial = lamella.compile(functools.partial(lamella.add, alpha=2))
    assert partial(lamella.ones(2), lamella.ones(2)).tolist() == [3.0, 3.0]
