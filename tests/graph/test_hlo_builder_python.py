"""lamella.hlo.Builder: computations built in Python, run, and compared with NumPy and JAX."""

from __future__ import annotations

import ast
import pathlib

import numpy as np
import pytest

import lamella
from lamella import hlo


def run(function, *arrays, **options):
    """The result of a function of ops for arrays, also after a round trip through text."""
    shapes = [hlo.Shape.array(element(a), a.shape) for a in arrays]
    module = hlo.computation(function, *shapes, name="f")
    again = hlo.parse(str(module))
    assert str(again) == str(module)
    return [r.numpy() for r in hlo.evaluate(again, *arrays)]


def element(array):
    names = {"f": "f", "i": "s", "u": "u", "c": "c"}
    if array.dtype.kind == "b":
        return "pred"
    return f"{names[array.dtype.kind]}{array.dtype.itemsize * 8}"


X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4 + 0.25
Y = np.array([[2, -1, 3], [0.5, 4, -2]], np.float32)
N = np.array([[5, -3, 7], [1, 2, -8]], np.int32)


@pytest.mark.parametrize(
    "name, reference",
    [
        ("add", np.add),
        ("sub", np.subtract),
        ("mul", np.multiply),
        ("div", np.divide),
        ("rem", np.fmod),
        ("max", np.maximum),
        ("min", np.minimum),
        ("atan2", np.arctan2),
        ("pow", np.power),
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("ge", np.greater_equal),
        ("gt", np.greater),
        ("le", np.less_equal),
        ("lt", np.less),
    ],
)
def test_binary(name, reference):
    (result,) = run(getattr(hlo, name), X, Y)
    np.testing.assert_allclose(result, reference(X, Y), rtol=1e-6)
    (result,) = run(lambda x: getattr(hlo, name)(x, 2.0), X)
    np.testing.assert_allclose(result, reference(X, np.float32(2)), rtol=1e-6)


