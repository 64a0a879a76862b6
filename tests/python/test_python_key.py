"""Modes and subclasses with __torch_dispatch__: the same programs run under PyTorch."""

# ruff: noqa: B023

import gc
import importlib
import sys
import weakref

import pytest
import torch
from in_threads import in_threads

import lamella

LIBRARIES = [lamella, torch]


def parts(library):
    name = library.__name__
    dispatch = importlib.import_module(f"{name}.utils._python_dispatch")
    pytree = importlib.import_module(f"{name}.utils._pytree")
    return dispatch, pytree


def both(program):
    """Runs a program with PyTorch and with Lamella: the results must be equal."""
    assert program(lamella) == program(torch)


def plain(func):
    """The name; a number is parsed as a Scalar here where PyTorch makes it a tensor."""
    return str(func).replace(".Scalar", ".Tensor")


def logger(library):
    dispatch, pytree = parts(library)

    class Log(dispatch.TorchDispatchMode):
        def __init__(self, name="", known=lambda func: True):
            super().__init__()
            self.calls = []
            self.name = name
            self.known = known

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if types and not self.known(func):
                return NotImplemented
            numbers = [a for a in args if not isinstance(a, (library.Tensor, list))]
            self.calls.append((self.name + plain(func), len(args), numbers, dict(kwargs or {})))
            return func(*args, **(kwargs or {}))

    return Log


def wrapper(library, log=None):
    dispatch, pytree = parts(library)

    class Wrapper(library.Tensor):
        @staticmethod
        def __new__(cls, elem, requires_grad=False):
            return library.Tensor._make_wrapper_subclass(
                cls,
                elem.size(),
                strides=elem.stride(),
                dtype=elem.dtype,
                device=elem.device,
                requires_grad=requires_grad,
            )

        def __init__(self, elem, requires_grad=False):
            self.elem = elem

        def __repr__(self):
            return f"Wrapper({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if log is not None:
                log.append(plain(func))

            def strip(x):
                return x.elem if isinstance(x, Wrapper) else x

            def dress(x):
                return Wrapper(x) if type(x) is library.Tensor else x

            args, kwargs = pytree.tree_map(strip, (list(args), kwargs or {}))
            return pytree.tree_map(dress, func(*args, **kwargs))

    return Wrapper


def test_a_mode_sees_operators_with_their_arguments():
    def program(library):
        x = library.ones(2, 2)
        with logger(library)() as log:
            x + 1
            library.add(x, x, alpha=2)
            x.sum(0)
            library.cat([x, x])
            x.add_(1)
            x.view(4)
            x[0, 0].item()
        return log.calls

    both(program)


def test_factories_and_composites():
    def program(library):
        with logger(library)() as log:
            library.zeros(2)
            library.matmul(library.ones(3, 2), library.ones(2, 2))
        return [call[0] for call in log.calls]

    ours = program(lamella)
    assert ours[0] == "aten.zeros.default"
    assert ours[-1] == "aten.mm.default" and ours == program(torch)


def test_parts_of_composites_without_autograd():
    with lamella.inference_mode(), logger(lamella)() as log:
        lamella.matmul(lamella.ones(3, 2), lamella.ones(2, 2))
    assert "aten.mm.default" in [call[0] for call in log.calls]


def test_modes_nest_and_are_off_in_their_own_handler():
    def program(library):
        Log = logger(library)
        x = library.ones(2)
        with Log("outer ") as outer, Log("inner ") as inner:
            x * 2
        return outer.calls, inner.calls

    both(program)


