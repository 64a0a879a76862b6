"""lamella.trace: what is recorded, how it prints and runs; graphs as values."""

import functools

import pytest

import lamella
from lamella import nn

torch = pytest.importorskip("torch")


def lines(graph):
    """The listing without places."""
    return [line.partition("  # ")[0].strip() for line in str(graph).splitlines()]


def f(x, y):
    z = x + y
    return z.relu() * 2


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert bool(((a == b) | ((a != a) & (b != b))).all()), f"{a} and {b}"


@pytest.fixture
def x():
    lamella.manual_seed(1)
    return lamella.randn(2, 3)


def test_it_prints(x):
    graph = lamella.trace(f, x, x.clone())
    first = f.__code__.co_firstlineno
    assert str(graph) == (
        "graph(%0 x: float32[2, 3], %1 y: float32[2, 3]):\n"
        f"  %2: float32[2, 3] = aten::add.Tensor(%0, %1, alpha=1)  # test_trace.py:{first + 1}\n"
        f"  %3: float32[2, 3] = aten::relu(%2)  # test_trace.py:{first + 2}\n"
        f"  %4: float32[2, 3] = aten::mul.Scalar(%3, 2)  # test_trace.py:{first + 2}\n"
        "  return %4\n"
    )
    assert graph.code == str(graph)
    assert repr(graph) == "<lamella.Graph of 3 nodes>"
    assert len(graph) == 3
    assert graph.operators() == {"aten::add.Tensor": 1, "aten::relu": 1, "aten::mul.Scalar": 1}


def test_it_runs_on_other_inputs(x):
    graph = lamella.trace(f, x, x + 1)
    a, b = lamella.randn(2, 3), lamella.randn(2, 3)
    same(graph(a, b), f(a, b))


def test_nests_in_and_out(x):
    def g(pair, *, scale, flag):
        a, b = pair
        return {"sum": (a + b) * scale["s"], "rest": [a, (flag, None, 2.5)]}

    arguments = {"scale": {"s": lamella.tensor(3.0)}, "flag": True}
    graph = lamella.trace(g, (x, x + 1), kwargs=arguments)
    assert [v.name for v in graph.values if v.kind == "input"] == ["pair_0", "pair_1", "scale_s"]
    got = graph((x * 2, x), **arguments)
    same(got["sum"], g((x * 2, x), **arguments)["sum"])
    same(got["rest"][0], x * 2)
    assert got["rest"][1] == (True, None, 2.5)
    with pytest.raises(RuntimeError) as error:
        graph((x, x), scale={"s": lamella.tensor(3.0)}, flag=False)
    assert str(error.value) == "graph: expected arguments True, as traced, got False"
    with pytest.raises(RuntimeError) as error:
        graph(x, scale={"s": lamella.tensor(3.0)}, flag=True)
    assert str(error.value) == "graph: expected arguments (Tensor, Tensor), got Tensor"


def test_named_results(x):
    graph = lamella.trace(lambda x: x.max(0), x)
    values, indices = graph(x)
    same(values, x.max(0).values)
    same(indices, x.max(0).indices)
    assert type(graph(x)) is type(x.max(0))


def test_inputs_are_checked(x):
    graph = lamella.trace(f, x, x + 1)
    for bad, text in (
        (lamella.ones(3, 2), "float32[3, 2]"),
        (lamella.ones(2, 3, dtype=lamella.int64), "int64[2, 3]"),
        (lamella.ones(2, 3, device="meta"), "float32[2, 3] on meta"),
    ):
        with pytest.raises(RuntimeError) as error:
            graph(x, bad)
        assert str(error.value) == (
            f"graph: expected input 1 ('y') to be float32[2, 3], as recorded, got {text}"
        )


def test_one_tensor_given_twice(x):
    graph = lamella.trace(f, x, x)
    a, b = lamella.randn(2, 3), lamella.randn(2, 3)
    same(graph(a, b), f(a, b))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.register_buffer("scale", lamella.full((4,), 2.0))
        self.offset = lamella.ones(4)

    def forward(self, data):
        return self.inner(data) * self.scale + self.offset


