"""Operators in modules, and modules as operators: the rows of the operator table as custom calls,
compared with eager calls; schemas, layers and checks of operators made from modules."""

import gc
import pathlib
import sys

import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from operator_rows import ROWS  # noqa: E402

# Rows that no module can say, and the words of the error that says why. The list can only shrink.
REFUSED = {}


def tensors_of(value):
    if isinstance(value, lamella.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def same(got, expected):
    assert len(got) == len(expected)
    for mine, plain in zip(got, expected):
        a, b = mine.detach(), plain.detach()
        assert a.dtype == b.dtype and a.shape == b.shape
        equal = (a == b) | ((a != a) & (b != b))
        assert bool(equal.all()), f"expected {b}, got {a}"


def detached(inputs):
    return [tensor.detach().clone() for tensor in inputs]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row):
    for dtype in row.dtypes:
        function, inputs = row.call(dtype)
        inputs = detached(inputs)
        graph = lamella.trace(function, *inputs, check=False)
        if row.path in REFUSED:
            with pytest.raises(RuntimeError, match=REFUSED[row.path]):
                hlo.from_trace(graph)
            return
        module = hlo.from_trace(graph)
        again = hlo.parse(str(module))
        assert str(again) == str(module)
        lamella.manual_seed(3)
        expected = tensors_of(function(*detached(inputs)))
        lamella.manual_seed(3)
        same(hlo.evaluate(again, *inputs), expected)


# ---- Graphs as modules ----


