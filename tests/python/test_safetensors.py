"""Files of the safetensors format: against the package of that name, and broken ones."""

import json
import os
import struct

import pytest

import lamella
import lamella.compat.serialization

SOME = {
    "float32": lamella.randn(3, 4),
    "float64": lamella.tensor(3.5, dtype=lamella.float64),
    "bfloat16": lamella.tensor([1.0, -2.5, 3e38], dtype=lamella.bfloat16),
    "float16": lamella.ones(3, dtype=lamella.float16),
    "int64": lamella.arange(5),
    "int8": lamella.tensor([[-1, 2]], dtype=lamella.int8),
    "uint8": lamella.tensor([255], dtype=lamella.uint8),
    "bool": lamella.tensor([True, False, True]),
    "complex64": lamella.tensor([1 + 2j]),
    "a conjugate": lamella.tensor([1 + 2j, 3 - 4j]).conj(),
    "negative": lamella.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "empty": lamella.empty(0, 2),
    "a view": lamella.arange(12).reshape(3, 4).t()[1:],
    "größe.1": lamella.ones(1),
}


def same(found, expected):
    assert list(found) == list(expected) or set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].tolist() == tensor.tolist(), name
        assert str(found[name].dtype).split(".")[1] == str(tensor.dtype).split(".")[1], name
        assert tuple(found[name].shape) == tuple(tensor.shape), name


def test_round_trip(tmp_path):
    path = tmp_path / "some.safetensors"
    lamella.save_file(SOME, path)
    found = lamella.load_file(path)
    same(found, SOME)
    assert os.listdir(tmp_path) == ["some.safetensors"]
    # Writes stay in memory.
    found["int64"].add_(1)
    same(lamella.load_file(path), SOME)


def test_the_package_reads_what_is_written(tmp_path):
    torch = pytest.importorskip("safetensors.torch")
    path = str(tmp_path / "some")
    lamella.save_file(SOME, path, {"format": "pt"})
    same(torch.load_file(path), SOME)
    with torch.safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_what_the_package_writes_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    path = str(tmp_path / "some")
    tensors = {
        "b": torch.randn(3, 3),
        "a": torch.tensor([1, 2], dtype=torch.int16),
        "c": torch.ones(2, dtype=torch.bfloat16),
        "d": torch.tensor(True),
        "e": torch.zeros(0),
    }
    package.save_file(tensors, path, {"one": "two"})
    same(lamella.load_file(path), tensors)
    same(lamella.load(path), tensors)


def test_numbers_that_stand_at_odd_places(tmp_path):
    header = json.dumps({"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}).encode()
    header += b" " * (1 - len(header) % 8)
    path = tmp_path / "odd"
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2d", 1.5, 2.5))
    assert lamella.load_file(path)["x"].tolist() == [1.5, 2.5]


def test_nests(tmp_path):
    path = tmp_path / "nest"
    nest = {
        "state": {0: {"step": lamella.tensor(1.0), "mean": lamella.ones(2)}, 1: {}},
        "groups": [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0, 1], "flag": None, "on": True}],
        "name": "x",
        "a/b": lamella.zeros(1),
        "a": {"b": lamella.ones(1)},
    }
    lamella.save(nest, path)
    found = lamella.load(path)
    assert repr(found) == repr(nest)
    lamella.save({"w": lamella.ones(2)}, path)
    assert list(lamella.load_file(path)) == ["w"]
    lamella.save(lamella.ones(2), path)
    assert lamella.load(path).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError) as error:
        lamella.save({"a": [object()]}, path)
    assert str(error.value) == (
        "save: expected tensors, numbers, text, lists, tuples and dicts, got object at 'a/0'"
    )


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(TypeError) as error:
        lamella.save_file({"a": 1}, path)
    assert str(error.value) == "save_file: expected 'a' to be a Tensor, got int"
    with pytest.raises(TypeError) as error:
        lamella.save_file({"a": lamella.ones(1, dtype=lamella.complex128)}, path)
    assert str(error.value) == (
        "save_file: expected 'a' to have a dtype of the format, got lamella.complex128"
    )
    assert os.listdir(tmp_path) == []


