"""Custom operators: schemas from type hints, kernels, gradients, and what they refuse."""

# ruff: noqa: UP006, UP035

import gc
import typing
from typing import List, Optional, Sequence, Tuple, Union  # noqa: UP035

import pytest
import torch

import lamella
from lamella import Tensor
from lamella.library import custom_op, infer_schema

Number = Union[int, float, bool]  # noqa: UP007


def hinted(library):
    """Functions by name, with the hints in one library's types."""
    T = library.Tensor

    def simple(x: T, n: int, f: float = 1.0, s: str = "a", o: Optional[T] = None) -> T: ...
    def keywords(x: T, *, q: Number = 2, b: bool = True) -> Tuple[T, List[T], int]: ...
    def lists(
        x: T,
        a: Sequence[int],
        b: List[int],
        c: Optional[Sequence[int]],
        d: Sequence[T],
        e: List[Optional[T]],
        f: Sequence[float],
        g: Sequence[bool],
        h: Sequence[Number],
    ) -> None: ...
    def kinds(
        x: T,
        d: library.dtype,
        v: library.device,
        w: Optional[library.device] = None,
        n: Optional[Number] = None,
        t: library.dtype = library.float32,
        i: Optional[int] = None,
        m: float = 1e-5,
    ) -> bool: ...
    def modern(x: list[T], y: T | None, z: list[int], k: "int") -> list[T]: ...
    def scalar(self: T) -> Number: ...
    def two(x: T, y: Sequence[T], z: Optional[T]) -> float: ...

    return {name: value for name, value in locals().items() if name not in ("T", "library")}


@pytest.mark.parametrize("name", hinted(lamella))
def test_schemas_of_hints_are_pytorchs(name):
    for writes in [(), "unknown", ("x",)]:
        if writes == ("x",) and name == "scalar":
            writes = ("self",)
        for own in (None, "op"):
            expected = torch.library.infer_schema(
                hinted(torch)[name], mutates_args=writes, op_name=own
            )
            assert infer_schema(hinted(lamella)[name], mutates_args=writes, op_name=own) == expected
            schema = expected if own else f"op{expected}"
            assert lamella._C._parse_schema(schema)


def wrong(text, function, mutates_args=()):
    with pytest.raises(ValueError) as caught:
        infer_schema(function, mutates_args=mutates_args)
    assert str(caught.value) == text
    return True


def test_wrong_hints():
    def no_hint(x): ...
    def many(*x): ...
    def odd(x: dict) -> Tensor: ...
    def pair(x: Tensor, y: Tuple[int, int]) -> Tensor: ...
    def nothing(x: Tensor): ...
    def returned(x: Tensor) -> dict: ...
    def number(x: Tensor, n: int) -> Tensor: ...

    text = lamella._infer_schema._PARAMETERS_TEXT
    assert wrong(
        "infer_schema: expected a type hint for 'x', got none; the function is (x)", no_hint
    )
    assert wrong(
        "infer_schema: expected 'x' to be an argument that can be given by name; the function is "
        "(*x)",
        many,
    )
    assert wrong(
        f"infer_schema: expected the hint of 'x' to be one of {text}, got <class 'dict'>; the "
        "function is (x: dict) -> lamella.Tensor",
        odd,
    )
    assert wrong(
        f"infer_schema: expected the hint of 'y' to be one of {text}, got typing.Tuple[int, int]; "
        "use a List instead of a Tuple; the function is (x: lamella.Tensor, y: "
        "Tuple[int, int]) -> lamella.Tensor",
        pair,
    )
    assert wrong(
        "infer_schema: expected a type hint for what it returns, got none; the function is "
        "(x: lamella.Tensor)",
        nothing,
    )
    assert wrong(
        "infer_schema: expected it to return one of Tensor, Tensor[], SymInt, float, bool, Scalar, "
        "got <class 'dict'>; the function is (x: lamella.Tensor) -> dict",
        returned,
    )
    end = "; the function is (x: lamella.Tensor, n: int) -> lamella.Tensor"
    assert wrong(
        "infer_schema: expected 'mutates_args' to name tensors, got 'n', which is <class 'int'>"
        + end,
        number,
        ("n",),
    )
    assert wrong(
        "infer_schema: expected 'mutates_args' to name arguments of the function, got ['y']" + end,
        number,
        ("y",),
    )
    assert wrong(
        "infer_schema: expected 'mutates_args' to be names of arguments or 'unknown', got 'all'",
        number,
        "all",
    )
    # PyTorch refuses the same ones.
    for function in (no_hint, many, odd, pair, nothing, returned):
        function.__annotations__ = {
            k: torch.Tensor if v is Tensor else v for k, v in function.__annotations__.items()
        }
        with pytest.raises(ValueError):
            torch.library.infer_schema(function, mutates_args=())


