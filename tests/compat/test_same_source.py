"""Sources written for PyTorch, built against Lamella and against PyTorch, behave the same."""

import ast
import fcntl
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

import pytest
from build_tree import BUILD, PREFIX, ROOT
from torch_programs import printed_by_torch

torch = pytest.importorskip("torch")

SOURCES = ROOT / "tests" / "compat" / "sources"
TEXT = {"capture_output": True, "text": True}


def flags(of):
    """The compiler and linker flags for Lamella, or for PyTorch."""
    if of == "lamella":
        include = [PREFIX / "include", PREFIX / "include" / "lamella_compat"]
        lib, names = PREFIX / "lib", ["lamella"]
    else:
        from torch.utils import cpp_extension

        include = cpp_extension.include_paths()
        lib, names = cpp_extension.library_paths()[0], ["c10", "torch_cpu", "torch"]
    link = [f"-L{lib}", f"-Wl,-rpath,{lib}", *(f"-l{name}" for name in names)]
    return [f"-I{path}" for path in include], link


def together():
    """One source for PyTorch, whose headers take most of the time: all includes, then the rest of
    each file in a namespace of its own. The last two have none, since one prints names of types,
    and the other opens namespaces of PyTorch. Sources of Lamella's own headers are left out."""
    texts = {path.stem: path.read_text() for path in sorted(SOURCES.glob("*.cpp"))}
    texts = {name: text for name, text in texts.items() if "#include <lamella/" not in text}
    last, include = ("modules", "computing"), re.compile(r"^#include <.*>$", re.MULTILINE)
    parts = [f"namespace {n}_source {{\n{t}}}\n" for n, t in texts.items() if n not in last]
    parts += [texts[name] for name in last]
    heads = dict.fromkeys(include.findall("".join(parts)))
    return "\n".join([*heads, *(include.sub("", part) for part in parts)])


