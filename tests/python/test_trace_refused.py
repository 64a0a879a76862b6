"""lamella.trace: constructs that a graph cannot hold are refused or noticed."""

import warnings

import numpy as np
import pytest
from in_threads import in_threads
from test_trace import f, same

import lamella

torch = pytest.importorskip("torch")


@pytest.fixture
def x():
    lamella.manual_seed(1)
    return lamella.randn(2, 3)


def reads(body, x, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lamella.trace(body, x, check=False, **options)
    return caught


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("bool()", lambda x: x * 2 if x.sum() > 0 else x),
        ("int()", lambda x: x * int(x.sum())),
        ("float()", lambda x: x * float(x.sum())),
        ("item()", lambda x: x * x.sum().item()),
        ("tolist()", lambda x: x * x.sum(0).tolist()[0]),
        ("numpy()", lambda x: x * np.asarray(x).sum()),
        ("data_ptr()", lambda x: (x.data_ptr(), x * 2)[1]),
        ("item()", lambda x: x[x.argmax() // 3]),
    ],
)
def test_numbers_that_come_out_are_noticed(x, what, body):
    (warning,) = reads(body, x)
    assert warning.category is lamella.TracerWarning
    assert str(warning.message) == (
        f"trace: {what} reads a tensor; its value becomes a constant of the graph"
    )
    assert warning.filename == __file__
    assert warning.lineno == body.__code__.co_firstlineno
    with pytest.raises(RuntimeError) as error:
        lamella.trace(body, x, strict=True)
    assert str(error.value).startswith(
        f"trace: expected no element of a traced tensor to be read, got {what} at "
        "test_trace_refused.py:"
    )


def test_once_for_a_line_and_not_for_constants(x):
    constant = lamella.tensor(2.0)

    def g(x):
        for _ in range(5):
            if x.sum() > 0:
                x = x * 2
        return x * constant.item()

    assert len(reads(g, x)) == 1


def test_printing_is_no_read(x, capsys):
    def g(x):
        print(x)
        return x + 1

    assert not reads(g, x)
    assert capsys.readouterr().out
    assert len(lamella.trace(g, x)) == 1


def test_other_operators_each_time(x):
    calls = []

    def g(x):
        calls.append(1)
        return x * len(calls)

    with pytest.raises(RuntimeError) as error:
        lamella.trace(g, x)
    place = f"test_trace_refused.py:{g.__code__.co_firstlineno + 2}"
    assert str(error.value) == (
        "trace: expected fn to call the same operators each time, got another graph in a second "
        f"run: node 0 is\n  %1: float32[2, 3] = aten::mul.Scalar(%0, 1)  # {place}\nand\n"
        f"  %1: float32[2, 3] = aten::mul.Scalar(%0, 2)  # {place}"
    )


def test_control_flow_is_found_by_the_check(x):
    def g(x):
        return x * 2 if x[0, 0] > x[1, 2] else x - 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="expected fn to call the same operators each time"):
            lamella.trace(g, x)


def test_numbers_in_the_graph_are_found_by_the_check(x):
    def g(x):
        return x * lamella.from_numpy(np.asarray(x.detach()).copy())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError) as error:
            lamella.trace(g, x)
    assert str(error.value).startswith(
        "trace: expected the graph to give what fn gives, got another output 0: values differ by up"
    )


def test_given_inputs_for_the_check(x):
    def g(x):
        return x * 2 if bool((x > 0).all()) else x - 1

    inputs = [(lamella.ones(2, 3),), (lamella.full((2, 3), 7.0),)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lamella.trace(g, lamella.full((2, 3), 3.0), check_inputs=inputs)
        with pytest.raises(RuntimeError, match="the same operators"):
            lamella.trace(g, lamella.ones(2, 3), check_inputs=[*inputs, (-lamella.ones(2, 3),)])


def test_lost_gradients_are_noticed(x):
    class Square(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    with pytest.warns(lamella.TracerWarning) as caught:
        lamella.trace(Square.apply, x.clone().requires_grad_())
    assert str(caught[0].message) == (
        "trace: output 0 of fn requires gradients and the graph's does not: a graph cannot record "
        "a Function written in Python"
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda x: object(), "object"),
        (lambda x: {"a": [x, np.ones(2)]}, "ndarray at ['a'][1]"),
        (lambda x: (x, {1, 2}), "set at [1]"),
    ],
)
def test_results_that_are_no_nests(x, result, text):
    with pytest.raises(TypeError) as error:
        lamella.trace(result, x)
    assert str(error.value) == (
        "trace: expected fn to return tensors, numbers, text, lists, tuples and dictionaries, "
        f"got {text}"
    )


def test_a_trace_inside_another(x):
    with pytest.raises(RuntimeError) as error:
        lamella.trace(lambda x: lamella.trace(lambda y: y + 1, x)(x), x)
    assert str(error.value) == (
        "trace: expected no other trace to be running on this thread, got one inside another"
    )
    assert len(lamella.trace(lambda x: x + 1, x)) == 1


def test_a_graph_inside_a_trace(x):
    inner = lamella.trace(f, x, x + 1)
    outer = lamella.trace(lambda x: inner(x, x).exp(), x)
    assert list(outer.operators()) == [
        "aten::add.Tensor",
        "aten::relu",
        "aten::mul.Scalar",
        "aten::exp",
    ]
    same(outer(x), f(x, x).exp())


def test_errors_leave_the_thread_clean(x):
    def g(x):
        raise KeyError("here")

    with pytest.raises(KeyError):
        lamella.trace(g, x)
    graph = lamella.trace(f, x, x + 1)
    assert len(graph) == 3


def test_an_error_that_is_caught(x):
    def g(x):
        try:
            x.reshape(7)
        except RuntimeError:
            pass
        return x + 1

    graph = lamella.trace(g, x)
    assert len(graph) == 1


def test_threads_trace_for_themselves():
    graphs = {}

    def work(n):
        def g(x):
            for _ in range(n):
                x = x + n
            return x

        graphs[n] = [lamella.trace(g, lamella.ones(3)) for _ in range(5)]

    in_threads(work, over=range(1, 5))
    for n, made in graphs.items():
        assert [len(graph) for graph in made] == [n] * 5
        assert bool((made[0](lamella.ones(3)) == 1 + n * n).all())


def test_large_tensors_without_the_gil():
    def g(x):
        return (x @ x).sum()

    x = lamella.ones(300, 300)
    graph = lamella.trace(g, x)
    assert graph.nodes[0].file == __file__
    same(graph(x), g(x))


def test_failing_nodes_are_named(x):
    graph = lamella.trace(lambda x, i: x.index_select(0, i), x, lamella.tensor([0, 1]))
    with pytest.raises(IndexError) as error:
        graph(x, lamella.tensor([0, 9]))
    assert str(error.value).endswith(
        f"(node 0 of the graph: aten::index_select, recorded at test_trace_refused.py:"
        f"{test_failing_nodes_are_named.__code__.co_firstlineno + 1})"
    )


def test_not_callable():
    with pytest.raises(TypeError):
        lamella.trace(3)