def error_of(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return str(caught.value)


def test_writes_become_results():
    def function(x, y):
        y = y * 2
        y.add_(x)
        x.mul_(3)
        return y, x.exp()

    x, y = lamella.tensor([1.0, 2.0]), lamella.tensor([5.0, 7.0])
    module = hlo.from_trace(lamella.trace(function, x.clone(), y, check=False))
    assert "input_output_alias={ {2}: (0, {}, may-alias) }" in str(module)
    given = [x.clone(), y.clone()]
    expected = [*function(*given), given[0]]
    same(hlo.evaluate(module, x, y), expected)
    assert x.tolist() == [1.0, 2.0]


def test_aliases_are_refused():
    def through_a_view(x):
        x[0].add_(1)
        return x * 2

    def read_of_a_view(x):
        y = x.clone()
        view = y[0]
        y.add_(1)
        return view * 2

    def strides(x):
        return lamella.as_strided(x[:, :2], (2,), (1,))

    for function, words in [
        (through_a_view, "expected 'x' to be written as a whole, got a write through a view"),
        (read_of_a_view, "expected %2 not to be written through another tensor over its memory"),
        (strides, "expected %1 to be contiguous and all of its memory, as the arrays of a module"),
    ]:
        graph = lamella.trace(function, lamella.ones(2, 3), check=False)
        assert words in error_of(hlo.from_trace, graph)

    # What the message advises.
    x = lamella.ones(2, 3)
    graph = lamella.trace(lamella.func.functionalize(through_a_view), x.clone(), check=False)
    module = hlo.from_trace(graph)
    expected = x.clone()
    result = through_a_view(expected)
    same(hlo.evaluate(module, x), [result, expected])


def test_constants_and_effects():
    weight = lamella.arange(6.0).reshape(2, 3)

    def function(x):
        return lamella.nn.functional.dropout(x @ weight, 0.5), x @ weight.t().contiguous().t()

    x = lamella.ones(4, 2)
    module = hlo.from_trace(lamella.trace(function, x, check=False))
    assert "custom_call_has_side_effect=true" in str(module)
    for seed in (0, 1):
        lamella.manual_seed(seed)
        expected = function(x)
        lamella.manual_seed(seed)
        same(hlo.evaluate(str(module), x), expected)


def test_gradients_in_a_module():
    model = lamella.nn.Sequential(
        lamella.nn.Linear(3, 4), lamella.nn.Tanh(), lamella.nn.Linear(4, 1)
    )

    def step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        return (loss, *lamella.autograd.grad(loss, list(model.parameters())))

    x, y = lamella.randn(5, 3), lamella.randn(5, 1)
    module = hlo.from_trace(lamella.trace(step, x, y, check=False))
    same(hlo.evaluate(module, x, y), list(step(x, y)))


# ---- Modules as operators ----

MULTIPLY_ADD = """HloModule muladd
ENTRY e {
  a = f32[2]{0} parameter(0)
  b = f32[2]{0} parameter(1)
  c = f32[] parameter(2)
  ab = f32[2]{0} custom-call(a, b), custom_call_target="aten::mul.Tensor"
  ROOT r = f32[2]{0} custom-call(ab, c), custom_call_target="aten::add.Tensor"
}"""
COUNTER = """HloModule counter, input_output_alias={ {1}: (0, {}, must-alias) }
ENTRY e {
  state = f32[2]{0} parameter(0)
  x = f32[2]{0} parameter(1)
  next = f32[2]{0} custom-call(state, x), custom_call_target="aten::add.Tensor"
  twice = f32[2]{0} custom-call(next), custom_call_target="aten::mul.Scalar", backend_config="2"
  ROOT r = (f32[2]{0}, f32[2]{0}) tuple(twice, next)
}"""


@pytest.fixture
def lib():
    library = lamella.library.Library("hlotest", "FRAGMENT")
    yield library
    library.close()


def test_module_is_an_operator(lib):
    op = hlo.as_operator(MULTIPLY_ADD, "hlotest::muladd", lib=lib)
    assert op is lamella.ops.hlotest.muladd.default
    assert str(op._schema) == "hlotest::muladd(Tensor a, Tensor b, Tensor c) -> Tensor"
    a, b = lamella.tensor([1.0, 2.0]), lamella.tensor([3.0, 4.0])
    assert op(a, b, 1).tolist() == [4.0, 9.0]
    assert op(a=a, b=b, c=lamella.tensor(2.5)).tolist() == [5.5, 10.5]
    # Not contiguous, and shared.
    wide = lamella.arange(4.0)
    assert op(wide[::2], wide[::2], 0).tolist() == [0.0, 4.0]
    assert op(a, b, 1).requires_grad is False

    assert error_of(op, lamella.ones(3), b, 1) == (
        "hlotest::muladd: expected 'a' to be float32[2], got float32[3]"
    )
    assert error_of(op, a.double(), b, 1) == (
        "hlotest::muladd: expected 'a' to be float32[2], got float64[2]"
    )
    assert op(a.to("meta"), b.to("meta"), lamella.ones((), device="meta")).shape == (2,)
    lamella.testing.opcheck(op, (a, b, lamella.tensor(1.0)))


def test_module_that_writes(lib):
    op = hlo.as_operator(COUNTER, "hlotest::counter", lib=lib)
    assert str(op._schema) == (
        "hlotest::counter(Tensor(a!) state, Tensor x) -> (Tensor, Tensor(a!))"
    )
    state, x = lamella.zeros(2), lamella.tensor([1.0, 2.0])
    before = state._version
    twice, returned = op(state, x)
    assert state.tolist() == [1.0, 2.0] and twice.tolist() == [2.0, 4.0]
    assert returned is state or returned.data_ptr() == state.data_ptr()
    assert state._version == before + 1
    # Written through a view.
    rows = lamella.zeros(2, 2)
    op(rows[:, 1], x)
    assert rows.tolist() == [[0.0, 1.0], [0.0, 2.0]]
    lamella.testing.opcheck(op, (lamella.zeros(2), x))

    def function(state, x):
        return op(state, x)[0] + state

    pure = lamella.func.functionalize(function)
    state = lamella.zeros(2)
    assert pure(state, x).tolist() == [3.0, 6.0] and state.tolist() == [1.0, 2.0]
    module = hlo.from_trace(lamella.trace(function, lamella.zeros(2), x, check=False))
    same(hlo.evaluate(module, lamella.zeros(2), x), [lamella.tensor([3.0, 6.0]), x])


def test_operator_goes_with_its_library():
    library = lamella.library.Library("hlotest", "FRAGMENT")
    op = hlo.as_operator(MULTIPLY_ADD, "hlotest::gone", lib=library)
    a = lamella.ones(2)
    caller = """HloModule m
ENTRY e {
  a = f32[2]{0} parameter(0)
  c = f32[] constant(3)
  ROOT r = f32[2]{0} custom-call(a, a, c), custom_call_target="hlotest::gone"
}"""
    program = hlo.compile(caller)
    assert program(a)[0].tolist() == [4.0, 4.0]
    where = f"{__file__}:"
    assert where in error_of(lambda: hlo.as_operator(MULTIPLY_ADD, "hlotest::gone"))
    library.close()
    with pytest.raises(RuntimeError):
        op(a, a, 1)
    assert "hlo: 'r' (custom-call" in error_of(program, a)
    assert "near names" in error_of(hlo.compile, caller.replace("::gone", "::muladx"))
    gc.collect()


def test_module_cannot_call_itself(lib):
    own = MULTIPLY_ADD.replace("aten::add.Tensor", "hlotest::own")
    assert "expected a target that is registered for Host, got 'hlotest::own'" in error_of(
        lambda: hlo.as_operator(own, "hlotest::own", lib=lib)
    )
    # Not even through one that was taken away when it was compiled.
    one = """HloModule one
ENTRY e {
  a = f32[2]{0} parameter(0)
  ROOT r = f32[2]{0} custom-call(a), custom_call_target="OTHER"
}"""
    first = lamella.library.Library("hlotest", "FRAGMENT")
    hlo.as_operator(one.replace("OTHER", "aten::neg"), "hlotest::ping", lib=first)
    pong = hlo.as_operator(one.replace("OTHER", "hlotest::ping"), "hlotest::pong", lib=lib)
    first.close()
    impl = lamella.library.Library("hlotest", "FRAGMENT")
    impl.define("ping(Tensor a) -> Tensor")
    impl.impl("ping", lambda a: pong(a), "CompositeExplicitAutograd")
    try:
        assert "expected at most 200 nested operators that run modules" in error_of(
            pong, lamella.ones(2)
        )
    finally:
        impl.close()


def test_layers_see_the_operator(lib):
    op = hlo.as_operator(MULTIPLY_ADD, "hlotest::layers", lib=lib)
    a, b, c = lamella.randn(3, 2), lamella.randn(2), lamella.tensor(1.0)
    with pytest.warns(UserWarning, match="no batching rule"):
        batched = lamella.vmap(op, (0, None, None))(a, b, c)
    same([batched], [a * b + c])
    graph = lamella.trace(lambda a: op(a, b, c) * 2, a[0], check=False)
    assert [node.op for node in graph.nodes][0] == "hlotest::layers"
    same(hlo.evaluate(hlo.from_trace(graph), a[1]), [(a[1] * b + c) * 2])

    x = a[0].clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="hlotest::layers: has no derivative"):
        op(x, b, c).sum().backward()

    def backward(ctx, grad):
        (b,) = ctx.saved_tensors
        return grad * b, None, None

    lamella.library.register_autograd(
        "hlotest::layers",
        backward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1]),
        lib=lib,
    )
    op(x, b, c).sum().backward()
    same([x.grad], [b])


