"""Files of weights pass between Python and C++, in both formats; broken ones are refused."""

import ast

import pytest
from test_same_source import library, run

import lamella

torch = pytest.importorskip("torch")


def bits(tensors):
    return {
        name: (str(t.dtype).split(".")[1], list(t.shape), t.tolist()) for name, t in tensors.items()
    }


def test_weights_pass_between_python_and_cpp(tmp_path):
    """Each side reads the files of the other by their first bytes, and what C++ writes is byte for
    byte what Python writes."""
    package = pytest.importorskip("safetensors.torch")
    made = library("weights", "lamella")
    archive, file, own = (str(tmp_path / name) for name in ("net.pt", "net.safetensors", "own"))
    names = [
        "0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias",
        "1.running_mean", "1.running_var", "1.num_batches_tracked",
    ]  # fmt: skip

    def call(what):
        printed = run(made, "lamella", f"print(torch.ops.compat_weights.{what})")
        return printed.strip()

    def values(text):
        return ast.literal_eval(text)

    flat = values(call(f"write_both({archive!r}, {file!r}).tolist()"))
    for path in (archive, file):
        state = lamella.load(path)
        assert sorted(state) == sorted(names)
        assert [v for n in names for v in state[n].flatten().tolist()] == flat
        assert values(call(f"read_net({path!r}).tolist()")) == flat
    net = lamella.nn.Sequential(
        lamella.nn.Linear(2, 3), lamella.nn.BatchNorm1d(3), lamella.nn.Linear(3, 1)
    )
    net.load_state_dict(lamella.load(archive))
    assert bits(package.load_file(file)) == bits(lamella.load_file(file))

    # From Python to C++: the state of a module, a list, a tensor, and any file.
    lamella.save(net.state_dict(), own)
    assert values(call(f"read_net({own!r}).tolist()")) == flat
    lamella.save([lamella.arange(3), lamella.ones(1, dtype=lamella.bfloat16)], own)
    assert values(call(f"read_list({own!r})[1].tolist()")) == [1.0]
    lamella.save(lamella.ones(2, dtype=lamella.float16), own)
    assert values(call(f"read_tensor({own!r}).tolist()")) == [1.0, 1.0]
    tensors = {
        'größe "\\\n\x01😀': lamella.randn(3, 2),
        "b": lamella.arange(5),
        "a": lamella.tensor([True]),
        "empty": lamella.empty(0, 3),
        "c": lamella.tensor([1 + 2j]),
    }
    lamella.save_file(tensors, own, {"by": 'C++ "\n\x01'})
    call(f"copy({own!r}, {file!r})")
    assert open(file, "rb").read() == open(own, "rb").read()
    package.save_file({"x": torch.arange(3)}, own, {"format": "pt"})
    call(f"copy({own!r}, {file!r})")
    assert package.load_file(file)["x"].tolist() == [0, 1, 2]


GOOD = '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
BROKEN_WEIGHTS = [
    (b"\xff" * 7 + b"\x7f{", "a header within 9 bytes, got one of 9223372036854775807 bytes"),
    ("{]", "'\"' at byte 1 of the header, got ']'"),
    ('{"x', "JSON that is whole at byte 3 of the header, got its end"),
    ('{"x":5}', "'{' at byte 5 of the header, got '5'"),
    ('{"a":1}', "'{' at byte 5 of the header, got '1'"),
    ("{} x", "the end of the header at byte 3 of the header, got more"),
    ('{"\t":1}', "a text at byte 2 of the header, got a control character"),
    ('{"\\ud800":1}', "a character at byte 8 of the header, got half of one"),
    (b"\3\0\0\0\0\0\0\0{\xff}", "a header of UTF-8, got other bytes"),
    (b"\4\0\0\0\0\0\0\0{\xc0\x80}", "a header of UTF-8, got other bytes"),
    (GOOD.replace("F32", "F5"), "a known dtype of 'x', got 'F5'"),
    (GOOD.replace("F32", ""), "a known dtype of 'x', got ''"),
    (GOOD.replace("[2]", "[-2]"), "a count at byte 29 of the header, got '-'"),
    (GOOD.replace("[2]", "[02]"), "a count at byte 31 of the header, got '0'"),
    (GOOD.replace("[2]", "[3]"), "12 bytes for 'x', got 8"),
    (GOOD.replace("[2]", "[4611686018427387904,4]"), "a size of 'x' within int64, got 8"),
    (GOOD.replace("[2]", "[99999999999999999999]"), "a count within int64 at byte 47"),
    (GOOD.replace("0,8", "4,12"), "'x' at byte 0, got 4"),
    (GOOD.replace("0,8", "0"), "a dtype, a shape and two offsets of 'x', got others"),
    (GOOD.replace("shape", "share"), "'dtype', 'shape' or 'data_offsets' at byte 28"),
    (GOOD[:-1] + "," + GOOD[1:], "names that differ at byte 58 of the header, got 'x' twice"),
    (GOOD[:-1] + "," + GOOD[1:].replace("x", "y"), "'y' at byte 8, got 0"),
    (GOOD + " " * 9, "a file of 79 bytes, got 78"),
    ('{"' + "a." * 300 + GOOD[2:], "a name of at most 200 parts, got more"),
]


def test_broken_weights(tmp_path):
    made = library("weights", "lamella")
    contents = []
    for text, _ in BROKEN_WEIGHTS:
        if isinstance(text, str):
            missing = text.endswith(" " * 9)
            text = text.encode()
            text = len(text).to_bytes(8, "little") + text + bytes(7 if missing else 8)
        contents.append(text)
    code = f"""
    for number, content in enumerate({contents!r}):
        path = {str(tmp_path)!r} + "/" + str(number)
        open(path, "wb").write(content)
        try:
            torch.ops.compat_weights.read_net(path)
        except Exception as error:
            print(type(error).__name__, str(error).partition("load: expected ")[2])
        else:
            print("read")
    """
    lines = run(made, "lamella", code).splitlines()
    assert len(lines) == len(BROKEN_WEIGHTS)
    for line, (_, message) in zip(lines, BROKEN_WEIGHTS):
        kind, _, told = line.partition(" ")
        assert told.startswith(message), (message, told)
        assert kind == ("RuntimeError" if "parts" in message else "ValueError")