def library(name, of):
    """The shared library of a source, which PyTorch has one of for all; built when it is older than
    the sources or the headers."""
    folder = BUILD / "same_source"
    folder.mkdir(exist_ok=True)
    if of == "torch":
        source = folder / "together.cpp"
        made = folder / f"together_{torch.__version__}.so"
        newest = max(path.stat().st_mtime for path in SOURCES.glob("*.cpp"))
    else:
        source, made = SOURCES / f"{name}.cpp", folder / f"{name}_lamella.so"
        headers = max(h.stat().st_mtime for h in (PREFIX / "include").rglob("*.h"))
        newest = max(source.stat().st_mtime, headers)
    with open(folder / f"{made.stem}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and made.stat().st_mtime > newest:
            return made
        if of == "torch":
            source.write_text(together())
        include, link = flags(of)
        command = ["c++", "-std=c++20", "-O0", "-w", "-fPIC", *include, "-shared", source]
        done = subprocess.run([*command, "-o", made, *link], **TEXT)
        assert done.returncode == 0, done.stderr[:4000]
    return made


def run(path, of, code):
    """The output of a program that has the library's operators, with Lamella or PyTorch as
    torch."""
    before = "import lamella as torch" if of == "lamella" else "import torch"
    code = f"{before}\ntorch.ops.load_library({str(path)!r})\n{textwrap.dedent(code)}"
    if of == "torch":
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text(code)
            return printed_by_torch(program, folder=folder)
    environment = dict(os.environ, PYTHONPATH=str(PREFIX / "lib" / "python"))
    done = subprocess.run([sys.executable, "-c", code], env=environment, **TEXT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_same(name, code, quoted=0.0):
    """Both print the same; numbers in quotes may differ by `quoted`."""
    ours = run(library(name, "lamella"), "lamella", code)
    theirs = run(library(name, "torch"), "torch", code)
    number = re.compile(r"'(-?[0-9.]+)'")
    assert ours and number.sub("", ours) == number.sub("", theirs)
    for one, other in zip(number.findall(ours), number.findall(theirs)):
        assert float(one) == pytest.approx(float(other), rel=0, abs=quoted), (one, other)


CLASSES = """
    import copy, pickle
    ns, ops = torch.classes.compat_classes, torch.ops.compat_classes
    counter = ns.Counter(5)
    print(counter.increment(), counter.increment(3), counter.increment(by=2), counter.current())
    print(counter.twice(), len(counter), ns.Counter.zero().current(), counter.half)
    counter.value = 40
    print(counter.value, counter.current(), counter._type())
    print(ops.total([counter, ns.Counter(2)]), ops.total([]))
    for other in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
        other.increment()
        print(other.current(), counter.current())
    stack = ns.Stack(["a", "b"])
    stack.push("c")
    twin = stack.clone()
    twin.merge(stack)
    print(stack.pop(), [twin.pop() for _ in range(6)])
    try:
        twin.pop()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    weight = torch.arange(6.0).reshape(2, 3)
    packed = ops.prepack(weight, torch.ones(2))
    print(ops.run(torch.ones(1, 3), packed).tolist(), packed.forward(torch.ones(1, 3)).tolist())
    plain = ns.Linear(weight, None)
    print(ops.run(torch.ones(3), plain).tolist(), plain.unpack()[1], plain.weight.tolist())
    print(copy.copy(packed).unpack()[1].tolist())
    print(str(ops.prepack.default._schema).partition("->")[2].split()[0].strip("()"))
"""


def test_classes():
    check_same("classes", CLASSES)


VALUES = """
    ns, ops = torch.classes.compat_values, torch.ops.compat_values
    for value in (None, 3, True, 2.5, "text", torch.ones(2), [1, 2], [True, False], [1.5],
                  ["a", "b"], [torch.ones(1)], (1, "a", None), {"a": 1, "b": 2}, {1: [2.5]},
                  [[1], [2, 3]], ns.Label("x"), ns.Other(), [ns.Label("y")],
                  (ns.Other(), [("z", 1)])):
        print(ops.described(value))
    print(ops.picked({"a": 5, "b": 7}, ["b", "a", "b"]).tolist())
    print(ops.swapped((1, "a")), ops.swapped([(2.5, None)][0]))
    for wrong in (lambda: ops.picked({"a": 5}, ["b"]), lambda: ops.picked([1], ["a"])):
        try:
            wrong()
        except (RuntimeError, IndexError, TypeError):
            print("refused")
"""


def test_values_of_any_type():
    check_same("values", VALUES)


SAVED_VALUES = """
    import io
    ops, files = torch.ops.compat_values, torch
    if torch.__name__ == "lamella":
        import lamella.compat.serialization as files
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    values = (None, 3, 2**62, True, 2.5, "text", x.t(), [1, 2], [True, False], [1.5], ["a", "b"],
              [x, x[0]], (1, "a", None), {"a": x, "b": torch.ones(0)}, {1: [2.5]}, [[1], [2, 3]],
              [(1, {"k": [x.bool()]})])
    def shown(value):
        if isinstance(value, torch.Tensor):
            return str(value.dtype).split(".")[-1], list(value.shape), value.tolist()
        if isinstance(value, dict):
            return {key: shown(entry) for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [shown(entry) for entry in value]
        return type(value).__name__, value
    def bytes_of(data):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)
"""


def test_saved_values(tmp_path):
    """Files that one side saves in C++ or Python: both read them in C++, and Python where it
    may."""
    write = """
        for i, value in enumerate(values):
            open(f"{FOLDER}/{SIDE}_c_{i}", "wb").write(bytes(ops.saved(value).tolist()))
            files.save(value, f"{FOLDER}/{SIDE}_python_{i}")
    """
    read = """
        for i, value in enumerate(values):
            for side in ("torch", "lamella"):
                for way in ("c", "python"):
                    data = open(f"{FOLDER}/{side}_{way}_{i}", "rb").read()
                    print(side, way, shown(ops.loaded(bytes_of(data))) == shown(value))
                    if "torch.jit._pickle" not in repr(data):
                        print(shown(files.load(io.BytesIO(data))) == shown(value))
    """
    for side in ("torch", "lamella"):
        names = f"\nFOLDER, SIDE = {str(tmp_path)!r}, {side!r}\n"
        code = textwrap.dedent(SAVED_VALUES) + names + textwrap.dedent(write)
        run(library("values", side), side, code)
    code = textwrap.dedent(SAVED_VALUES) + f"\nFOLDER = {str(tmp_path)!r}\n" + textwrap.dedent(read)
    for side in ("torch", "lamella"):
        printed = run(library("values", side), side, code)
        assert "True" in printed and "False" not in printed, (side, printed)


COMPUTING = """
    ops = torch.ops.compat_computing
    def show(*tensors):
        for t in tensors:
            values = t.flatten().tolist()
            print(t.dtype.__repr__().split(".")[1], list(t.shape), t.stride(),
                  [f"{v:.5g}" for v in values])
    x = torch.linspace(-3, 4, 40).reshape(5, 8)
    show(ops.swish(x), ops.swish(x.t()), ops.swish(x.double()[:, ::2]), ops.swish(x[0, 0]))
    out = torch.empty(5, 8)
    print(ops.swish.out(x, out=out) is out)
    show(out, ops.swish(torch.zeros(0, 3)))
    show(ops.scaled_difference(x, x[0], 2.0), ops.scaled_difference(torch.arange(4), x[:, :4], 1))
    show(ops.scaled_difference(torch.arange(3), torch.tensor(2), 3.0))
    show(ops.scaled_difference(torch.arange(3), torch.tensor(2.5), 3.0))
    show(ops.within(x, x.flip(1), 1.5), *ops.polar(x, x.flip(0)))
    y = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    print(ops.dot(y, y), ops.dot(y.permute(2, 0, 1), y.permute(2, 0, 1)), ops.dot(y, y[0, 0]))
    print([f"{v:.6g}" for v in ops.vectors(torch.linspace(-2, 5, 37))])
    for wrong in (lambda: ops.scaled_difference(x, x[:, :3], 1.0),
                  lambda: ops.swish.out(x, out=torch.empty(5, 8, dtype=torch.float64)),
                  lambda: ops.swish.out(x, out=x[0].expand(5, 8))):
        try:
            wrong()
        except RuntimeError:
            print("refused")
"""


def test_computing():
    check_same("computing", COMPUTING)


STABLE = """
    ops = torch.ops.compat_stable
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    for t in (ops.recurrence(x, 0.5), ops.recurrence(x.double(), -0.25), *ops.parts(x, 2, True),
              ops.most(x), ops.boxed_or(x, None, 0.0), ops.boxed_or(x, x + 1, 0.0),
              ops.boxed_or(x, None, 2.0)):
        print(str(t.dtype).split(".")[1], t.stride(), [f"{v:.5g}" for v in t.flatten().tolist()])
    try:
        ops.recurrence(x.t(), 1.0)
    except RuntimeError as error:
        print("expected a contiguous x" in str(error))
"""


def test_stable():
    check_same("stable", STABLE)


NETWORKS = """
    ops = torch.ops.compat_networks
    def show(tensors):
        for t in tensors:
            values = [f"{v:.5f}" for v in t.flatten().tolist()]
            print(str(t.dtype).split(".")[1], list(t.shape), values)
    for optimizer in ("sgd", "adam", "adamw"):
        show(ops.train(3, optimizer))
    show(ops.layers(5))
    x = torch.linspace(-1, 1, 24).reshape(2, 4, 3)
    show(ops.functions(x, torch.cos(x * 7)))
    print(ops.names(x))
"""


def test_networks():
    check_same("networks", NETWORKS, quoted=2e-5)


MODULES = """
    ops = torch.ops.compat_modules
    def show(tensors):
        for t in tensors:
            values = [f"{v:.5f}" for v in t.flatten().tolist()]
            print(str(t.dtype).split(".")[1], list(t.shape), values)
    print(ops.printed())
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    show(ops.losses(x, torch.cos(x * 7)))
    show(ops.activations(x))
    show(ops.windows(torch.cos(torch.arange(72.0) * 1.3).reshape(1, 2, 6, 6)))
    show(ops.layers(5))
    for kind in ("adagrad", "rmsprop", "rmsprop_all", "lbfgs", "lbfgs_wolfe"):
        show(ops.optimize(kind))
"""


def test_modules():
    check_same("modules", MODULES, quoted=2e-5)


SEQUENCES = """
    ops = torch.ops.compat_sequences
    def show(tensors):
        for t in tensors:
            values = [f"{v:.5f}" for v in t.flatten().tolist()]
            print(str(t.dtype).split(".")[1], list(t.shape), values)
    show(ops.layers(2))
    show(ops.attention(6))
    for workers in (0, 2):
        show(ops.batches(4, workers))
"""


def test_sequences():
    check_same("sequences", SEQUENCES, quoted=2e-5)


def test_files_of_one_are_read_by_the_other(tmp_path):
    """Training goes on from the files of the other side as from one's own."""
    code = """
    def values(tensors):
        return [(str(t.dtype).split(".")[1], list(t.shape), t.flatten().tolist()) for t in tensors]
    print(values(torch.ops.compat_sequences.{}))
    """
    sides = ("lamella", "torch")

    def call(of, what):
        printed = run(library("sequences", of), of, code.format(what))
        return ast.literal_eval(printed)

    went_on, read = {}, {}
    for of in sides:
        (tmp_path / of).mkdir()
        went_on[of] = call(of, f"write_files({str(tmp_path / of)!r})")
    for of in sides:
        for reader in sides:
            read[of, reader] = call(reader, f"read_files({str(tmp_path / of)!r})")
            for got, wanted in zip(read[of, reader], went_on[of]):
                assert got[2] == pytest.approx(wanted[2], rel=1e-4)
        assert read[of, "lamella"][3:7] == read[of, "torch"][3:7]
        assert read[of, "lamella"][3] == ("float16", [3, 2], [0, 3, 1, 4, 2, 5])
        assert read[of, "lamella"][7][2] == pytest.approx(read[of, "torch"][7][2])

    # So does lamella.load(), by name.
    import lamella

    for of in sides:
        state = lamella.load(tmp_path / of / "net.pt")
        wanted = torch.jit.load(tmp_path / of / "net.pt")
        named = {**dict(wanted.named_parameters()), **dict(wanted.named_buffers())}
        assert set(named) <= set(state)
        assert all(state[name].tolist() == value.tolist() for name, value in named.items())
        assert lamella.load(tmp_path / of / "adam.pt")["param_groups.param_groups/size"].item() == 1

    # PyTorch's Python reads the files as well.
    net = torch.jit.load(tmp_path / "lamella" / "net.pt")
    assert [name for name, _ in net.named_buffers()] == [
        "1.running_mean", "1.running_var", "1.num_batches_tracked",
    ]  # fmt: skip
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert getattr(torch.jit.load(tmp_path / "lamella" / "adam.pt").param_groups, "param_groups/0")


def test_cpp_reads_state_dictionaries_of_python(tmp_path):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(72, 3),
    )  # fmt: skip
    code = "print(torch.ops.compat_sequences.read_state({!r}).tolist())"
    read = library("sequences", "lamella")
    torch.save(net.state_dict(), tmp_path / "state.pt")
    got = ast.literal_eval(run(read, "lamella", code.format(str(tmp_path / "state.pt"))))
    wanted = torch.nn.utils.parameters_to_vector(net.parameters()).tolist()
    assert got == wanted
    for damage in (lambda b: b[:200], lambda b: b[:-30], lambda b: b.replace(b"PK", b"KP")):
        (tmp_path / "damaged.pt").write_bytes(damage((tmp_path / "state.pt").read_bytes()))
        with pytest.raises(AssertionError, match="load: expected"):
            run(read, "lamella", code.format(str(tmp_path / "damaged.pt")))


REGISTRATION = """
    ops = torch.ops.compat_registration
    def show(*values):
        print(*(v.tolist() if hasattr(v, "tolist") else v for v in values))
    x = torch.arange(6.0).reshape(3, 2)
    show(ops.of_list([1, 2, 3]), ops.of_list([]), ops.of_list((4,)))
    show(ops.of_tensors([x, x + 1], [2.0, 0.5]), ops.of_strings(["a", "b"], [False, True]))
    show(getattr(ops, "lambda")(x, 3), ops.named(x), ops.named(x, by=0.5), ops.by_options(x))
    show(ops.scaled(x), ops.catch_all(x), ops.optional_string(None), ops.optional_string("some"))
    show(ops.optional_ints(None), ops.optional_ints([]), ops.optional_ints([1, 2]))
    show(ops.optional_array(None), ops.optional_array([3, 4, 5]))
    show(ops.optional_tensors(None), ops.optional_tensors([x, x]))
    show(ops.list_of_optional([x, None, x]), ops.vector_of_optional([x, None, None]))
    show(ops.turned([[1, 2], [], [3]]), ops.turned([]), ops.inverted([True, False]))
    show(ops.inverted([]), ops.rotated([1, 2, 3]), ops.halved([1.0, 3.0]))
    show(*ops.halves(x, True), *ops.halves(x, False), ops.four((4, 0.25)))
    show(*((key, value.tolist()) for key, value in ops.doubled({"x": x, "y": x[0]}).items()))
    show(ops.lengths(["one", "three", "one"]), ops.position(["a", "b"], "b"), ops.position([], ""))
    show({key: value.tolist() for key, value in ops.only({"x": x, "y": x}, "y").items()})
    show(ops.maybe(None), ops.maybe(True), ops.larger(2, 3.5), ops.larger(4, 3.5))
    show(ops.made([2]), ops.made([2], dtype=torch.int64, device="cpu").dtype == torch.int64)
    show(ops.fill_(x, 3.0), x, ops.nothing(x), ops.by_typed(x), *ops.rows(x))
    for name in ("of_list", "of_tensors", "lambda", "of_strings", "optional_string",
                 "optional_ints", "optional_array", "optional_tensors", "list_of_optional",
                 "vector_of_optional", "turned", "inverted", "rotated", "halves", "four", "doubled",
                 "lengths", "larger", "made", "only", "nothing", "rows", "scaled", "maybe",
                 "position"):
        # PyTorch names what is returned.
        print(str(getattr(ops, name).default._schema).replace(" _0,", ",").split(" -> ")[0])
    for wrong in (lambda: ops.rotated([1, 2]), lambda: ops.doubled({1: x}),
                  lambda: ops.four([1]), lambda: ops.of_list([1.5])):
        try:
            wrong()
        except (RuntimeError, TypeError):
            print("refused")
"""


def test_registration():
    check_same("registration", REGISTRATION)


CHECKING = """
    ops = torch.ops.compat_checking
    x = torch.arange(6.0).reshape(2, 3)
    ops.checks(1, 2), ops.checks(3, 2), ops.warnings()
    print(ops.errors(x))
    for a, b in ((x, x), (x, x.double()), (x.t(), x), (x[0], x), (x, x.reshape(6)), (x.half(), x),
                 (x[:, :2], x)):
        print(bin(ops.arguments(a, b)))
    print(ops.prints(x), ops.prints(x.t().to(torch.bfloat16)), ops.device_types())
"""


def test_checking():
    check_same("checking", CHECKING)


TENSORS = """
    import tempfile
    ops = torch.ops.compat_tensors
    def show(tensors):
        for t in tensors:
            values = [f"{complex(v).real:.5g}" for v in t.flatten().tolist()]
            print(str(t.dtype).split(".")[1], list(t.shape), values)
    x = torch.arange(12.0).reshape(3, 4)
    for tensors in (ops.made(3), ops.indexed(x), ops.functions(x)):
        show(tensors)
    print(ops.told(x), ops.told(x.double().t()), ops.accessed(x), ops.parallel(x))
    for dtype in (torch.float32, torch.int16, torch.float16, torch.complex128):
        print(ops.dispatched(x.to(dtype)))
    print(ops.containers(), ops.gradients(x), ops.blas(x, x.t().contiguous()).tolist())
    with tempfile.NamedTemporaryFile() as file:
        mapped = ops.file(file.name)
        mapped.fill_(2.5)
        print(mapped.tolist(), file.read().hex())
"""


def test_tensors():
    check_same("tensors", TENSORS)


PACKAGES = """
    import copy
    ops = torch.ops.compat_packages
    x = torch.arange(6.0).reshape(2, 3)
    print(ops.accessors(x), ops.broadcasts(x, x[:1]), ops.utilities())
    print(ops.exchanged(x).tolist(), x.tolist())
    for t in ops.rarer(x):
        print(list(t.shape), [round(v, 4) for v in t.flatten().tolist()])
    print(ops.drawn(), ops.on_another_thread())
    note = torch.classes.compat_packages.Note("a b")
    print(note.text(), copy.deepcopy(note).text())
"""


def test_packages():
    check_same("packages", PACKAGES)


def test_classes_say_what_is_wrong():
    code = """
    ns, ops = torch.classes.compat_classes, torch.ops.compat_classes
    for call in (
        lambda: ops.run(torch.ones(3), ns.Counter(1)),
        lambda: ops.run(torch.ones(3), 5),
        lambda: ns.Counter("x"),
        lambda: ns.Counter(1).increment(1, 2),
        lambda: ns.Missing,
        lambda: ns.Counter(1).nothing,
        lambda: torch.ops.compat_classes.total([ns.Counter(1), ns.Stack([])]),
    ):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, str(error))
    """
    name = "__torch__.torch.classes.compat_classes"
    assert (
        run(library("classes", "lamella"), "lamella", code)
        == f"""\
TypeError run: got (Tensor, Counter), which does not fit
  run(Tensor x, {name}.Linear packed)
    'packed' (position 2): expected {name}.Linear, got Counter
TypeError run: got (Tensor, int), which does not fit
  run(Tensor x, {name}.Linear packed)
    'packed' (position 2): expected {name}.Linear, got int
TypeError Counter: got (str), which does not fit
  Counter(int _0)
    '_0' (position 1): expected int, got str
TypeError Counter: got (Counter, int, int), which does not fit
  Counter({name}.Counter input, int by=1)
    expected at most 2 positional arguments, got 3
AttributeError lamella.classes: there is no class 'compat_classes.Missing'
AttributeError 'Counter' object has no attribute 'nothing'
TypeError total: got ([Counter, Stack]), which does not fit
  total({name}.Counter[] counters)
    'counters' (position 1): expected {name}.Counter[], got [Counter, Stack]
"""
    )