def scaled_of(library, name="custom::scaled"):
    T = library.Tensor

    @library.library.custom_op(name, mutates_args=())
    def scaled(x: T, factor: float = 2.0) -> T:
        """Times a number."""
        return x * factor

    return scaled


def test_a_custom_operator():
    for library in (lamella, torch):
        op = scaled_of(library)
        x = library.ones(2)
        assert op(x).tolist() == [2.0, 2.0]
        assert op(x, 3.0).tolist() == [3.0, 3.0]
        assert op(x, factor=4.0).tolist() == [4.0, 4.0]
        assert library.ops.custom.scaled(x).tolist() == [2.0, 2.0]
        assert library.ops.custom.scaled.default(x=x).tolist() == [2.0, 2.0]
        assert str(op._opoverload._schema) == (
            "custom::scaled(Tensor x, float factor=2.) -> Tensor"
            if library is torch
            else "custom::scaled(Tensor x, float factor=2.0) -> Tensor"
        )
        assert op._qualname == "custom::scaled"
    assert repr(op) == "<CustomOpDef(custom::scaled)>"


def test_mistakes_in_calls():
    op = scaled_of(lamella)
    with pytest.raises(TypeError) as caught:
        op("text")
    assert str(caught.value) == (
        "custom::scaled: got (str), which does not fit\n"
        "  custom::scaled(Tensor x, float factor=2.0)\n"
        "    'x' (position 1): expected Tensor, got str"
    ) or "'x' (position 1): expected Tensor, got str" in str(caught.value)
    with pytest.raises(ValueError) as caught:
        custom_op("plain", lambda x: x, mutates_args=())
    assert str(caught.value) == ("custom_op: expected a name such as 'mylib::twice', got 'plain'")
    with pytest.raises(ValueError) as caught:
        custom_op("named::f", lambda x: x, mutates_args=("x",), schema="(Tensor x) -> Tensor")
    assert str(caught.value) == (
        "custom_op: expected 'mutates_args' to name what the schema of 'named::f' writes, [], got "
        "['x']"
    )


def test_an_operator_stays_until_another_of_its_name_comes():
    scaled_of(lamella, "custom_gone::scaled")
    packet = lamella.ops.custom_gone.scaled
    gc.collect()
    assert packet(lamella.ones(1)).tolist() == [2.0]
    again = scaled_of(lamella, "custom_gone::scaled")
    assert packet(lamella.ones(1)).tolist() == [2.0]
    newer = scaled_of(lamella, "custom_gone::scaled")
    assert newer(lamella.ones(1)).tolist() == [2.0] and again is not newer


def test_gradients():
    def program(library):
        op = scaled_of(library, "custom_grad::scaled")

        def setup(ctx, inputs, output):
            x, ctx.factor = inputs
            ctx.save_for_backward(x, output)

        def backward(ctx, grad):
            x, output = ctx.saved_tensors
            assert output.tolist() == [f * ctx.factor for f in x.tolist()]
            return grad * ctx.factor, None

        op.register_autograd(backward, setup_context=setup)
        x = library.tensor([1.0, 2.0], requires_grad=True)
        y = op(x, 3.0)
        assert y.requires_grad and y.grad_fn is not None
        y.sum().backward()
        z = op(x)
        with library.no_grad():
            assert not op(x).requires_grad
        # Below one that is not needed.
        assert not op(x.detach()).requires_grad
        return x.grad.tolist(), z.tolist()

    assert program(lamella) == program(torch)