def test_modules_have_names_for_their_tensors(x):
    model = Model()
    for traced in (model, model.forward, functools.partial(model)):
        graph = lamella.trace(traced, x)
        assert list(graph.parameters) == ["inner.weight", "inner.bias", "scale"]
        assert graph.parameters["inner.weight"] is model.inner.weight
        assert list(graph.constants) == ["constant0"]
        same(graph(x * 2), model(x * 2))
    assert lines(lamella.trace(model, x)) == [
        "graph(%0 data: float32[2, 3]):",
        '%1: float32[4, 3] = parameter "inner.weight"',
        '%2: float32[4] = parameter "inner.bias"',
        '%3: float32[4] = parameter "scale"',
        '%4: float32[4] = constant "constant0"',
        "%5: float32[2, 4] = aten::linear(%0, %1, %2)",
        "%6: float32[2, 4] = aten::mul.Tensor(%5, %3)",
        "%7: float32[2, 4] = aten::add.Tensor(%6, %4, alpha=1)",
        "return %7",
    ]


def test_gradients_flow_to_parameters(x):
    model = Model()
    graph = lamella.trace(model, x)
    model(x).sum().backward()
    expected = model.inner.weight.grad.clone()
    model.zero_grad()
    graph(x).sum().backward()
    same(model.inner.weight.grad, expected)


def test_state_that_is_written_is_named_and_left_alone(x):
    norm = nn.BatchNorm1d(3)
    before = {name: t.clone() for name, t in norm.named_buffers()}
    graph = lamella.trace(norm, lamella.randn(5, 3))
    assert sorted(graph.mutated) == ["num_batches_tracked", "running_mean", "running_var"]
    # Written once: by the trace itself.
    assert norm.num_batches_tracked.item() == before["num_batches_tracked"].item() + 1
    inputs = lamella.randn(5, 3)
    plain = nn.BatchNorm1d(3)
    plain.load_state_dict(norm.state_dict())
    same(graph(inputs), plain(inputs))
    same(norm.running_mean, plain.running_mean)


def test_backward_in_a_module(x):
    class Step(Model):
        def forward(self, data):
            loss = super().forward(data).sum()
            loss.backward()
            return self.inner.weight.grad

    step = Step()
    graph = lamella.trace(step, x)
    expected = step.inner.weight.grad.clone()
    same(graph(x), expected)
    same(step.inner.weight.grad, expected)


def test_the_meta_device():
    graph = lamella.trace(f, lamella.ones(2, 3, device="meta"), lamella.ones(3, device="meta"))
    assert lines(graph)[1] == "%2: float32[2, 3] on meta = aten::add.Tensor(%0, %1, alpha=1)"
    assert graph(lamella.ones(2, 3, device="meta"), lamella.ones(3, device="meta")).is_meta


def test_writes_to_inputs(x):
    def g(x, y):
        x[0].mul_(3)
        y += x
        return x.sum()

    graph = lamella.trace(g, x.clone(), x.clone())
    assert graph.mutated == ["x", "y"]
    a, b = x.clone(), x + 1
    c, d = x.clone(), x + 1
    same(graph(a, b), g(c, d))
    same(a, c)
    same(b, d)


def test_views_see_writes(x):
    def g(x):
        y = x.clone()
        v = y.t()
        y.add_(1)
        w = v * 2
        v[0] = 5
        return w, y, v

    graph = lamella.trace(g, x)
    for got, expected in zip(graph(x * 3), g(x * 3)):
        same(got, expected)


def test_tensors_made_of_numbers_are_new_each_time(x):
    def g(x):
        total = lamella.tensor([1.0, 2.0, 3.0])
        total += x[0]
        return total

    graph = lamella.trace(g, x)
    same(graph(x), g(x))
    same(graph(x), g(x))


def test_data_and_detach(x):
    def g(x):
        y = x * 2
        z = y.data
        return z + y.detach()

    a = x.clone().requires_grad_()
    graph = lamella.trace(g, a)
    same(graph(a).detach(), g(a))
    assert not graph(a).requires_grad


def test_grad_mode_is_recorded(x):
    def g(x):
        with lamella.no_grad():
            w = x * 2
        return x * w

    a = x.clone().requires_grad_()
    graph = lamella.trace(g, a)
    assert [n.grad for n in graph.nodes] == ["off", "inherit"]
    assert lines(graph)[1].endswith("under no_grad")
    graph(a).sum().backward()
    same(a.grad, (a * 2).detach())