def test_what_cannot_be_an_operator():
    for text, words in [
        (
            "s4[2]{0}",
            "expected parameter 'p' to be an array of a type that tensors have, got s4[2]",
        ),
        ("token[]", "expected parameter 'p' to be an array of a type that tensors have, got token"),
    ]:
        module = f"HloModule m\nENTRY e {{\n  ROOT p = {text} parameter(0)\n}}"
        assert words in error_of(lambda m=module: hlo.as_operator(m, "hlotest::no"))
    assert "expected a name with a namespace, as ns::name, got 'no'" in error_of(
        lambda: hlo.as_operator(MULTIPLY_ADD, "no")
    )


def test_random_operators_draw_in_order():
    module = """HloModule m
ENTRY e {
  p = f32[3]{0} constant({0.5, 0.5, 0.5})
  a = f32[3]{0} custom-call(p), custom_call_target="aten::bernoulli", EFFECT
  b = f32[3]{0} custom-call(p), custom_call_target="aten::rand_like", EFFECT
  ROOT r = (f32[3]{0}) tuple(b)
}"""
    lamella.manual_seed(7)
    got = hlo.evaluate(module.replace("EFFECT", "custom_call_has_side_effect=true"))
    lamella.manual_seed(7)
    lamella.bernoulli(lamella.full((3,), 0.5))
    same(got, [lamella.rand(3)])


def test_facts_of_a_call():
    shape, arguments, aliases, effect = lamella._hlo.operator_call_facts(
        "aten::max_pool2d_with_indices", ["f32[1,2,8,8]"], "[2, 2]"
    )
    assert str(shape).startswith("(f32[1,2,4,4]") and not effect and aliases == {}
    assert arguments == "(%0, [2, 2], [], [0, 0], [1, 1], False)"
    shape, _, aliases, _ = lamella._hlo.operator_call_facts("aten::relu_", ["f32[2]"], "")
    assert aliases == {(): 0}


def test_library_spelling(lib):
    op = lamella.library.from_hlo("hlotest::spelled", MULTIPLY_ADD, lib=lib)
    assert op(lamella.ones(2), lamella.ones(2), 2).tolist() == [3.0, 3.0]
    assert f"{__file__}:" in error_of(
        lambda: lamella.library.from_hlo("hlotest::spelled", MULTIPLY_ADD, lib=lib)
    )


def test_builder_asks_the_operator():
    def function(x, y):
        total = hlo.operator_call("aten::add.Tensor", [x, y], "alpha=2")
        return hlo.operator_call("aten::mul_.Scalar", [total], "3")

    module = hlo.computation(function, "f32[2,1]", "f32[3]")
    assert 'output_to_operand_aliasing={{}: (0, {})}, backend_config="(%0, 3)"' in str(module)
    x, y = lamella.randn(2, 1), lamella.randn(3)
    same(hlo.evaluate(module, x, y), [(x + 2 * y) * 3])

    def mistaken(x):
        return hlo.operator_call("aten::sum.dim_IntList", [x], "dims=[0]")

    assert error_of(hlo.computation, mistaken, "f32[2]") == (
        "aten::sum.dim_IntList: column 6 of the arguments: expected the name of an argument, got "
        "'dims'; did you mean 'dim'?"
    )

    def by_hand(x):
        return hlo.operator_call("aten::nonzero", [x], shape="s64[2,1]")

    module = hlo.computation(by_hand, "f32[3]")
    same(hlo.evaluate(module, lamella.tensor([0.0, 1.0, 2.0])), [lamella.tensor([[1], [2]])])
    assert "expected result 0 of aten::nonzero to be s64[2,1], got s64[1,1]" in error_of(
        hlo.evaluate, module, lamella.tensor([0.0, 1.0, 0.0])
    )

    def numbers():
        builder = hlo.Builder("numbers")
        hlo.operator_call("aten::arange", [], "4, dtype=float32", builder=builder)
        return builder.build()

    same(hlo.evaluate(numbers()), [lamella.arange(4.0)])