def test_second_derivatives():
    def program(library):
        T = library.Tensor

        def cube(x: T) -> T:
            return x * x * x

        op = library.library.custom_op("custom_second::cube", cube, mutates_args=())
        op.register_autograd(
            lambda ctx, g: g * 3 * ctx.saved_tensors[0] * ctx.saved_tensors[0],
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
        )
        x = library.tensor([2.0], requires_grad=True)
        (first,) = library.autograd.grad(op(x), x, create_graph=True)
        (second,) = library.autograd.grad(first, x)
        return first.tolist(), second.tolist()

    assert program(lamella) == program(torch) == ([12.0], [12.0])


def test_several_results_and_lists_with_gradients():
    def program(library):
        T = library.Tensor

        def two(x: T, n: int) -> Tuple[T, T]:
            return x * n, x + n

        def total(xs: List[T]) -> T:
            return xs[0] + xs[1]

        pair = library.library.custom_op("custom_two::two", two, mutates_args=())

        def setup(ctx, inputs, output):
            ctx.n = inputs[1]

        pair.register_autograd(lambda ctx, a, b: (a * ctx.n + b, None), setup_context=setup)
        summed = library.library.custom_op("custom_two::total", total, mutates_args=())
        summed.register_autograd(lambda ctx, g: [g, g * 2])
        x = library.tensor([1.0], requires_grad=True)
        a, b = pair(x, 3)
        summed([a, b]).backward()
        return a.tolist(), b.tolist(), x.grad.tolist()

    assert program(lamella) == program(torch)


def test_without_a_gradient_backward_says_so():
    op = scaled_of(lamella, "custom_none::scaled")
    x = lamella.ones(1, requires_grad=True)
    with pytest.raises(NotImplementedError, match="custom_none::scaled: has no derivative"):
        op(x).backward()


def test_writes():
    for library in (lamella, torch):
        T = library.Tensor

        def add_one(x: T) -> None:
            x.add_(1)

        op = library.library.custom_op("custom_writes::add_one", add_one, mutates_args={"x"})
        x = library.zeros(2)
        before = x._version
        assert op(x) is None
        assert x.tolist() == [1.0, 1.0] and x._version > before


def test_results_must_be_new():
    def program(library):
        T = library.Tensor
        errors = []

        def same(x: T) -> T:
            return x

        def view(x: T) -> T:
            return x[:1]

        def twice(x: T) -> Tuple[T, T]:
            y = x.clone()
            return y, y

        for function in (same, view, twice):
            op = library.library.custom_op(
                f"custom_alias::{function.__name__}", function, mutates_args=()
            )
            with pytest.raises(RuntimeError) as caught:
                op(library.ones(2))
            errors.append(str(caught.value))
        return errors

    program(torch)
    end = "; return a clone"
    start = "expected its Python kernel to return new tensors, got one that shares memory with"
    assert program(lamella) == [
        f"custom_alias::same: {start} an argument{end}",
        f"custom_alias::view: {start} an argument{end}",
        f"custom_alias::twice: {start} another result{end}",
    ]


def test_kernels_for_devices():
    def program(library):
        T = library.Tensor

        @library.library.custom_op("custom_devices::which", mutates_args=(), device_types="cpu")
        def which(x: T) -> int:
            return 1

        @which.register_kernel("cuda")
        def _(x):
            return 2

        numbers = [which(library.ones(1))]
        scaled = scaled_of(library, "custom_devices::scaled")
        scaled.register_kernel("cpu", lambda x, factor=2.0: x * 0)
        numbers.append(scaled(library.ones(1)).item())
        with scaled.set_kernel_enabled("cpu", False):
            numbers.append(scaled(library.ones(1)).item())
        numbers.append(scaled(library.ones(1)).item())
        return numbers

    assert program(lamella) == program(torch) == [1, 0.0, 2.0, 0.0]