def test_lists_of_tensors(x):
    def g(x):
        a, b = x.unbind(0)
        return lamella.cat([b, a, b]), lamella.stack([a, a])

    graph = lamella.trace(g, x)
    for got, expected in zip(graph(x * 2), g(x * 2)):
        same(got, expected)


def test_backward_inside(x):
    w = lamella.randn(3, 4)

    def step(x, w):
        w = w.detach().requires_grad_()
        loss = nn.functional.cross_entropy(x @ w, lamella.tensor([1, 3]))
        (grad,) = lamella.autograd.grad(loss, w)
        return w.detach() - 0.1 * grad

    graph = lamella.trace(step, x, w)
    a, b = lamella.randn(2, 3), lamella.randn(3, 4)
    expected = step(a, b)
    assert bool((graph(a, b) - expected).abs().max() < 1e-6)
    # Not a constant of the graph in place of what the parts of cross_entropy saved.
    assert len(graph.constants) <= 1


def test_functions_of_functions(x):
    def h(y):
        return (y.sin() * y).sum()

    t = lamella.ones(2, 3)
    for g in (
        lambda x: lamella.func.grad(h)(x),
        lambda x: lamella.func.jvp(h, (x,), (t,))[1],
        lambda x: lamella.func.vjp(h, x)[1](lamella.tensor(1.0))[0],
    ):
        graph = lamella.trace(g, x)
        a = lamella.randn(2, 3)
        same(graph(a), g(a))


def test_functions_under_vmap(x):
    w = lamella.randn(3)
    for g in (
        lambda x: lamella.vmap(lambda row: (row * w).sum().exp())(x),
        lambda x: lamella.vmap(lamella.func.grad(lambda row: (row * row * w).sum()))(x),
        lambda x: lamella.func.jacrev(lambda row: row.sin() * row)(x[0]),
        lambda x: lamella.func.hessian(lambda row: (row.sin() * row).sum())(x[0]),
    ):
        graph = lamella.trace(g, x)
        a = lamella.randn(2, 3)
        assert bool((graph(a) - g(a)).abs().max() < 1e-6)


def test_a_trace_under_vmap(x):
    with pytest.raises(RuntimeError) as error:
        lamella.vmap(lambda row: lamella.trace(lambda r: r + 1, row, check=False)(row))(x)
    assert str(error.value) == (
        "trace: expected input 'r' to be a plain tensor, got one that vmap batches; trace the "
        "function that calls vmap"
    )


def test_a_graph_under_vmap(x):
    graph = lamella.trace(lambda row: (row * row).sum(), x[0].clone())
    assert bool((lamella.vmap(lambda row: graph(row))(x) - (x * x).sum(1)).abs().max() < 1e-6)


def test_composites_may_be_taken_apart(x):
    def g(x):
        return x.flatten().reshape(3, 2)

    assert list(lamella.trace(g, x).operators()) == ["aten::flatten.using_ints", "aten::reshape"]
    parts = lamella.trace(g, x, decompose=True)
    assert list(parts.operators()) == ["aten::view"]
    same(parts(x), g(x))


def test_composites_stay_one_node_with_gradients(x):
    a = x.clone().requires_grad_()
    graph = lamella.trace(lambda x: x.flatten().reshape(3, 2).sum(), a)
    assert list(graph.operators()) == ["aten::flatten.using_ints", "aten::reshape", "aten::sum"]
    out = graph(a)
    assert out.requires_grad


def test_random_operators(x):
    graph = lamella.trace(lambda x: nn.functional.dropout(x) + lamella.rand(2, 3), x)
    before = lamella.get_rng_state()
    got = graph(x)
    lamella.set_rng_state(before)
    same(got, nn.functional.dropout(x) + lamella.rand(2, 3))


def test_checking_leaves_the_generator_alone(x):
    lamella.manual_seed(5)
    lamella.trace(lambda x: x + lamella.rand(2, 3), x)
    after = lamella.rand(1)
    lamella.manual_seed(5)
    lamella.rand(2, 3)
    same(lamella.rand(1), after)


