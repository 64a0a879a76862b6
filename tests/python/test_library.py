"""lamella.library: Library, impl with key sets and overrides, fallbacks, rules of handlers."""

import itertools

import pytest
import torch

import lamella
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
        seen.append((str(op), len(args)))
        return op.redispatch(lamella._dispatch.DispatchKeySet().add("CPU"), *args, **kwargs)

    fallback.fallback(log, "TESTING_ONLY_GenericWrapper")
    lib = Library(f"library{next(_numbers)}", "DEF")
    lib.define("f(Tensor x, int n) -> Tensor")
    lib.impl("f", lambda x, n: x + n, "CPU")
    keys = lamella._dispatch.DispatchKeySet().add("CPU").add("TESTING_ONLY_GenericWrapper")
    result = op_of(lib, "f").default.redispatch(keys, lamella.ones(1), 2)
    fallback._destroy()
    lib._destroy()
    assert result.tolist() == [3.0] and seen == [(f"{lib.ns}.f.default", 2)]
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
