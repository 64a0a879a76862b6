"""lamella.library: Library, impl with key sets and overrides, fallbacks, rules of handlers."""

import itertools
import warnings

import pytest
import torch

import lamella
import lamella._dispatch
from lamella.library import Library

_numbers = itertools.count()


@pytest.fixture
def lib():
    made = Library(f"library{next(_numbers)}", "DEF")
    yield made
    made._destroy()


def op_of(lib, name):
    return getattr(getattr(lamella.ops, lib.ns), name)


def test_kernels_with_the_key_set(lib):
    seen = []

    def below(keyset, x):
        seen.append(keyset)
        rest = keyset & lamella._dispatch.after_autograd
        return op_of(lib, "f").default.redispatch(rest, x)

    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    lib.impl("f", below, "Autograd", with_keyset=True)
    assert op_of(lib, "f")(lamella.ones(1)).tolist() == [2.0]
    assert seen[0].has("CPU") and seen[0].has("AutogradCPU") and not seen[0].has("Meta")
    assert "AutogradCPU" in repr(seen[0]) and "CPU" in repr(seen[0].remove("AutogradCPU"))


def test_overriding(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    with pytest.raises(RuntimeError, match="already has a kernel for CPU from this library"):
        lib.impl("f", lambda x: x + 2, "CPU")
    lib.impl("f", lambda x: x + 2, "CPU", allow_override=True)
    assert op_of(lib, "f")(lamella.ones(1)).tolist() == [3.0]


def test_fallbacks():
    seen = []
    fallback = Library("_", "IMPL")

    def log(op, *args, **kwargs):
        seen.append((str(op), len(args), kwargs))
        return op.redispatch(lamella._dispatch.DispatchKeySet().add("CPU"), *args, **kwargs)

    fallback.fallback(log, "TESTING_ONLY_GenericWrapper")
    lib = Library(f"library{next(_numbers)}", "DEF")
    lib.define("f(Tensor x, int n, int k=1, *, bool b=False, int? m=None) -> Tensor")
    lib.impl("f", lambda x, n, k, *, b, m: x + n, "CPU")
    keys = lamella._dispatch.DispatchKeySet().add("CPU").add("TESTING_ONLY_GenericWrapper")
    result = op_of(lib, "f").default.redispatch(keys, lamella.ones(1), 2)
    op_of(lib, "f").default.redispatch(keys, lamella.ones(1), 2, 3, b=True, m=None)
    fallback._destroy()
    lib._destroy()
    assert result.tolist() == [3.0] and seen == [
        (f"{lib.ns}.f.default", 2, {}),
        (f"{lib.ns}.f.default", 3, {"b": True}),
    ]
    with pytest.raises(RuntimeError) as caught:
        lib.fallback(log, "CPU")
    assert str(caught.value) == (
        f"fallback: expected a Library of the namespace '_', got '{lib.ns}', as it is for all "
        "operators"
    )


def test_register_kernel_and_fake_by_name(lib):
    lib.define("f(Tensor x) -> Tensor")
    name = f"{lib.ns}::f"

    @lamella.library.register_kernel(name, "cpu", lib=lib)
    def _(x):
        return x + 1

    @lamella.library.register_fake(name, lib=lib)
    def _(x):
        assert lamella.library.get_ctx() is not None
        return lamella.empty_like(x)

    assert op_of(lib, "f")(lamella.ones(1)).tolist() == [2.0]
    assert op_of(lib, "f")(lamella.ones(3, device="meta")).shape == (3,)


def test_rules_of_modes_and_classes():
    def program(library):
        import importlib

        dispatch = importlib.import_module(f"{library.__name__}.utils._python_dispatch")
        T = library.Tensor
        name = f"rules{next(_numbers)}::f"

        def f(x: T) -> T:
            return x + 1

        op = library.library.custom_op(name, f, mutates_args=())

        class Mode(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        class Sub(library.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        seen = []

        def of_mode(mode, func, types, args, kwargs):
            seen.append((type(mode) is Mode, len(args), dict(kwargs or {})))
            return library.zeros(1)

        def of_class(cls, func, types, args, kwargs):
            seen.append((cls is Sub, len(args), dict(kwargs or {})))
            return library.zeros(2)

        library.library.register_torch_dispatch(name, Mode, of_mode)
        library.library.register_torch_dispatch(name, Sub, of_class)
        with Mode():
            a = op(library.ones(3))
        b = op(library.Tensor._make_subclass(Sub, library.ones(3)))
        return a.tolist(), b.tolist(), seen

    assert program(lamella) == program(torch)


def test_kernels_found_by_key(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    kernel = lamella.library.get_kernel(f"{lib.ns}::f", "CPU")
    assert kernel(lamella.ones(1)).tolist() == [2.0]
    with pytest.raises(RuntimeError) as caught:
        lamella.library.get_kernel(f"{lib.ns}::f", "Meta")
    assert str(caught.value) == (f"get_kernel: expected {lib.ns}::f to have a kernel for Meta")


def test_a_kernel_called_from_both_ways_is_released(lib):
    import gc
    import weakref

    class Kernel:
        def __call__(self, x):
            return x + 1

    kernel = Kernel()
    name = weakref.ref(kernel)
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", kernel, "CPU")
    assert op_of(lib, "f")(lamella.ones(1)).tolist() == [2.0]
    del kernel
    lib._destroy()
    gc.collect()
    assert name() is None


@pytest.mark.parametrize("count", [15, 16, 17, 64, 300])
def test_many_returns(lib, count):
    lib.define(f"f(Tensor x) -> ({', '.join(['Tensor'] * count)})")
    lib.define(f"named(Tensor x) -> ({', '.join(f'Tensor r{i}' for i in range(count))})")
    for name in ("f", "named"):
        lib.impl(name, lambda x: tuple(x + i for i in range(count)), "CompositeExplicitAutograd")
    x = lamella.tensor([1.0, 2.0])
    assert [r.tolist() for r in op_of(lib, "f")(x)] == [[1.0 + i, 2.0 + i] for i in range(count)]
    assert op_of(lib, "named")(x)[count - 1].tolist() == [float(count), count + 1.0]
    mapped = lamella.vmap(lambda t: op_of(lib, "f").default(t))(x)
    assert [r.tolist() for r in mapped] == [[1.0 + i, 2.0 + i] for i in range(count)]
    traced = lamella.trace(lambda t: op_of(lib, "f")(t)[-1] * 2, x)
    assert traced(x).tolist() == [2.0 * count, 2.0 * count + 2]
    leaf = x.clone().requires_grad_()
    sum(r.sum() for r in op_of(lib, "f")(leaf)).backward()  # by what the kernel calls
    assert leaf.grad.tolist() == [count, count]

    def wrong(x):
        raise KeyError("wrong")

    lib.impl("f", wrong, "CompositeExplicitAutograd", allow_override=True)
    with pytest.raises(KeyError, match="wrong"):
        op_of(lib, "f")(x)


@pytest.mark.parametrize("count", [17, 63, 64])
def test_many_arguments(lib, count):
    names = [f"a{i}" for i in range(count)]
    lib.define(f"f({', '.join('Tensor ' + n for n in names)}) -> Tensor")
    lib.define(f"rest({', '.join(f'int {n}={i}' for i, n in enumerate(names))}) -> int")
    lib.impl("f", lambda *args: sum(args[1:], args[0]), "CompositeExplicitAutograd")
    lib.impl("rest", lambda *args: sum(args), "CompositeExplicitAutograd")
    f = op_of(lib, "f")
    xs = [lamella.tensor([float(i)]) for i in range(count)]
    whole = float(sum(range(count)))
    assert f(*xs).item() == whole
    assert f(*xs[:3], **dict(zip(names[3:], xs[3:]))).item() == whole
    assert lamella.vmap(f)(*xs).tolist() == [whole]
    assert op_of(lib, "rest")() == whole
    assert op_of(lib, "rest")(**{names[-1]: 0}) == whole - (count - 1)
    assert op_of(lib, "rest")(*[1] * count) == count
    with pytest.raises(TypeError, match=f"missing argument '{names[-1]}'"):
        f(*xs[:-1])
    with pytest.raises(TypeError, match=f"'{names[-1]}': given by position and by keyword"):
        f(*xs, **{names[-1]: xs[0]})


def test_more_arguments_than_python_gives(lib):
    lib.define(f"f({', '.join(f'Tensor a{i}' for i in range(300))}) -> Tensor")
    with pytest.raises(AttributeError) as error:
        op_of(lib, "f")
    assert str(error.value) == "f: expected at most 64 arguments to call it from Python"


def test_a_kernel_that_changes_the_list_it_returned(lib):
    class Spoils:
        def __init__(self, items):
            self.items = items

        def __index__(self):
            self.items.clear()
            return 3

    def kernel(x):
        items = [None, lamella.zeros(2), lamella.zeros(2)]
        items[0] = Spoils(items)
        return items

    lib.define("f(Tensor x) -> (int, Tensor, Tensor)")
    lib.impl("f", kernel, "CompositeExplicitAutograd")
    first, second, third = op_of(lib, "f")(lamella.ones(1))
    assert (first, second.tolist(), third.tolist()) == (3, [0.0, 0.0], [0.0, 0.0])


def test_a_foreign_reduction_keeps_its_meaning_under_vmap(lib):
    lib.define("sum(Tensor x) -> Tensor", tags=["reduction"])
    lib.impl("sum", lambda x: x.sum() + 100, "CompositeExplicitAutograd")
    x = lamella.arange(6.0).reshape(2, 3)
    assert lamella.vmap(op_of(lib, "sum"))(x).tolist() == [103.0, 112.0]


def test_a_kernel_of_a_misspelt_operator_warns(lib):
    lib.define("hypotenuse(Tensor a, Tensor b) -> Tensor")
    name = f"{lib.ns}::hypotenus"
    said = f"unknown operator '{name}'; did you mean '{lib.ns}::hypotenuse'?"
    with pytest.warns(UserWarning) as caught:
        lib.impl("hypotenus", lambda a, b: a, "CPU")
        lamella.library.register_fake(f"{name}e_", lambda a, b: a, lib=lib)
    assert str(caught[0].message) == f"impl: {said}"
    assert str(caught[1].message).startswith("register_fake: unknown operator")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.impl("hypotenuse", lambda a, b: a, "CPU")
        lib.impl("unlike_any_other", lambda a: a, "CPU")


def test_libraries_of_the_current_folder_come_first(tmp_path, monkeypatch):
    (tmp_path / "libm.so").write_text("no library")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=f"load_library: {tmp_path}/libm.so: file too short"):
        lamella.load_library("libm.so")


def test_streams_in_schemas():
    library = lamella.library.Library("streams_in_schemas", "DEF")
    library.define("same(Tensor self, Stream stream) -> Stream")
    library.impl("same", lambda x, stream: stream, "CPU")
    stream = lamella.Stream(stream_id=3, device_index=2, device_type=4)
    assert str(stream.device) == "opencl:2"
    made = lamella.ops.streams_in_schemas.same(lamella.ones(1), stream)
    assert (made.stream_id, made.device_index, made.device_type) == (3, 2, 4)
    with pytest.raises(TypeError, match=r"'stream' \(position 2\): expected Stream, got int"):
        lamella.ops.streams_in_schemas.same(lamella.ones(1), 3)
    with pytest.raises(ValueError) as caught:
        lamella.Stream(device_index=2, device_type=99)
    assert str(caught.value) == (
        "device: expected a type from 0 to 35 and an index from -1 to 127, got 99 and 2"
    )
