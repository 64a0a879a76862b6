"""Graphs in files."""

import json
import zipfile

import pytest

import lamella
from lamella import nn


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def round_trip(graph, path):
    graph.save(path)
    loaded = lamella.Graph.load(path)
    assert loaded.difference(graph) == ""
    assert str(loaded) == str(graph)
    return loaded


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.lamella"


@pytest.fixture
def library():
    made = []

    def define(schema, kernel):
        for old in made:
            old.close()
        made.append(lamella.library.Library("filed", "DEF"))
        made[-1].define(schema)
        made[-1].impl(schema.partition("(")[0], kernel, "CPU")
        return made[-1]

    yield define
    made[-1].close()


def test_a_model(path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    x = lamella.randn(5, 3)
    graph = lamella.trace(model, x)
    loaded = round_trip(graph, path)
    same(loaded(x), model(x))
    assert list(loaded.parameters) == list(graph.parameters)
    # Its own tensors, which are trained as the graph's are.
    weight = loaded.parameters["0.weight"]
    assert weight.requires_grad and weight is not model[0].weight
    loaded(x).sum().backward()
    model(x).sum().backward()
    same(weight.grad, model[0].weight.grad)


def test_it_is_readable(path):
    graph = lamella.trace(lambda x: x.add(1, alpha=2).to(lamella.float64), lamella.ones(2))
    graph.save(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["graph.json", "tensors.safetensors"]
        document = json.loads(archive.read("graph.json"))
    assert document["format"] == "lamella.graph" and document["version"] == 1
    assert document["operators"]["aten::add.Scalar"].startswith("aten::add.Scalar(Tensor self, ")
    assert document["nodes"][0]["op"] == "aten::add.Scalar"
    assert document["nodes"][1]["args"][1] == {"dtype": "float64"}
    assert document["nodes"][0]["args"][0] == {"%": 0}


def test_values_of_all_kinds(path):
    def f(x, z, flag=True, name="n", size=2.5):
        a = lamella.full((2,), float("inf"), dtype=lamella.float64, device="cpu")
        b = x.sum((0, 1), keepdim=True).contiguous(memory_format=lamella.contiguous_format)
        c = z * (1 + 2j) + lamella.tensor([1 + 1j, 2.0], dtype=lamella.complex128)
        d = lamella.clamp(x.double(), -float("inf"), 1e300)
        return {"a": a, 3: (b, c)}, [d, None, (1, 2.5, "x", lamella.float16)], x.max(0)

    x, z = lamella.randn(2, 2), lamella.randn(2, dtype=lamella.complex128)
    loaded = round_trip(lamella.trace(f, x, z, True, "n", 2.5), path)
    got, expected = loaded(x, z, True, "n", 2.5), f(x, z)
    same(got[0]["a"], expected[0]["a"])
    same(got[0][3][1], expected[0][3][1])
    assert got[1][1:] == expected[1][1:]
    same(got[2].indices, expected[2].indices)


def test_layouts_in_memory(path):
    weight = lamella.randn(4, 3).t()
    loaded = round_trip(lamella.trace(lambda x: x @ weight, lamella.ones(2, 3)), path)
    assert loaded.constants["constant0"].stride() == weight.stride()


def test_an_empty_graph(path):
    loaded = round_trip(lamella.trace(lambda x: (x, 3), lamella.ones(2)), path)
    assert len(loaded) == 0 and loaded(lamella.ones(2))[1] == 3


def test_grad_mode_and_writes_are_kept(path):
    norm = nn.BatchNorm1d(3)
    loaded = round_trip(lamella.trace(norm, lamella.randn(4, 3)), path)
    assert sorted(loaded.mutated) == ["num_batches_tracked", "running_mean", "running_var"]

    def f(x):
        with lamella.no_grad():
            return x * 2

    loaded = round_trip(lamella.trace(f, lamella.ones(2)), path)
    assert loaded.nodes[0].grad == "off"


def test_generators(path):
    generator = lamella.Generator()
    generator.manual_seed(7)
    state = generator.get_state()
    graph = lamella.trace(
        lambda x: x + lamella.rand(2, generator=generator), lamella.zeros(2), check=False
    )
    generator.set_state(state)
    graph.save(path)
    loaded = lamella.Graph.load(path)
    generator.set_state(state)
    expected = lamella.rand(2, generator=generator)
    same(loaded(lamella.zeros(2)), expected)


def test_an_operator_that_gained_an_argument(path, library):
    library("scale(Tensor x, float by) -> Tensor", lambda x, by: x * by)
    graph = lamella.trace(lambda x: lamella.ops.filed.scale(x, 3.0), lamella.ones(2))
    graph.save(path)
    library(
        "scale(Tensor x, float by, int plus=5, *, bool twice=True) -> Tensor",
        lambda x, by, plus, *, twice=True: x * by + plus,
    )
    loaded = lamella.Graph.load(path)
    same(loaded(lamella.ones(2)), lamella.full((2,), 8.0))
    assert str(loaded).splitlines()[1].partition("  #")[0].strip() == (
        "%1: float32[2] = filed::scale(%0, 3.0, 5, twice=True)"
    )


def test_operators_that_are_gone_or_changed(path, library):
    library("scale(Tensor x, float by) -> Tensor", lambda x, by: x * by)
    graph = lamella.trace(lambda x: lamella.ops.filed.scale(x, 3.0), lamella.ones(2))
    graph.save(path)
    library("scale(Tensor x, str by) -> Tensor", lambda x, by: x)
    with pytest.raises(RuntimeError) as error:
        lamella.Graph.load(path)
    first, second = str(error.value).splitlines()
    assert first == "load: expected operators as the graph was saved with, got:"
    assert second.startswith("  filed::scale: ")
    library("other(Tensor x) -> Tensor", lambda x: x + 1)
    with pytest.raises(RuntimeError) as error:
        lamella.Graph.load(path)
    assert str(error.value) == (
        "load: expected operators as the graph was saved with, got:\n"
        "  filed::scale: is not defined"
    )


def rewritten(path, change):
    """The file with its document changed."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("graph.json"))
        tensors = archive.read("tensors.safetensors")
    change(document)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("graph.json", json.dumps(document))
        archive.writestr("tensors.safetensors", tensors)


def set_in(*place):
    *where, key, value = place

    def change(document):
        for step in where:
            document = document[step]
        document[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_in("format", "x"), "expected the file of a graph, got another format"),
        (set_in("version", 99), "expected a graph of version 1, got 99"),
        (set_in("nodes", 0, "args", 0, {"%": 7}), "values to be defined once, before"),
        (set_in("nodes", 0, "args", 0, {"%": -1}), "expected the number of a value, got -1"),
        (set_in("nodes", 0, "args", 0, {"eval": "x"}), "expected a kind of value that is known"),
        (set_in("nodes", 0, "args", []), "expected a complete graph, got IndexError"),
        (set_in("nodes", 0, "makes", [9]), "expected values in the order they are made"),
        (set_in("outputs", [40]), "expected outputs to be values of the graph, got %40"),
        (set_in("values", 0, "dtype", "Tensor"), "expected a dtype, got 'Tensor'"),
        (set_in("values", 0, "shape", [-3]), "expected the shape of a tensor"),
        (set_in("values", 1, "shape", [5]), "expected float32[5] for 'constant0', got"),
        (set_in("results", {"call": "os.system"}), "expected a fixed value"),
        (set_in("places", None), "expected a complete graph, got TypeError"),
    ],
)
def test_files_that_are_wrong(path, change, text):
    constant = lamella.ones(2)
    lamella.trace(lambda x: x * constant, lamella.ones(2)).save(path)
    rewritten(path, change)
    with pytest.raises(ValueError) as error:
        lamella.Graph.load(path)
    assert text in str(error.value)


def test_files_that_are_no_archives(path):
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="load: expected the file of a graph, got"):
        lamella.Graph.load(path)
    with pytest.raises(FileNotFoundError):
        lamella.Graph.load(path.parent / "missing")


def test_what_cannot_be_saved(path):
    class Odd:
        pass

    graph = lamella.trace(lambda x, odd: x + 1, lamella.ones(2), Odd())
    with pytest.raises(TypeError) as error:
        graph.save(path)
    assert str(error.value) == ("save: expected arguments to be tensors, numbers and text, got Odd")
    assert not path.exists()


def repacked(path, change, compression=zipfile.ZIP_STORED):
    """The file with another text of graph.json."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["graph.json"] = change(parts["graph.json"])
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_hostile_files_are_refused(path):
    def refusal(change, compression=zipfile.ZIP_STORED):
        lamella.trace(lambda x: x + 1, lamella.ones(2)).save(path)
        repacked(path, change, compression)
        with pytest.raises(ValueError) as error:
            lamella.Graph.load(path)
        return str(error.value)

    # A small file does not become a large one.
    said = refusal(lambda data: data, zipfile.ZIP_DEFLATED)
    assert said == f"load: expected the file of a graph, got 'graph.json' compressed in {path}"
    said = refusal(lambda data: b"[" * 200_000)
    assert said.startswith("load: expected the file of a graph, got maximum recursion depth")
    said = refusal(lambda data: data.replace(b'"makes": [', b'"also_writes": [1e400], "makes": ['))
    assert said == "load: expected arguments of aten::add.Scalar in also_writes, got [inf]"
    said = refusal(lambda data: data.replace(b'"shape": [2]', b'"shape": [18446744073709551616]'))
    assert said == (
        f"load: expected a complete graph, got OverflowError int too big to convert in {path}"
    )