def test_shapes_without_elements():
    def program(library):
        op = scaled_of(library, "custom_fake::scaled")
        x = library.empty(2, 3, device="meta")
        with pytest.raises(RuntimeError):
            op(x)

        @op.register_fake
        def _(x, factor=2.0):
            return library.empty_like(x)

        y = op(x)
        return tuple(y.shape), y.device.type

    assert program(lamella) == program(torch) == ((2, 3), "meta")
    op = scaled_of(lamella, "custom_fake::other")
    with pytest.raises(NotImplementedError) as caught:
        op(lamella.empty(1, device="meta"))
    assert str(caught.value) == (
        "custom_fake::other: has no kernel that computes the shapes of its results; write one with "
        "other.register_fake"
    )


def test_sizes_that_depend_on_data():
    op = scaled_of(lamella, "custom_ctx::scaled")

    @op.register_fake
    def _(x, factor=2.0):
        return lamella.empty(lamella.library.get_ctx().new_dynamic_size())

    with pytest.raises(NotImplementedError) as caught:
        op(lamella.empty(1, device="meta"))
    assert str(caught.value) == (
        "new_dynamic_size: sizes that depend on data are not supported; expected the results' "
        "shapes to follow from the arguments' shapes"
    )
    with pytest.raises(RuntimeError) as caught:
        lamella.library.get_ctx()
    assert str(caught.value) == (
        "get_ctx: expected to be called by a function that register_fake() registered"
    )


def test_arguments_are_those_of_the_schema_however_they_are_given():
    """The direct way and the boxed way give a kernel equal arguments."""
    seen = []

    def many(
        x: Tensor, n: int, f: float, xs: List[Tensor], ns: Sequence[int], flag: bool = False
    ) -> Tensor:
        seen.append((type(n), n, type(f), f, [type(e) for e in xs], ns, flag))
        return x.clone()

    op = custom_op("custom_many::many", many, mutates_args=())
    x = lamella.ones(1)
    import numpy

    op(x, 1, 2.0, [x], [3, 4], True)
    direct = seen[-1]
    for call in (
        lambda: op(x, numpy.int64(1), 2, (x,), (3, 4), numpy.bool_(True)),
        lambda: op(x, 1, f=2.0, xs=[x], ns=[3, 4], flag=True),
        lambda: lamella.ops.custom_many.many.default(x, 1, 2.0, [x], ns=(3, 4), flag=True),
    ):
        call()
        assert seen[-1] == direct
    op(x, 1, 2.0, [x], [3, 4])
    assert seen[-1][-1] is False


def test_results_are_those_of_the_schema():
    def number(x: Tensor) -> float:
        return 1  # an int

    def pair(x: Tensor) -> Tuple[Tensor, int]:
        return [x.clone(), True]

    def text(x: Tensor) -> Tensor:
        return "text"

    x = lamella.ones(1)
    value = custom_op("custom_results::number", number, mutates_args=())(x)
    assert value == 1.0 and type(value) is float
    with pytest.raises(RuntimeError) as caught:
        custom_op("custom_results::text", text, mutates_args=())(x)
    assert str(caught.value) == (
        "custom_results::text: expected its Python kernel to return Tensor, got str"
    )


def test_exceptions_of_kernels_pass_unchanged():
    error = KeyError("mine")

    def fails(x: Tensor) -> Tensor:
        raise error

    op = custom_op("custom_raises::fails", fails, mutates_args=())
    for call in (lambda: op(lamella.ones(1)), lambda: op(x=lamella.ones(1))):
        with pytest.raises(KeyError) as caught:
            call()
        assert caught.value is error


def test_layers_above_are_not_skipped():
    """A mode, or a tensor of another layer, takes the boxed way."""
    from lamella.utils._python_dispatch import TorchDispatchMode

    op = scaled_of(lamella, "custom_layers::scaled")
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        op(lamella.ones(2))
    assert seen == ["aten.ones.default", "custom_layers.scaled.default"]
    assert lamella.vmap(op)(lamella.ones(3, 2)).shape == (3, 2)