def test_operators_of_others(x):
    with (
        lamella.library._scoped_library("traced", "DEF")
        if hasattr(lamella.library, "_scoped_library")
        else _closing(lamella.library.Library("traced", "DEF")) as library
    ):
        library.define("twice(Tensor x, *, float by=2.0) -> (Tensor, Tensor)")
        library.impl("twice", lambda x, *, by: (x * by, x + by), "CPU")
        graph = lamella.trace(lambda x: lamella.ops.traced.twice(x, by=3.0), x)
        assert lines(graph)[1] == (
            "%1: float32[2, 3], %2: float32[2, 3] = traced::twice(%0, by=3.0)"
        )
        same(graph(x * 2)[1], x * 2 + 3.0)


class _closing:
    def __init__(self, library):
        self.library = library

    def __enter__(self):
        return self.library

    def __exit__(self, *_):
        self.library.close()


def test_operators_of_others_with_gradients(x):
    with _closing(lamella.library.Library("graded", "DEF")) as library:
        library.define("cube(Tensor x) -> Tensor")
        library.impl("cube", lambda x: x * x * x, "CPU")
        saved = []

        def backward(ctx, grad):
            (square,) = ctx.saved_tensors
            return 3 * grad * square

        def setup(ctx, inputs, output):
            square = inputs[0] * inputs[0]
            saved.append(square)
            ctx.save_for_backward(square)

        lamella.library.register_autograd(
            "graded::cube", backward, setup_context=setup, lib=library
        )
        cube = lamella.ops.graded.cube
        a = x.clone().requires_grad_()
        graph = lamella.trace(lambda x: cube(x) + 1, a)
        assert list(graph.operators()) == ["graded::cube", "aten::add.Scalar"]
        (got,) = lamella.autograd.grad(graph(a).sum(), a)
        assert bool((got - 3 * x * x).abs().max() < 1e-5)

        def gradient(x):
            return lamella.autograd.grad(cube(x).sum(), x)[0]

        graph = lamella.trace(gradient, a)
        b = (x + 1).requires_grad_()
        assert bool((graph(b) - gradient(b)).abs().max() < 1e-5)


def test_matrix_trace_is_still_there():
    assert lamella.trace(lamella.eye(3)).item() == 3
    assert lamella.trace(input=lamella.eye(3)).item() == 3


# ---- Graphs --------------------------------------------------------------------------------------


def test_equality(x):
    one, two = lamella.trace(f, x, x + 1), lamella.trace(f, x * 2, x)
    assert one == two
    other = lamella.trace(lambda x, y: (x + y).relu() * 3, x, x + 1)
    assert one != other
    assert one.difference(other).startswith("node 2 is\n")
    assert one != lamella.trace(lambda x, y: [f(x, y)], x, x + 1)
    thrice, more = (lamella.trace(lambda x, k=k: x * k, x) for k in (3.0, 3.5))
    assert thrice != more and "3.5" in thrice.difference(more)


def test_dead_code(x):
    def g(x):
        x.exp().sin()
        y = x + 1
        z = y.clone()
        z.mul_(2)
        return y

    graph = lamella.trace(g, x)
    assert graph.eliminate_dead_code() == 4
    assert list(graph.operators()) == ["aten::add.Scalar"]
    same(graph(x), g(x))


def test_nodes_and_values(x):
    graph = lamella.trace(f, x, x + 1)
    node = graph.nodes[1]
    assert (node.op, node.uses, node.makes, node.writes) == ("aten::relu", (2,), (3,), ())
    assert node.file == __file__ and node.line == f.__code__.co_firstlineno + 2
    value = graph.values[3]
    assert (value.kind, value.dtype, value.shape, value.stride) == (
        "result",
        lamella.float32,
        (2, 3),
        (3, 1),
    )
    assert graph.inputs == [0, 1] and graph.outputs == [4]


def test_locations_may_be_left_out(x):
    graph = lamella.trace(f, x, x + 1, locations=False)
    assert "#" not in str(graph)
    assert graph == lamella.trace(f, x, x + 1)


def test_drawing(x, tmp_path):
    pytest.importorskip("lamella.hlo")
    graph = lamella.trace(Model(), x)
    page = graph.to_html()
    for text in ("data", "aten::linear", "aten::add.Tensor", "f32[2,4]"):
        assert text in page
    graph.save_html(tmp_path / "graph.html")
    assert (tmp_path / "graph.html").read_text() == page
    assert "<html" in lamella.trace(lambda x: x, x).to_html()