GOOD = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
BROKEN = [
    (b"", "expected a header, got 0 bytes"),
    (struct.pack("<Q", 1 << 60), f"expected a header within 8 bytes, got one of {1 << 60} bytes"),
    ((b"[]", 0), "expected a header of JSON with names, got list"),
    ((b"{", 0), "expected a header of JSON, got Expecting property name"),
    ((b'{"a":1,"a":2}', 0), "expected a header of JSON, got a name stands twice"),
    ((b"\xff", 0), "expected a header of JSON, got 'utf-8' codec can't decode"),
    ((b"[" * 100000, 0), "expected a header of JSON, got "),
    ((GOOD, 7), "expected a file of "),
    ((GOOD, 9), "expected a file of "),
    (({"x": 5}, 0), "expected two numbers as the place of 'x', got None"),
    (({"x": {**GOOD["x"], "dtype": "F5"}}, 8), "expected a known dtype of 'x', got 'F5'"),
    (({"x": {**GOOD["x"], "dtype": []}}, 8), "expected a known dtype of 'x', got []"),
    (({"x": {**GOOD["x"], "shape": [-2]}}, 8), "expected a shape of 'x', got [-2]"),
    (({"x": {**GOOD["x"], "shape": [3]}}, 8), "expected 12 bytes for 'x', got 8"),
    (({"x": {**GOOD["x"], "shape": [1 << 62, 4]}}, 8), f"expected {1 << 66} bytes for 'x', got 8"),
    (
        ({"x": {"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]}}, 0),
        f"expected a shape of 'x' whose bytes fit int64, got [0, {1 << 62}]",
    ),
    (({"x": {**GOOD["x"], "data_offsets": [4, 12]}}, 12), "expected 'x' at byte 0, got 4"),
    (({**GOOD, "y": GOOD["x"]}, 8), "expected 'y' at byte 8, got 0"),
    (({"__metadata__": {"a": 1}}, 0), "expected '__metadata__' to be text by text, got dict"),
]


@pytest.mark.parametrize("content, message", BROKEN)
def test_broken_files(tmp_path, content, message):
    path = tmp_path / "broken"
    if isinstance(content, tuple):
        header, count = content
        header = header if isinstance(header, bytes) else json.dumps(header).encode()
        content = struct.pack("<Q", len(header)) + header + bytes(count)
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        lamella.load_file(path)
    assert str(error.value).startswith(f"load_file: {message}")
    assert str(error.value).endswith(f", in {path}")


def test_a_file_that_is_truncated_later(tmp_path):
    path = tmp_path / "some.safetensors"
    lamella.save_file({"x": lamella.arange(100_000)}, path)
    x = lamella.load_file(path)["x"]
    os.truncate(path, 0)
    assert x.sum().item() == sum(range(100_000))


def test_a_file_that_is_truncated_meanwhile():
    import io

    from lamella import _safetensors

    file = io.BytesIO(b"12345")
    with pytest.raises(ValueError) as error:
        _safetensors._fill(file, "some", memoryview(bytearray(8)))
    assert str(error.value) == "load_file: expected 8 bytes at byte 5, got 5, in some"
    file.seek(0)
    memory = bytearray(5)
    _safetensors._fill(file, "some", memoryview(memory))
    assert memory == b"12345"


def test_archives_of_pytorch(tmp_path):
    path = tmp_path / "weights.pt"
    lamella.compat.serialization.save({"w": lamella.ones(2)}, path)
    assert lamella.load(path)["w"].tolist() == [1, 1]
    with pytest.raises(ValueError) as error:
        lamella.load_file(path)
    assert str(error.value) == (
        "load_file: expected a file of the safetensors format, got an archive as torch.save() "
        f"writes it, which lamella.compat.serialization.load() reads, in {path}"
    )
    path.write_bytes(b"x" * 20)
    with pytest.raises(ValueError, match="^load: expected a header within 20 bytes, got one of"):
        lamella.load(path)


def test_a_header_as_long_as_the_bytes_of_a_pickle(tmp_path):
    """640 is 0x0280, and pickles begin with the bytes 80 02."""
    path = tmp_path / "some.safetensors"
    for length in (640, 640 + 65536):
        lamella.save_file({"x": lamella.ones(1)}, path, {"fill": "a" * (length - 100)})
        fill = "a" * (length - 100 + length - int.from_bytes(path.read_bytes()[:8], "little"))
        lamella.save_file({"x": lamella.ones(1)}, path, {"fill": fill})
        assert path.read_bytes().startswith(b"\x80\x02")
        assert lamella.load_file(path)["x"].tolist() == [1.0]
        assert lamella.load(path)["x"].tolist() == [1.0]
        assert lamella.compat.serialization.load(path)["x"].tolist() == [1.0]


def test_errors_name_what_was_called(tmp_path):
    lost = tmp_path / "nowhere" / "x"
    graph = lamella.trace(lambda x: x + 1, lamella.ones(2))
    for save in (lambda: lamella.save({"a": lamella.ones(2)}, lost), lambda: graph.save(lost)):
        with pytest.raises(FileNotFoundError) as error:
            save()
        assert str(error.value) == f"[Errno 2] No such file or directory: '{lost}'"
    with pytest.raises(TypeError) as error:
        lamella.save({"a": lamella.ones(2, dtype=lamella.complex32)}, tmp_path / "x")
    assert str(error.value) == (
        "save: expected 'a' to have a dtype of the format, got lamella.complex32"
    )
    assert list(tmp_path.iterdir()) == []
