"""Every row of the operator tables, traced: the graph gives the function's results, also for other
inputs and after saving and loading."""

import warnings

import pytest
from operator_rows import ROWS

import lamella

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402


def scaled(tensor):
    """Other values of the same signs and order."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor.detach().clone()
    return (tensor.detach() * 0.96875).requires_grad_(tensor.requires_grad)


def tensors_of(value):
    return op_db_mirror.tensors_in([value], lamella.Tensor)


def same(got, expected, values=True):
    got, expected = tensors_of(got), tensors_of(expected)
    assert len(got) == len(expected)
    for mine, plain in zip(got, expected):
        assert mine.dtype == plain.dtype and mine.shape == plain.shape
        assert mine.requires_grad == plain.requires_grad
        if not values or mine.device.type == "meta":
            continue
        a, b = mine.detach(), plain.detach()
        equal = (a == b) | ((a != a) & (b != b))
        assert bool(equal.all()), f"expected {plain}, got {mine}"


def check_row(function, args, kwargs, path, other_inputs=True, values=True):
    graph = lamella.trace(function, *args, kwargs=kwargs, check=other_inputs)
    graph.save(path)
    loaded = lamella.Graph.load(path)
    assert loaded.difference(graph) == ""
    assert str(loaded) == str(graph)

    def again(run, inputs):
        given, keywords = op_db_mirror.mapped((list(args), kwargs), inputs, lamella.Tensor)
        lamella.manual_seed(42)
        return run(*given, **keywords)

    for change in (lambda t: t.detach().clone().requires_grad_(t.requires_grad), scaled):
        if change is scaled and not other_inputs:
            continue
        same(again(graph, change), again(function, change), values)
        same(again(loaded, change), again(function, change), values)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row, tmp_path):
    for dtype in row.dtypes:
        function, inputs = row.call(dtype)
        check_row(function, inputs, {}, tmp_path / "graph")


def close(got, expected):
    assert len(got) == len(expected)
    for mine, plain in zip(got, expected):
        if mine is None or plain is None:
            assert mine is plain
            continue
        a, b = mine.detach(), plain.detach()
        assert a.shape == b.shape
        equal = (a == b) | ((a != a) & (b != b)) | ((a - b).abs() <= 1e-9 * (1 + b.abs()))
        assert bool(equal.all()), f"expected {plain}, got {mine}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_taken_apart(row):
    """With composite operators decomposed."""
    function, inputs = row.call(row.dtypes[0])
    graph = lamella.trace(function, *inputs, check=False, decompose=True)
    other = [scaled(t) for t in inputs]
    close(tensors_of(graph(*other)), tensors_of(function(*other)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gradients_of_rows(row):
    """The function and its backward in one graph."""
    function, inputs = row.call(row.dtypes[0])

    def gradients(*inputs):
        results = [t for t in tensors_of(function(*inputs)) if t.requires_grad]
        sums = [((t * t.conj()).real if t.is_complex() else t * t).sum() for t in results]
        return lamella.autograd.grad(sums, inputs, allow_unused=True)

    graph = lamella.trace(gradients, *inputs, check=False)
    other = [scaled(t) for t in inputs]
    close(graph(*other), gradients(*other))


@pytest.mark.parametrize("entry", op_db.PRESENT, ids=lambda entry: entry.name)
def test_entry(entry, tmp_path):
    function = entry.function()
    problem, ran = None, False
    for call in entry.calls():
        try:
            first, args, kwargs = op_db_mirror.to_lamella(call)
            lamella.manual_seed(42)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(first, *args, **kwargs)
        except Exception:  # what a sample needs and Lamella has not: test_op_db_gradients.py
            continue
        ran = True
        first, args, kwargs = op_db_mirror.to_lamella(call)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = tmp_path / "graph"
                check_row(function, [first, *args], kwargs, path, False, entry.has_values)
        except (Exception, AssertionError) as error:
            problem = problem or f"{type(error).__name__}: {error}"
    entry.hold("trace", problem)
    entry.require_compared("trace", ran)