def test_opcheck():
    op = scaled_of(lamella, "custom_check::scaled")
    op.register_fake(lambda x, factor=2.0: lamella.empty_like(x))

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    op.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup)
    numbers = lamella.get_rng_state()
    found = lamella.library.opcheck(op, (lamella.ones(2, 3, requires_grad=True), 3.0))
    assert lamella.equal(lamella.get_rng_state(), numbers)
    assert found == {
        "test_schema": "SUCCESS",
        "test_autograd_registration": "SUCCESS",
        "test_faketensor": "SUCCESS",
        "test_aot_dispatch_dynamic": "SUCCESS",
    }


def test_opcheck_takes_arguments_as_they_are():
    @lamella.library.custom_op("custom_check::cut", mutates_args=())
    def cut(x: Tensor, end: int) -> Tensor:
        return x[:, :end].clone()

    @cut.register_fake
    def _(x, end):
        return x.new_empty(x.shape[0], end)  # right for contiguous tensors alone

    assert set(lamella.library.opcheck(cut, (lamella.ones(3, 4), 2)).values()) == {"SUCCESS"}
    with pytest.raises(lamella.testing.OpCheckError, match="wrong-meta"):
        lamella.testing.opcheck(lamella.ops.custom_check.cut.default, (lamella.ones(3, 4), 2))


def test_hints_as_text():
    namespace = {"Tensor": Tensor}
    exec(
        "from __future__ import annotations\ndef f(x: Tensor, n: int = 1) -> Tensor: return x * n",
        namespace,
    )
    assert infer_schema(namespace["f"], mutates_args=()) == "(Tensor x, SymInt n=1) -> Tensor"
    assert typing.get_type_hints(namespace["f"])["x"] is Tensor


def test_calls_leave_no_references():
    import sys

    result, x = lamella.ones(1), lamella.ones(1)
    leaf = lamella.ones(1, requires_grad=True)

    def same(x: Tensor, n: int = 1) -> Tensor:
        return result

    def grown(x: Tensor) -> Tensor:
        return x.clone()

    def backward(ctx, grad):
        return grad

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    op = custom_op("custom_references::same", same, mutates_args=())
    recorded = custom_op("custom_references::grown", grown, mutates_args=())
    recorded.register_autograd(backward, setup_context=setup)
    watched = [result, x, leaf, same, grown, backward, setup]

    def calls():
        for _ in range(50):
            op(x)
            op(x=x)
            recorded(leaf).backward()
            recorded(x=leaf).backward()
            recorded(x)
        leaf.grad = None

    calls()
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    calls()
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == before


def test_overloads():
    @custom_op("overloaded::f", mutates_args=())
    def one(x: lamella.Tensor) -> lamella.Tensor:
        return x + 1

    @custom_op("overloaded::f.two", mutates_args=())
    def two(x: lamella.Tensor, y: lamella.Tensor) -> lamella.Tensor:
        return x * y

    two.register_autograd(lambda ctx, grad: (grad * 2, grad * 3))
    x = lamella.tensor([3.0], requires_grad=True)
    assert lamella.ops.overloaded.f(x).tolist() == one(x).tolist() == [4.0]
    y = lamella.ops.overloaded.f(x, x)
    assert y.tolist() == two(x, x).tolist() == lamella.ops.overloaded.f.two(x, x).tolist() == [9.0]
    y.backward()
    assert x.grad.tolist() == [5.0]


@pytest.mark.parametrize("with_backward", [False, True])
def test_functions_run_without_recording(with_backward):
    modes = []

    @custom_op("unrecorded::f", mutates_args=())
    def f(x: lamella.Tensor) -> lamella.Tensor:
        modes.append(lamella.is_grad_enabled())
        return lamella.from_numpy(x.numpy() * 2)

    if with_backward:
        f.register_autograd(lambda ctx, grad: grad * 2)
    x = lamella.tensor([3.0], requires_grad=True)
    y = f(x)
    assert y.tolist() == [6.0] and y.requires_grad and lamella.is_grad_enabled()
    assert modes == [False]
