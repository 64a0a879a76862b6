"""PyTorch's .pt files: reading and writing by both, and files that must be refused."""

import argparse
import collections
import io
import pathlib
import pickle
import re
import zipfile

import numpy as np
import pytest

import lamella
from lamella.compat import serialization, storage

torch = pytest.importorskip("torch")
from test_programs import PROGRAMS, printed_by_lamella, same  # noqa: E402
from torch_programs import printed_by_torch  # noqa: E402

PROGRAM = PROGRAMS / "pt_files.py"
Point = collections.namedtuple("Point", "x y")


def test_each_reads_what_the_other_wrote(tmp_path):
    for writer in (printed_by_torch, printed_by_lamella):
        path = tmp_path / f"{writer.__name__}.pt"
        writer(PROGRAM, "write", path, folder=tmp_path)
        theirs = printed_by_torch(PROGRAM, "read", path, folder=tmp_path)
        assert theirs.count("\n") == 40
        same(printed_by_lamella(PROGRAM, "read", path, folder=tmp_path), theirs)


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def rewritten(file, change):
    """A copy of an archive with its entries changed: change(name, bytes) gives bytes or None."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = change(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
    made.seek(0)
    return made


class Harmful:
    ran = False

    def __reduce__(self):
        return setattr, (Harmful, "ran", True)


class Vocabulary(dict):
    pass


class Settings:
    def __init__(self, rate):
        self.rate = rate


class Counting:
    total = 0

    def add(self, more):
        self.total += more
        return self.total


class CalledClass(Harmful):
    def __init__(self, *_):
        Harmful.ran = True

    def __reduce__(self):
        return CalledClass, (1,)


class CalledObject(Settings):
    def __call__(self, *_):
        Harmful.ran = True


class Takes(Settings):
    def __reduce__(self):
        return getattr, (self.rate, "__class__")


class CallsAnObject(Settings):
    def __reduce__(self):
        return CalledObject(1), (1,)


def test_objects_of_imported_classes_are_made_without_a_call():
    words = Vocabulary(a=1)
    words.size = 2
    value = {"rate": Settings(torch.ones(2)), "words": words, "once more": words}
    for zipped in (True, False):
        file = saved(value, _use_new_zipfile_serialization=zipped)
        with pytest.raises(pickle.UnpicklingError, match="expected a name of the allow-list"):
            serialization.load(file)
        file.seek(0)
        found = serialization.load(file, weights_only=False)
        assert type(found["rate"]) is Settings and found["rate"].rate.tolist() == [1, 1]
        assert type(found["words"]) is Vocabulary and found["words"] == {"a": 1}
        assert found["words"].size == 2 and found["once more"] is found["words"]
    words.show = Counting().add
    assert serialization.load(saved(words), weights_only=False).show(2) == 2
    with pytest.raises(pickle.UnpicklingError) as told:
        serialization.load(saved(Takes(Settings(1))), weights_only=False)
    assert str(told.value) == (
        "load: expected '__class__' to be a method of the object, got getset_descriptor"
    )
    for value, name in ((CalledClass(), "CalledClass"), (CallsAnObject(1), "CalledObject")):
        Harmful.ran = False
        with pytest.raises(pickle.UnpicklingError) as told:
            serialization.load(saved(value), weights_only=False)
        assert str(told.value) == (
            f"load: expected the objects of '{name}' to be made without a call, got a call, in the "
            "file. If the file is to be trusted, torch.serialization.add_safe_globals([...]) "
            "allows it"
        )
        assert not Harmful.ran


def test_nothing_else_is_executed():
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError) as told:
            serialization.load(saved([Harmful()]), weights_only=weights_only)
        assert str(told.value) == (
            "load: expected a name of the allow-list, got '__builtin__.setattr', in the file; "
            "nothing of it was run. If the file is to be trusted, "
            "torch.serialization.add_safe_globals([...]) allows it"
        )
        assert not Harmful.ran
    for module, name in (
        ("os", "system"),
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch", "ops"),
        ("torch.serialization", "load"),
        ("collections", "OrderedDict.__init__"),
        ("lamella.compat.serialization", "load"),
    ):
        text = b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"."
        file = rewritten(
            saved(1), lambda entry, old, text=text: old if entry != "data.pkl" else text
        )
        with pytest.raises(pickle.UnpicklingError, match=re.escape(f"'{module}.{name}'")):
            serialization.load(file, weights_only=False)


def test_names_that_are_allowed_on_request():
    file = saved(
        {"args": argparse.Namespace(rate=0.5), "array": np.arange(3), "point": Point(1, 2)}
    )
    with pytest.raises(pickle.UnpicklingError, match="argparse.Namespace"):
        serialization.load(file)
    file.seek(0)
    found = serialization.load(file, weights_only=False)
    assert found["args"].rate == 0.5 and found["array"].tolist() == [0, 1, 2]
    assert found["point"] == Point(1, 2)
    file = saved([Point(3, 4)])
    with serialization.safe_globals([Point]):
        assert serialization.load(file) == [Point(3, 4)]
        assert serialization.get_safe_globals() == [Point]
    assert serialization.get_safe_globals() == []


def test_whole_modules(tmp_path):
    model = lamella.nn.Sequential(lamella.nn.Linear(2, 3), lamella.nn.ReLU())
    serialization.save(model, tmp_path / "model.pt")
    with pytest.raises(pickle.UnpicklingError, match="lamella.nn.modules"):
        serialization.load(tmp_path / "model.pt")
    again = serialization.load(tmp_path / "model.pt", weights_only=False)
    x = lamella.ones(4, 2)
    assert again(x).equal(model(x)) and list(again.state_dict()) == ["0.weight", "0.bias"]


def test_damaged_files():
    good = saved({"a": torch.ones(100)})
    data = good.getvalue()
    for size in (1, 40, len(data) // 2, len(data) - 10):
        with pytest.raises(RuntimeError, match="load: expected a file of torch.save"):
            serialization.load(io.BytesIO(data[:size]))
    for entry, change, text in (
        ("data/0", lambda old: old[:-4], "expected 400 bytes at 'data/0', got 396"),
        ("data/0", lambda old: None, "expected an entry 'data/0', got none"),
        ("data.pkl", lambda old: None, "expected one entry 'data.pkl', got 0"),
        ("byteorder", lambda old: b"big", "expected little-endian numbers, got 'big'"),
    ):
        file = rewritten(good, lambda name, old: change(old) if name == entry else old)  # noqa: B023
        with pytest.raises(RuntimeError) as told:
            serialization.load(file)
        assert str(told.value) == f"load: {text}, in the file"
    for size in range(0, 200, 7):  # a pickle cut anywhere, or with one byte changed
        for change in (lambda old: old[:size], lambda old: old[:size] + b"\xfe" + old[size + 1 :]):  # noqa: B023
            file = rewritten(
                good,
                lambda name, old: change(old) if name == "data.pkl" else old,  # noqa: B023
            )
            try:
                serialization.load(file)
            except (pickle.UnpicklingError, RuntimeError):
                continue
    flipped = bytearray(data)
    flipped[data.index(np.ones(100, np.float32).tobytes())] ^= 1
    with pytest.raises(RuntimeError, match="load: expected a readable entry 'data/0', got Bad CRC"):
        serialization.load(io.BytesIO(flipped))


def test_views_stay_inside_their_storage():
    file = rewritten(
        saved(torch.arange(3.0)),
        lambda name, old: old.replace(b"K\x03\x85", b"K\x09\x85") if name == "data.pkl" else old,
    )
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="storage"):
        serialization.load(file)


def test_refused_formats(tmp_path):
    with pytest.raises(RuntimeError) as told:
        serialization.load(io.BytesIO(pickle.dumps({"a": 1}, 2)))
    assert str(told.value) == (
        "load: expected a file of torch.save(), got another pickle, in the file"
    )
    with pytest.raises(TypeError, match="load: expected 'f' to be a path or a file, got int"):
        serialization.load(3)
    with pytest.raises(TypeError, match="save: expected 'f' to be a path or a file, got int"):
        serialization.save(1, 3)
    with pytest.raises(RuntimeError, match="expected tensors over one memory to have one dtype"):
        x = lamella.ones(2)
        serialization.save([x, x.view(lamella.int32)], tmp_path / "x.pt")
    assert list(tmp_path.iterdir()) == []


def test_files_from_before_1_6():
    base = torch.arange(12.0).view(3, 4)
    values = {
        "whole": base,
        "part": base[1:, ::2],
        "half": torch.ones(3, dtype=torch.bfloat16),
        "kept": torch.nn.Parameter(torch.ones(2)),
        "conj": torch.full((2,), 1 + 2j).conj(),
        "empty": torch.empty(0, 3),
        "other": (1, "text", None, collections.OrderedDict(a=2.5)),
    }
    ours = serialization.load(saved(values, _use_new_zipfile_serialization=False))
    written = io.BytesIO()
    serialization.save(ours, written, _use_new_zipfile_serialization=False)
    written.seek(0)
    theirs = torch.load(written)
    for name, value in values.items():
        if name == "other":
            assert ours[name] == theirs[name] == value
            continue
        for read in (ours[name], theirs[name]):
            assert str(read.dtype).split(".")[1] == str(value.dtype).split(".")[1]
            assert read.tolist() == value.tolist()
            assert read.requires_grad == value.requires_grad
            assert read.is_conj() == value.is_conj()
    assert ours["part"].untyped_storage() is ours["whole"].untyped_storage()
    assert theirs["part"].data_ptr() == theirs["whole"].data_ptr() + 16

    layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
    file = saved(layers, _use_new_zipfile_serialization=False)
    read = serialization.load(file, weights_only=False)
    x = torch.linspace(-1, 1, 6).view(2, 3)
    np.testing.assert_allclose(
        read(lamella.tensor(x.tolist())).detach().numpy(), layers(x).detach().numpy(), rtol=1e-6
    )
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="got 'torch.nn.modules.container.Sequential'"):
        serialization.load(file)

    storage = serialization.load(saved(base.storage(), _use_new_zipfile_serialization=False))
    assert storage.tolist() == base.flatten().tolist()


def test_damaged_files_from_before_1_6():
    good = saved({"x": torch.ones(100)}, _use_new_zipfile_serialization=False).getvalue()
    with pytest.raises(RuntimeError) as told:
        serialization.load(io.BytesIO(good[:-4]))
    assert str(told.value) == "load: expected 400 bytes, got fewer, in the file"
    with pytest.raises(RuntimeError, match="expected a file of torch.save.., got another pickle"):
        serialization.load(io.BytesIO(pickle.dumps(1, 2) * 5))
    for size in range(0, len(good) - 400, 5):  # cut anywhere, or with one byte changed
        for bad in (good[:size], good[:size] + b"\xfe" + good[size + 1 :]):
            try:
                serialization.load(io.BytesIO(bad))
            except (pickle.UnpicklingError, RuntimeError, EOFError):
                continue
    Harmful.ran = False
    with pytest.raises(pickle.UnpicklingError):
        serialization.load(saved([Harmful()], _use_new_zipfile_serialization=False))
    assert not Harmful.ran


def old_values(made):
    """Values that share memory, of several dtypes, in containers."""
    x = made.arange(6.0)
    kinds = [made.ones(2, dtype=getattr(made, name)) for name in ("float64", "bool", "uint16")]
    return {"x": x, "part": x[2:4], "turned": x.view(2, 3).t(), "kinds": kinds, "n": [1, "a"]}


def told_of(values):
    texts = [str(values[key].tolist()) for key in ("x", "part", "turned")]
    texts += [f"{each.dtype} {each.tolist()}".rpartition(".")[2] for each in values["kinds"]]
    values["x"][3] = 9
    return [*texts, str(values["part"].tolist()), values["turned"].stride(), values["n"]]


def test_files_without_an_archive():
    expected = told_of(old_values(torch))
    theirs = saved(old_values(torch), _use_new_zipfile_serialization=False)
    assert told_of(serialization.load(theirs)) == expected
    ours = io.BytesIO()
    serialization.save(old_values(lamella), ours, _use_new_zipfile_serialization=False)
    ours.seek(0)
    assert told_of(torch.load(ours)) == expected
    ours.seek(0)
    assert told_of(serialization.load(ours, map_location="cpu")) == expected
    ours.seek(0)
    assert serialization.load(ours, map_location="meta")["turned"].device.type == "meta"

    data = ours.getvalue()
    for size in (3, 30, len(data) // 2, len(data) - 50, len(data) - 3):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="load: expected"):
            serialization.load(io.BytesIO(data[:size]))
    for at in range(0, len(data), 5):
        broken = bytearray(data)
        broken[at] ^= 0x41
        try:
            serialization.load(io.BytesIO(broken))
        except (pickle.UnpicklingError, RuntimeError, MemoryError):
            continue
    harmful = saved(Harmful(), _use_new_zipfile_serialization=False)
    with pytest.raises(pickle.UnpicklingError, match="allow-list, got '.*setattr'"):
        serialization.load(harmful)
    assert not Harmful.ran


def test_storages_in_files():
    x = lamella.arange(4.0)
    for zipped in (True, False):
        file = io.BytesIO()
        compat_storage = storage.TypedStorage._over(x.untyped_storage(), x.dtype)
        serialization.save([x[1:], compat_storage], file, _use_new_zipfile_serialization=zipped)
        for load in (torch.load, serialization.load):
            file.seek(0)
            tensor, kept = load(file)
            assert kept.tolist() == [0, 1, 2, 3]
            kept[2] = 7
            assert tensor.tolist() == [1, 7, 3]
    theirs = saved(torch.arange(3).untyped_storage())
    assert serialization.load(theirs).tolist() == torch.arange(3).untyped_storage().tolist()


def test_locations():
    def placed(name, old):
        return old.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")

    file = rewritten(saved(torch.arange(3.0)), placed)
    with pytest.raises(RuntimeError) as told:
        serialization.load(file)
    assert str(told.value) == (
        "load: expected a device for the storages of 'cuda:0', got none; map_location='cpu' puts "
        "them into memory, in the file"
    )
    for target in ("cpu", lamella.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage):
        file.seek(0)
        assert serialization.load(file, map_location=target).tolist() == [0, 1, 2]
    file.seek(0)
    assert serialization.load(file, map_location="meta").device.type == "meta"


def test_safetensors_and_places_in_files(tmp_path):
    lamella.save({"a": lamella.ones(2)}, tmp_path / "a.safetensors")
    assert serialization.load(tmp_path / "a.safetensors")["a"].tolist() == [1, 1]
    file = io.BytesIO()
    file.write(b"before")
    serialization.save(lamella.ones(3), file)
    file.seek(6)
    assert serialization.load(file).tolist() == [1, 1, 1]
    serialization.save(lamella.ones(3), tmp_path / "b.pt")
    with open(tmp_path / "b.pt", "rb") as opened:
        assert serialization.load(opened, mmap=True).tolist() == [1, 1, 1]
    with zipfile.ZipFile(tmp_path / "b.pt") as archive:
        assert archive.namelist()[0] == "b/data.pkl"
        assert archive.read("b/version") == b"3\n"
        place = archive.getinfo("b/data/0").header_offset
    raw = pathlib.Path(tmp_path / "b.pt").read_bytes()
    names, extra = (int.from_bytes(raw[place + i : place + i + 2], "little") for i in (26, 28))
    assert (place + 30 + names + extra) % 64 == 0