@pytest.mark.parametrize(
    "name, reference",
    [
        ("abs", np.abs),
        ("exp", np.exp),
        ("expm1", np.expm1),
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("log", np.log),
        ("log1p", np.log1p),
        ("sign", np.sign),
        ("cos", np.cos),
        ("sin", np.sin),
        ("tan", np.tan),
        ("tanh", np.tanh),
        ("sqrt", np.sqrt),
        ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("cbrt", np.cbrt),
        ("neg", np.negative),
        ("square", np.square),
        ("reciprocal", np.reciprocal),
        ("is_finite", np.isfinite),
        ("round_nearest_even", np.rint),
        ("logistic", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_unary(name, reference):
    (result,) = run(getattr(hlo, name), X)
    np.testing.assert_allclose(result, reference(X), rtol=2e-6)


def test_python_s_operators():
    results = run(
        lambda x, n: (
            1 + x,
            1 - x,
            2 * x / 4,
            3 / x,
            -x,
            abs(n),
            n % 3,
            x**2,
            n & 3,
            n | 8,
            n ^ 1,
            ~n,
            n << 1,
            n >> 1,
            (x > 1) & (x <= 1.25),
            x == 1.0,
        ),
        X,
        N,
    )
    wanted = [
        1 + X, 1 - X, 2 * X / 4, 3 / X, -X, abs(N), np.fmod(N, 3), X**2, N & 3, N | 8, N ^ 1, ~N,
        N << 1, N >> 1, (X > 1) & (X <= 1.25), X == 1,
    ]  # fmt: skip
    for result, right in zip(results, wanted):
        np.testing.assert_allclose(result, right, rtol=1e-6)


def test_indexing():
    keys = [0, -1, (0, 1), slice(None, None, -1), (Ellipsis, slice(0, 2)), (None, 1), (slice(1), 2)]
    results = run(lambda x: [x[key] for key in keys], X)
    for key, result in zip(keys, results):
        np.testing.assert_array_equal(result, X[key])
    with pytest.raises(IndexError, match="expected an index below 2, got 2"):
        run(lambda x: x[2], X)


def test_moving_elements():
    results = run(
        lambda x: (
            hlo.broadcast(x, [2]),
            hlo.broadcast_in_dim(x, [2, 4, 3], [0, 2]),
            hlo.reshape(x, [3, 2]),
            hlo.transpose(x, [1, 0]),
            hlo.rev(x, [0]),
            hlo.slice(x, [0, 1], [2, 3], [1, 1]),
            hlo.dynamic_slice(x, [1, 1], [1, 2]),
            hlo.dynamic_update_slice(x, np.zeros((1, 2), np.float32), [0, 1]),
            hlo.concat_in_dim([x, x], 0),
            hlo.pad(x, 0.0, [(1, 0, 0), (0, 1, 1)]),
            hlo.select(x > 1, x, 0.0),
            hlo.clamp(0.5, x, 1.0),
            hlo.convert_element_type(x, "s32"),
            hlo.convert_element_type(x, lamella.float64),
            hlo.convert_element_type(x, np.float16),
        ),
        X,
    )
    updated = X.copy()
    updated[0, 1:] = 0
    padded = np.zeros((3, 6), np.float32)
    padded[1:, 0:5:2] = X
    wanted = [
        np.stack([X, X]), np.repeat(X[:, None], 4, 1), X.reshape(3, 2), X.T, X[::-1], X[:, 1:],
        X[1:, 1:], updated, np.concatenate([X, X]), padded, np.where(X > 1, X, 0),
        np.clip(X, 0.5, 1), X.astype(np.int32), X.astype(np.float64), X.astype(np.float16),
    ]  # fmt: skip
    for result, right in zip(results, wanted):
        np.testing.assert_array_equal(result, right)
        assert result.dtype == right.dtype


def test_reductions_and_sorts():
    results = run(
        lambda x, n: (
            hlo.reduce(x, 0.0, "add", [0]),
            hlo.reduce(x, -np.inf, lambda a, b: hlo.max(a, b), [1]),
            hlo.reduce_all(n, 1, "mul"),
            hlo.reduce([x, n], [0.0, 0], lambda a, b, c, d: (a + c, hlo.max(b, d)), [0]),
            hlo.reduce_window(x, 0.0, "add", [1, 2], [1, 1], "VALID"),
            hlo.reduce_window(x, 0.0, "add", [1, 2], [1, 1], [(0, 0), (1, 0)], [1, 1], [1, 1]),
            hlo.sort(n, dimension=1),
            hlo.sort(n, "gt", 0),
            hlo.sort([n, x], lambda a, b, c, d: a < b, 1),
            hlo.map([x, x], lambda a, b: a * b + 1.0),
            hlo.top_k(x, 2, True),
        ),
        X,
        N,
    )
    order = np.argsort(N, 1)
    wanted = [
        X.sum(0), X.max(1), N.prod(), X.sum(0), N.max(0), X[:, :2] + X[:, 1:],
        X + np.pad(X, ((0, 0), (1, 0)))[:, :3], np.sort(N, 1), -np.sort(-N, 0), np.sort(N, 1),
        np.take_along_axis(X, order, 1), X * X + 1, X[:, :0:-1], [[2, 1], [2, 1]],
    ]  # fmt: skip
    assert len(results) == len(wanted)
    for result, right in zip(results, wanted):
        np.testing.assert_allclose(result, right, rtol=1e-6)


def test_control_flow():
    def function(n, x):
        state = hlo.while_(
            lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * 2.0), n.builder.tuple([n, x])
        )
        branch = hlo.conditional(n > 0, x, lambda v: v + 1.0, x, lambda v: v - 1.0)
        third = hlo.switch(n, [lambda v: v, lambda v: -v], [x, x])
        called = hlo.call(lambda v, w: v + w, [x, 1.0])
        return state[1], branch, third, called

    results = run(function, np.array(1, np.int32), X)
    for result, right in zip(results, [X * 8, X + 1, -X, X + 1]):
        np.testing.assert_array_equal(result, right)


def test_gather_scatter_and_products():
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = np.array([[3], [1]], np.int32)

    def function(t, r, x):
        taken = hlo.gather(
            t,
            r,
            hlo.GatherDimensionNumbers(
                offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
            ),
            [1, 3],
        )
        put = hlo.scatter(
            t,
            r,
            x,
            "add",
            {
                "update_window_dims": [1],
                "inserted_window_dims": [0],
                "scatter_dims_to_operand_dims": [0],
                "index_vector_dim": 1,
            },
        )
        product = hlo.dot_general(
            x, t, hlo.DotDimensionNumbers([1], [1]), preferred_element_type="f64"
        )
        return taken, put, product, hlo.dot(x, hlo.transpose(t, [1, 0]))

    taken, put, product, dot = run(function, table, rows, X)
    right = table.copy()
    np.add.at(right, rows[:, 0], X)
    np.testing.assert_array_equal(taken, table[rows[:, 0]])
    np.testing.assert_array_equal(put, right)
    np.testing.assert_allclose(product, X.astype(np.float64) @ table.T, rtol=1e-6)
    np.testing.assert_allclose(dot, X @ table.T, rtol=1e-6)


def test_convolution_against_jax():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 8, 7)).astype(np.float32)
    kernel = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)

    def function(x, k):
        return (
            hlo.conv(x, k, [1, 2], "SAME", 1, 1),
            hlo.conv_general_dilated(
                x, k, [1, 1], [(1, 0), (0, 2)], [1, 2], [2, 1], hlo.ConvolutionDimensionNumbers(),
                1, 1,
            ),
        )  # fmt: skip

    convolve = jax.lax.conv_general_dilated
    wanted = [
        convolve(image, kernel, (1, 2), "SAME"),
        convolve(image, kernel, (1, 1), [(1, 0), (0, 2)], (1, 2), (2, 1)),
    ]
    for result, right in zip(run(function, image, kernel), wanted):
        np.testing.assert_allclose(result, right, rtol=2e-4, atol=2e-5)


