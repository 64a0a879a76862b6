"""Error messages of wrong calls, word for word, and the types of their exceptions."""

import importlib
import inspect
import pathlib
import pickle
import subprocess
import sys
import textwrap
import types

import pytest

import lamella


def message(call, kind=TypeError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def text(block):
    return textwrap.dedent(block).strip("\n")


@pytest.fixture
def blend(recorder):
    recorder.define("blend.Tensor(Tensor self, Tensor other, *, float weight=0.5)")
    return recorder.define("blend.Scalar(Tensor self, Scalar other, int[2] size=[1, 1])")


X = lamella.tensor([1.0])


def test_wrong_type(blend):
    assert message(lambda: blend(X, "two")) == text("""
        blend: got (Tensor, str), which fits none of
          blend(Tensor input, Tensor other, *, float weight=0.5)
            'other' (position 2): expected Tensor, got str
          blend(Tensor input, Scalar other, int[2] size=[1, 1])
            'other' (position 2): expected Scalar, got str
    """)


def test_wrong_type_by_keyword(blend):
    assert message(lambda: blend(X, 2, size="big")) == text("""
        blend: got (Tensor, int, size=str), which fits none of
          blend(Tensor input, Tensor other, *, float weight=0.5)
            'other' (position 2): expected Tensor, got int
          blend(Tensor input, Scalar other, int[2] size=[1, 1])
            'size': expected int[2], got str
    """)


def test_missing_argument(recorder):
    op = recorder.define("one(Tensor self, int dim, *, str mode)")
    assert message(lambda: op(X)) == text("""
        one: got (Tensor), which does not fit
          one(Tensor input, int dim, *, str mode)
            missing argument 'dim' (position 2)
    """)
    assert message(lambda: op(X, 1)) == text("""
        one: got (Tensor, int), which does not fit
          one(Tensor input, int dim, *, str mode)
            missing keyword argument 'mode'
    """)


def test_unknown_and_repeated_keywords(recorder):
    op = recorder.define("one(Tensor self, int dim=0)")
    assert message(lambda: op(X, dims=1)) == text("""
        one: got (Tensor, dims=int), which does not fit
          one(Tensor input, int dim=0)
            unknown keyword 'dims'
    """)
    assert message(lambda: op(X, 1, dim=1)) == text("""
        one: got (Tensor, int, dim=int), which does not fit
          one(Tensor input, int dim=0)
            'dim': given by position and by keyword
    """)


def test_too_many_arguments(recorder):
    op = recorder.define("one(Tensor self, int dim=0, *, bool b=False)")
    assert message(lambda: op(X, 1, True)) == text("""
        one: got (Tensor, int, bool), which does not fit
          one(Tensor input, int dim=0, *, bool b=False)
            expected at most 2 positional arguments, got 3
    """)


def test_what_was_given(recorder):
    op = recorder.define("one(Tensor self)")
    assert message(lambda: op([1, 2.5, X, "a", None, 3])).startswith(
        "one: got ([int, float, Tensor, str, ...]), which does not fit\n"
    )
    assert message(lambda: op((1,))).startswith("one: got ((int,)), ")
    assert message(lambda: op(lamella.float32)).startswith("one: got (dtype), ")
    assert message(lambda: op(None)).endswith("'input' (position 1): expected Tensor, got None")


def test_unpacked_sizes(recorder):
    op = recorder.define("grow(Tensor self, int[] size)")
    assert message(lambda: op(X, 2, "3")) == text("""
        grow: got (Tensor, int, str), which does not fit
          grow(Tensor input, int[] size)
            'size' (position 3): expected int, got str
    """)


def test_built_in_function():
    assert message(lambda: lamella.add(X, "two")) == text("""
        add: got (Tensor, str), which fits none of
          add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)
            'other' (position 2): expected Tensor, got str
          add(Tensor input, Scalar other, Scalar alpha=1, *, Tensor out=None)
            'other' (position 2): expected Scalar, got str
    """)


def test_method():
    assert message(lambda: X.exp(1)) == text("""
        exp: got (int), which does not fit
          exp(*, Tensor out=None)
            expected at most 0 positional arguments, got 1
    """)
    assert message(lambda: lamella.Tensor.exp(3)) == (
        "Tensor.exp: expected a Tensor to call it on, got int"
    )


def test_operators_of_python():
    assert "unsupported operand type(s) for +: 'lamella.Tensor' and 'str'" in message(
        lambda: X + "a"
    )
    assert "unsupported operand type(s) for -: 'list' and 'lamella.Tensor'" in message(
        lambda: [1] - X
    )


def test_unknown_operators():
    with pytest.raises(AttributeError, match="unknown operator 'aten::ad'; did you mean"):
        _ = lamella.ops.aten.ad
    with pytest.raises(AttributeError, match="operator 'aten::add' has no overload 'Tenso'"):
        _ = lamella.ops.aten.add.Tenso
    with pytest.raises(AttributeError, match="module 'lamella' has no attribute 'ad'"):
        _ = lamella.ad


def test_names_of_the_package_that_change():
    class Name(str):
        pass

    try:
        for number in range(600):
            lamella._tried = number
            assert lamella._tried == number
            vars(lamella)["_tried"] = -number
            assert lamella._tried == -number
            assert getattr(lamella, "".join(["_tri", "ed"])) == -number
            setattr(lamella, f"_tried_{number}", number)
        assert all(getattr(lamella, f"_tried_{n}") == n for n in range(600))
        assert getattr(lamella, Name("_tried")) == -599
    finally:
        for name in [name for name in vars(lamella) if name.startswith("_tried")]:
            delattr(lamella, name)
    assert not hasattr(lamella, "_tried")


def test_names_of_the_package():
    assert isinstance(lamella, types.ModuleType) and lamella.__name__ == "lamella"
    assert "optim" in dir(lamella) and lamella.__dict__["add"] is lamella.add
    kept = lamella.add
    try:
        lamella.add = 3
        assert lamella.add == 3
        del lamella.add
        with pytest.raises(AttributeError, match="module 'lamella' has no attribute 'add'"):
            _ = lamella.add
    finally:
        lamella.add = kept
    with pytest.raises(TypeError):
        getattr(lamella, 3)


def test_shapes_from_kernels():
    x, y = lamella.tensor([1.0, 2.0, 3.0]), lamella.tensor([1.0, 2.0])
    assert message(lambda: lamella.add(x, y), RuntimeError).startswith("add: ")


@pytest.mark.parametrize(
    "error",
    [ValueError("v"), KeyError("k"), IndexError("i"), ZeroDivisionError("z"), KeyboardInterrupt()],
)
def test_python_errors_come_back_unchanged(recorder, error):
    def kernel():
        raise error

    recorder.library.define("fails() -> ()")
    recorder.library.impl("fails", kernel, "CompositeImplicitAutograd")
    with pytest.raises(type(error)) as caught:
        getattr(lamella.ops, recorder.ns).fails()
    assert caught.value is error
    assert caught.traceback[-1].name == "kernel"


def test_errors_through_nested_kernels(recorder):
    lib = recorder.library
    ops = getattr(lamella.ops, recorder.ns)

    def inner():
        raise LookupError("inside")

    def outer():
        try:
            ops.inner()
        except LookupError as error:
            raise ValueError("outside") from error

    lib.define("inner() -> ()")
    lib.define("outer() -> ()")
    lib.impl("inner", inner, "CompositeImplicitAutograd")
    lib.impl("outer", outer, "CompositeImplicitAutograd")
    with pytest.raises(ValueError, match="outside") as caught:
        ops.outer()
    assert isinstance(caught.value.__cause__, LookupError)


def test_wrong_returns_of_python_kernels(recorder):
    lib = recorder.library
    lib.define("one() -> int")
    lib.impl("one", lambda: "text", "CompositeImplicitAutograd")
    lib.define("two() -> (Tensor, Tensor)")
    lib.impl("two", lambda: X, "CompositeImplicitAutograd")
    ops = getattr(lamella.ops, recorder.ns)
    assert message(ops.one, RuntimeError) == (
        f"{recorder.ns}::one: expected its Python kernel to return int, got str"
    )
    assert message(ops.two, RuntimeError) == (
        f"{recorder.ns}::two: expected its Python kernel to return a tuple of 2, "
        "got <class 'lamella.Tensor'>"
    )


def test_missing_kernel(recorder):
    recorder.library.define("bare(Tensor x) -> Tensor")
    op = getattr(lamella.ops, recorder.ns).bare
    lines = message(lambda: op(X), NotImplementedError).splitlines()
    assert f"{recorder.ns}::bare" in lines[0] and len(lines) <= 5


def test_registration_errors(recorder):
    recorder.library.define("again(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=f"{recorder.ns}::again"):
        recorder.library.define("again(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=recorder.ns):
        lamella.library.Library(recorder.ns, "DEF")
    with pytest.raises(ValueError, match="expected 'kind' to be DEF, IMPL or FRAGMENT, got 'X'"):
        lamella.library.Library("ns", "X")
    with pytest.raises(TypeError, match="impl: expected 'fn' to be a function, got int"):
        recorder.library.impl("again", 3, "CPU")
    with pytest.raises(Exception, match="unknown type 'tensor'"):
        recorder.library.define("bad(tensor x) -> Tensor")


def test_loading_what_is_not_there():
    with pytest.raises(OSError, match="load_library: .*nowhere.so"):
        lamella.load_library("/nowhere.so")


def test_exceptions_have_pythons_types():
    assert issubclass(lamella.linalg.LinAlgError, RuntimeError)
    assert lamella.linalg.LinAlgError.__module__ == "lamella.linalg"


@pytest.mark.parametrize(
    "name, text",
    [
        (
            "lamella.sotfmax",
            "module 'lamella' has no attribute 'sotfmax'; the nearest is 'softmax'",
        ),
        (
            "lamella.utils.hoks",
            "module 'lamella.utils' has no attribute 'hoks'; the nearest is 'hooks'",
        ),
        (
            "lamella.nn.Conv2D",
            "module 'lamella.nn' has no attribute 'Conv2D'; the nearest is 'Conv2d'",
        ),
        (
            "lamella.nn.functional.sotfmax",
            "module 'lamella.nn.functional' has no attribute 'sotfmax'; the nearest is 'softmax'",
        ),
        *(
            (
                f"lamella.{module}.{name}",
                f"module 'lamella.{module}' has no attribute '{name}'; the nearest is '{near}'",
            )
            for module, name, near in [
                ("linalg", "invs", "inv"),
                ("fft", "ftt", "fft"),
                ("special", "logsumexpp", "logsumexp"),
                ("optim", "Adm", "Adam"),
                ("optim.lr_scheduler", "StepLr", "StepLR"),
                ("nn.init", "xavier_unifrom_", "xavier_uniform_"),
                ("func", "jacref", "jacrev"),
                ("autograd", "gradchek", "gradcheck"),
                ("hlo", "prase", "parse"),
                ("library", "registerfake", "register_fake"),
                ("profiler", "profil", "profile"),
            ]
        ),
        (
            "lamella.utils.data",
            "module 'lamella.utils' has no attribute 'data'; it is in 'lamella.compat.utils.data'",
        ),
        (
            "lamella.testing.assert_close",
            "module 'lamella.testing' has no attribute 'assert_close'; it is in "
            "'lamella.compat.testing'",
        ),
        (
            "lamella.amp.GradScaler",
            "module 'lamella.amp' has no attribute 'GradScaler'; it is in 'lamella.compat.amp'",
        ),
        (
            "lamella.onnx",
            "module 'lamella' has no attribute 'onnx'; programs are exported as HLO: "
            "lamella.hlo.from_trace(lamella.trace(f, x))",
        ),
        ("lamella.zzyzx", "module 'lamella' has no attribute 'zzyzx'"),
    ],
)
def test_missing_names_say_where_they_are(name, text):
    module, _, attribute = name.rpartition(".")
    with pytest.raises(AttributeError) as error:
        getattr(importlib.import_module(module), attribute)
    assert str(error.value) == text
    assert str(pickle.loads(pickle.dumps(error.value))) == text
    with pytest.raises(ImportError) as error:
        exec(f"from {module} import {attribute}")
    assert str(error.value) == text


def test_modules_say_that_they_are_to_be_imported():
    script = "import lamella\ntry: lamella.conformance\nexcept AttributeError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == (
        "module 'lamella' has no attribute 'conformance' until 'import lamella.conformance'\n"
    )


def test_operators_have_signatures():
    assert str(inspect.signature(lamella.softmax)) == "(self, dim, dtype=None)"
    assert str(inspect.signature(lamella.ops.aten.add)) == "(self, other, *, alpha=1)"
    assert str(inspect.signature(lamella.ops.aten.sum.default)) == "(self, *, dtype=None)"
    assert str(inspect.signature(lamella.ones(2).add)) == "(other, *, alpha=1)"
    assert "from_" in inspect.signature(lamella.Tensor.random_).parameters


def test_another_python_than_the_one_built_for(tmp_path):
    package = tmp_path / "lamella"
    package.mkdir()
    source = pathlib.Path(lamella.__file__).parent
    for name in ("__init__.py", "_paths.py"):
        (package / name).write_text((source / name).read_text())
    (package / "_C.cpython-27-x86_64-linux-gnu.so").write_text("")
    ended = subprocess.run(
        [sys.executable, "-c", "import lamella"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
    )
    version = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    assert ended.stderr.decode().splitlines()[-1] == (
        "ImportError: lamella: expected the Python that this package was built for "
        f"(cpython-27-x86_64-linux-gnu), got {version} ({sys.executable}); in Lamella's source "
        f"folder `make build PYTHON={sys.executable}` or `{sys.executable} -m pip install .` "
        "builds it for this one"
    )


def test_functions_of_nn_functional_name_themselves():
    """Not the operators that they are made of; a function called by a user's one as well."""
    F = lamella.nn.functional
    x = lamella.ones(2, 3)
    images = lamella.ones(1, 1, 4, 4)
    for call, text in (
        (
            lambda: F.cross_entropy(x, lamella.tensor([0, 7])),
            "cross_entropy: expected the elements of 'target' to be in [0, 3), got 7",
        ),
        (
            lambda: F.cross_entropy(x, lamella.ones(2)),
            "cross_entropy: expected 'target' to be int64 or uint8, got float32",
        ),
        (
            lambda: F.cross_entropy(x.int(), lamella.tensor([0, 1])),
            "cross_entropy: expected 'self' to be floating point, got int32",
        ),
        (
            lambda: lamella.nn.CrossEntropyLoss()(x, lamella.tensor([0, 9])),
            "cross_entropy: expected the elements of 'target' to be in [0, 3), got 9",
        ),
        (
            lambda: F.embedding(lamella.tensor([9]), x),
            "embedding: expected 'index' in [0, 1], got 9",
        ),
        (
            lambda: F.interpolate(images, size=(0, 0)),
            "interpolate: expected sizes greater than 0, got [1, 1, 4, 4] and 'output_size' [0, 0]",
        ),
        (
            lambda: F.kl_div(x, lamella.ones(5)),
            "kl_div: expected 'other' to be broadcastable to [5], got [2, 3]",
        ),
        (
            lambda: F.max_pool2d(images, 9),
            "max_pool2d: expected an output of at least one element, got 'self' [1, 1, 4, 4] with "
            "a window of 9",
        ),
    ):
        with pytest.raises((RuntimeError, IndexError)) as error:
            call()
        assert str(error.value) == text