def test_a_mode_may_be_entered_in_its_handler():
    def program(library):
        dispatch, _ = parts(library)
        seen = []

        class Twice(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                if len(seen) == 1:
                    with self:
                        library.neg(args[0])
                return func(*args, **(kwargs or {}))

        x = library.ones(2)
        with Twice():
            library.exp(x)
        return seen

    both(program)


def test_the_stack_of_modes():
    for library in LIBRARIES:
        dispatch, _ = parts(library)
        Log = logger(library)
        assert dispatch._get_current_dispatch_mode() is None
        with Log() as a, Log() as b:
            assert dispatch._get_current_dispatch_mode() is b
            assert dispatch._get_current_dispatch_mode_stack() == [a, b]
            with dispatch._disable_current_modes() as off:
                library.ones(2)
                assert off == [b, a] and dispatch._get_current_dispatch_mode() is None
            library.ones(2)
        assert not dispatch.is_in_torch_dispatch_mode()
        assert len(a.calls) == len(b.calls) == 1


def test_exceptions_pass_unchanged():
    def program(library):
        dispatch, _ = parts(library)

        class Wrong(Exception):
            pass

        error = Wrong("no")

        class Raises(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                raise error

        x = library.ones(2, requires_grad=True)
        with pytest.raises(Wrong) as caught, Raises():
            x * 2
        assert caught.value is error
        # The mode is off again, and works the next time.
        assert (x * 2).sum().item() == 4
        return dispatch._get_current_dispatch_mode()

    both(program)


def test_func_is_the_overload():
    seen = []

    class Keep(parts(lamella)[0].TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Keep():
        lamella.ones(2) + lamella.ones(2)
    assert seen[-1] is lamella.ops.aten.add.Tensor
    assert {lamella.ops.aten.add.Tensor: 1}[seen[-1]] == 1
    func, theirs = seen[-1], torch.ops.aten.add.Tensor
    assert (str(func), func.name(), func.namespace, func.__name__, func._overloadname) == (
        str(theirs),
        theirs.name(),
        theirs.namespace,
        theirs.__name__,
        theirs._overloadname,
    )
    assert func.overloadpacket is lamella.ops.aten.add and str(func.overloadpacket) == "aten.add"
    assert func.is_view is False and lamella.ops.aten.view.default.is_view
    assert "pointwise" in func.tags


def test_schemas_have_parts():
    for name, overload in [("add_", "Tensor"), ("view", "default"), ("sum", "dim_IntList")]:
        ours = getattr(getattr(lamella.ops.aten, name), overload)._schema
        theirs = getattr(getattr(torch.ops.aten, name), overload)._schema
        assert (ours.name, ours.overload_name, ours.is_mutable) == (
            theirs.name,
            theirs.overload_name,
            theirs.is_mutable,
        )
        assert [a.name for a in ours.arguments] == [a.name for a in theirs.arguments]
        for a, b in zip(ours.arguments + ours.returns, theirs.arguments + theirs.returns):
            assert (a.alias_info is None) == (b.alias_info is None)
            if a.alias_info:
                assert a.alias_info.before_set == b.alias_info.before_set
                assert a.alias_info.is_write == b.alias_info.is_write
            assert a.kwarg_only == b.kwarg_only and a.default_value == b.default_value


def test_wrapper_subclass_forward_and_backward():
    def program(library):
        log = []
        Wrapper = wrapper(library, log)
        x = Wrapper(library.tensor([1.0, 2.0]), requires_grad=True)
        assert x.requires_grad and x.is_leaf and tuple(x.shape) == (2,)
        y = (x * x).sum(0)
        assert type(y) is Wrapper and y.grad_fn is not None
        forward = list(log)
        y.backward()
        assert type(x.grad) is Wrapper
        return forward, len(log) > len(forward), x.grad.elem.tolist()

    both(program)


def test_a_wrapper_outlives_its_object():
    """Autograd returns the same instance that it saved."""
    for library in LIBRARIES:
        Wrapper = wrapper(library)

        def loss():
            x = Wrapper(library.tensor([3.0]), requires_grad=True)
            inner = x * 2
            inner.note = "kept"
            return (inner * inner).sum(), x

        y, x = loss()
        gc.collect()
        y.backward()
        assert x.grad.elem.tolist() == [24.0]


def test_saved_instances_keep_their_attributes_again_and_again():
    Wrapper = wrapper(lamella)
    x = Wrapper(lamella.tensor([3.0]), requires_grad=True)
    inner = x * 2
    inner.note = "kept"
    name = weakref.ref(inner)
    y = inner * inner
    del inner
    for _ in range(3):
        gc.collect()
        again = y.grad_fn._saved_self
        assert again is name() and again.note == "kept"
        del again
    del y
    gc.collect()
    assert name() is None


def test_instances_end_with_their_last_reference():
    Wrapper = wrapper(lamella)
    inner = lamella.ones(2)
    x = Wrapper(inner)
    name = weakref.ref(x)
    del x
    assert name() is None
    x = Wrapper(inner)
    x.me = x
    name = weakref.ref(x)
    del x
    gc.collect()
    assert name() is None


def test_subclass_with_memory():
    def program(library):
        dispatch, pytree = parts(library)
        seen = []

        class Logged(library.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                seen.append((plain(func), [t.__name__ for t in types]))
                with dispatch_off(library):
                    out = func(*args, **(kwargs or {}))
                return out

        x = library.Tensor._make_subclass(Logged, library.tensor([1.0, 2.0]))
        y = x + x
        z = library.tensor([1.0, 2.0]).as_subclass(Logged)
        library.add(z, 1)
        return seen, type(y) is library.Tensor, y.tolist()

    both(program)


def test_a_handler_of_a_mode_is_a_method():
    class Wrong(lamella.utils._python_dispatch.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="^Wrong: expected __torch_dispatch__ to be a method"):
        with Wrong():
            pass
    assert lamella.ones(2).tolist() == [1.0, 1.0]


def dispatch_off(library):
    return importlib.import_module(f"{library.__name__}.utils._mode_utils").no_dispatch()


def test_classes_are_asked_before_their_bases():
    def program(library):
        asked = []

        class A(library.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append("A")
                return NotImplemented if len(asked) == 1 else library.zeros(1)

        class B(A):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append("B")
                return NotImplemented

        a = library.Tensor._make_subclass(A, library.ones(1))
        b = library.Tensor._make_subclass(B, library.ones(1))
        asked.clear()
        asked.append("start")
        result = library.add(a, b)
        return asked, result.tolist()

    both(program)


def test_not_implemented_by_all():
    class A(lamella.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    a = lamella.Tensor._make_subclass(A, lamella.ones(1))
    with pytest.raises(TypeError) as caught:
        a + a
    assert str(caught.value) == (
        "aten.add.Tensor: expected some __torch_dispatch__ to know it, got NotImplemented from all "
        f"of [{A!r}]"
    )


def test_a_mode_leaves_calls_to_classes():
    def program(library):
        log = []
        Wrapper = wrapper(library, log)
        known = logger(library)(known=lambda func: "mul" not in str(func))
        x = Wrapper(library.ones(2))
        with known:
            x * 2
            x + 2
        return [call[0] for call in known.calls], log

    ours, theirs = program(lamella), program(torch)
    assert ours[0][-1] == theirs[0][-1] and ours[1] == theirs[1]


def test_lists_of_instances():
    def program(library):
        log = []
        Wrapper = wrapper(library, log)
        x = Wrapper(library.ones(2))
        y = library.cat([x, library.zeros(1)])
        a, b = library.split(y, [1, 2])
        return log, type(a) is Wrapper, b.elem.tolist()

    both(program)


def test_in_place_operators_return_their_argument():
    def program(library):
        Wrapper = wrapper(library)
        x = Wrapper(library.ones(2))
        y = x.add_(1)
        return y is x, x.elem.tolist()

    assert program(lamella) == (True, [2.0, 2.0])


def test_return_and_correct_aliasing():
    for library in LIBRARIES:
        dispatch, pytree = parts(library)

        class Two(library.Tensor):
            @staticmethod
            def __new__(cls, elem):
                return library.Tensor._make_wrapper_subclass(
                    cls, elem.size(), strides=elem.stride(), dtype=elem.dtype
                )

            def __init__(self, elem):
                self.elem = elem

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                inner = pytree.tree_map(lambda x: x.elem if isinstance(x, Two) else x, args)
                out = func(*inner, **(kwargs or {}))
                out = pytree.tree_map(lambda x: Two(x) if type(x) is library.Tensor else x, out)
                return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, out)

        x = Two(library.zeros(4))
        view = x.view(2, 2)
        assert type(view) is Two
        assert x.add_(1) is x
        before = x._version
        view.mul_(2)
        assert x.elem.tolist() == [2.0] * 4
        assert x._version == view._version and x._version >= before


def test_wrappers_have_no_memory():
    x = wrapper(lamella)(lamella.ones(2))
    for read in (
        lambda: x.numpy(),
        lambda: x.data_ptr(),
        lambda: x.tolist(),
        lambda: memoryview(x),
    ):
        with pytest.raises(RuntimeError, match="expected a tensor with memory, got a wrapper"):
            read()
    with pytest.raises(RuntimeError, match="expected a tensor with memory, got a wrapper"):
        x.__dlpack__()
    with dispatch_off(lamella), pytest.raises(RuntimeError) as caught:
        x + 1
    assert str(caught.value) == (
        "aten::add: expected tensors with memory, got a Wrapper, which only its __torch_dispatch__ "
        "can serve, and that is off"
    )


def test_elements_of_wrappers_are_asked_for():
    def program(library):
        log = []
        Wrapper = wrapper(library, log)
        value = Wrapper(library.tensor(2.5)).item()
        return value, log

    both(program)


def test_disabled_dispatch():
    class Plain(lamella.Tensor):
        __torch_dispatch__ = lamella._C._disabled_torch_dispatch_impl

    x = lamella.Tensor._make_subclass(Plain, lamella.ones(2))
    assert (x + 1).tolist() == [2.0, 2.0]


def test_make_wrapper_subclass_errors():
    class Plain(lamella.Tensor):
        pass

    with pytest.raises(RuntimeError, match="expected 'cls' to have a __torch_dispatch__"):
        lamella.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(TypeError, match="expected 'cls' to be a subclass of Tensor"):
        lamella.Tensor._make_wrapper_subclass(int, (2,))


def test_wrong_results_are_named():
    class Wrong(parts(lamella)[0].TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "text"

    x = lamella.ones(2)
    with pytest.raises(RuntimeError) as caught, Wrong():
        x + 1
    assert str(caught.value) == (
        "aten::add: expected its __torch_dispatch__ to return Tensor, got str"
    )


def test_modes_are_of_their_thread():
    x, seen = lamella.ones(2), []

    def other():
        x * 2
        with logger(lamella)() as log:
            x * 3
        seen.extend(log.calls)

    with logger(lamella)() as log:
        in_threads(other, 1)
        x + 1
    assert [call[0] for call in log.calls] == ["aten.add.Tensor"]
    assert [call[0] for call in seen] == ["aten.mul.Tensor"]


def test_views_made_under_a_mode_take_part_in_later_gradients():
    for library in LIBRARIES:
        x = library.zeros(2)
        w = library.ones(2, requires_grad=True)
        with logger(library)():
            view = x[0]
        x.add_(w * 3)
        view.backward()
        assert w.grad.tolist() == [3.0, 0.0]


def test_gradients_under_a_mode():
    def program(library):
        x = library.tensor([1.0, 2.0], requires_grad=True)
        with logger(library)() as log:
            y = (x.exp() * x).sum()
            y.backward()
        return x.grad.tolist(), any("mul" in call[0] for call in log.calls)

    both(program)


def test_plain_tensors_are_not_seen_afterwards():
    x = lamella.ones(2)
    with logger(lamella)() as log:
        x + 1
    x + 1
    assert len(log.calls) == 1


def test_large_tensors_and_threads():
    """Work that lets the GIL go comes back for its handlers."""
    x = lamella.ones(100_000, requires_grad=True)

    def work():
        for _ in range(5):
            with logger(lamella)() as log:
                (x * 2).sum(0)
            assert [call[0] for call in log.calls] == [
                "aten.mul.Tensor",
                "aten.sum.dim_IntList",
            ]

    in_threads(work)


def test_calls_leave_no_references():
    x = lamella.ones(2)
    func = lamella.ops.aten.add.Tensor
    Wrapper = wrapper(lamella)
    mode = logger(lamella)()
    watched = [x, func, mode, Wrapper]

    def calls():
        for _ in range(50):
            with mode:
                x + x
            y = Wrapper(x)
            (y + y).elem.tolist()
        mode.calls.clear()

    calls()
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    calls()
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == before