def test_a_custom_call():
    @hlo.custom_call_target("builder_doubles")
    def double(x):
        return x * 2

    try:
        (result,) = run(lambda x: hlo.custom_call("builder_doubles", [x], "f32[2,3]"), X)
        np.testing.assert_array_equal(result, X * 2)
    finally:
        hlo.remove_custom_call_target("builder_doubles")


def test_operators_and_replicas():
    results = run(
        lambda x: (
            hlo.operator_call("aten::add.Tensor", [x, x], "alpha=2"),
            hlo.full_like(x, 2),
            hlo.cross_replica_sum(x),
            hlo.all_reduce(x, "add"),
            hlo.reduce_scatter(x, "add", 0, 1),
            hlo.all_gather(x, 0, 1),
        ),
        X,
    )
    for result, right in zip(results, [X * 3, np.full_like(X, 2), X, X, X, X]):
        np.testing.assert_array_equal(result, right)


# ---- Mistakes ----------------------------------------------------------------------------------


def line():
    import inspect

    return inspect.currentframe().f_back.f_lineno


def test_the_first_error_is_raised_by_build_with_its_place():
    b = hlo.Builder("wrong")
    x, y = b.parameter("f32[2,3]"), b.parameter("f32[4]")
    z = hlo.add(x, y)
    where = line() - 1
    assert not z.valid and b.first_error is not None
    with pytest.raises(RuntimeError) as error:
        b.build(z * 2)
    assert str(error.value) == (
        f"Build: Add at test_hlo_builder_python.py:{where}: expected 'broadcast_dimensions' to "
        "say how the dimensions of f32[4] match those of f32[2,3], got {}"
    )


def test_mistakes_of_types_are_raised_where_they_are_made():
    b = hlo.Builder()
    x = b.parameter("f32[2,3]")
    for make, text in [
        (lambda: hlo.add(x, "a"), "add: expected 'rhs' to be an Op, a number or an array, got str"),
        (lambda: hlo.add(x), "add: expected 'rhs'"),
        (lambda: hlo.add(x, x, y=1), "add: expected no argument 'y'"),
        (lambda: hlo.add(1, 2), "add: expected an Op among the arguments"),
        (lambda: hlo.reshape(x, 6), "reshape: expected 'new_sizes' to be a sequence of int"),
        (lambda: hlo.pad(x, 0.0, [1]), "pad: expected 'padding_config' to be a sequence of int"),
    ]:  # fmt: skip
        with pytest.raises(TypeError) as error:
            make()
        assert str(error.value).startswith(text)
    with pytest.raises(ValueError, match="compare: expected 'direction' to be one of 'EQ'"):
        hlo.compare(x, x, (), "==")
    with pytest.raises(TypeError, match="expected no use as a bool"):
        bool(x > 1)


def test_ops_of_another_builder_are_refused():
    a, b = hlo.Builder("a"), hlo.Builder("b")
    x, y = a.parameter("f32[2]"), b.parameter("f32[2]")
    with pytest.raises(RuntimeError, match="builder"):
        a.build(x + y)


def test_the_stub_names_every_function():
    text = (pathlib.Path(hlo.__file__).parent / "_functions.pyi").read_text()
    stated = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    names = {name for name, _, _ in lamella._hlo._builder_signatures()}
    assert stated == {name for name in names if not name.startswith("_")}
