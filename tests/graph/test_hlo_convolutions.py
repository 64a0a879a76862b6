"""Convolutions and windows as machine code: gradients, layouts, kept packed weights, threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hlo_difference import difference, same_bits
from jax_programs import QUICKLY

import lamella
from lamella import hlo

f = lamella.nn.functional
HAS_COMPILER = (
    "there is no compiler"
    not in hlo.compile(
        "HloModule m\nENTRY e { x = f32[3] parameter(0)\nROOT y = f32[3] tanh(x) }"
    ).explain()
)
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="there is no compiler")


@pytest.fixture(autouse=True)
def threads():
    before = lamella.get_num_threads()
    yield
    lamella.set_num_threads(before)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# Spatial sizes of the data and of the kernel, stride, padding, dilation, groups, channels.
PROBLEMS = {
    "1-D": ((9,), (3,), 2, 1, 1, 1, (4, 6)),
    "2-D": ((9, 8), (3, 2), 1, 1, 1, 1, (4, 6)),
    "3-D": ((5, 6, 4), (2, 3, 2), 2, 1, 1, 1, (3, 5)),
    "strides": ((9, 10), (3, 3), 3, 1, 1, 1, (8, 16)),
    "holes in the kernel": ((12, 11), (3, 2), 1, 2, 2, 1, (4, 6)),
    "one tap": ((7, 5), (1, 1), 1, 0, 1, 1, (5, 7)),
    "one tap, strides": ((8, 7), (1, 1), 2, 0, 1, 1, (16, 32)),
    "groups": ((8, 7), (3, 3), 1, 1, 1, 2, (8, 12)),
    "depthwise": ((8, 7), (3, 3), 2, 1, 1, 6, (6, 6)),
    "depthwise of several": ((8, 7), (3, 3), 1, 1, 1, 4, (4, 8)),
    "one channel": ((12, 12), (3, 3), 1, 1, 1, 1, (1, 16)),
    "three channels": ((20, 18), (7, 7), 2, 3, 1, 1, (3, 16)),
    "large": ((28, 28), (3, 3), 1, 1, 1, 1, (32, 48)),
}


def problem(name: str):
    sizes, kernel, stride, padding, dilation, groups, (given, made) = PROBLEMS[name]
    x, w = numbers(3, given, *sizes), numbers(made, given // groups, *kernel, seed=1)
    spatial = len(sizes)
    return x, w, (stride,) * spatial, ((padding, padding),) * spatial, (dilation,) * spatial, groups


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("what", ["value", "input", "weight", "both"])
def test_against_jax(name, what):
    jax = pytest.importorskip("jax", reason="JAX is the reference")
    x, w, stride, padding, dilation, groups = problem(name)

    def convolved(x, w):
        return jax.lax.conv_general_dilated(
            x, w, stride, padding, rhs_dilation=dilation, feature_group_count=groups
        )

    def loss(x, w):
        return (convolved(x, w) ** 2).sum()

    which = {"input": 0, "weight": 1, "both": (0, 1)}
    function = jax.jit(convolved if what == "value" else jax.grad(loss, which[what]))
    lowered = function.lower(x, w)
    text = lowered.as_text("hlo")
    assert difference(text, [x, w]) is None
    expected = jax.tree.leaves(lowered.compile(compiler_options=QUICKLY)(x, w))
    for own, theirs in zip(hlo.compile(text)(x, w), expected):
        theirs = np.asarray(theirs)
        bound = 2e-6 * np.abs(theirs).max() * np.sqrt(w[0].size + x[0, 0].size)
        np.testing.assert_allclose(own.numpy(), theirs, rtol=1e-5, atol=bound)


@pytest.mark.parametrize("order", ["b01f_01io->b01f", "b01f_oi01->bf01", "bf01_01io->b01f"])
@needs_compiler
def test_orders_of_dimensions_are_machine_code(order):
    given, kernel, made = order.replace("->", "_").split("_")
    sizes = {"b": 2, "f": 20, "0": 9, "1": 8}
    taps = {"o": 24, "i": 20, "0": 3, "1": 3}
    result = {"b": 2, "f": 24, "0": 9, "1": 8}
    shapes = [
        ",".join(str(numbers_of[c]) for c in names)
        for names, numbers_of in ((given, sizes), (kernel, taps), (made, result))
    ]
    text = f"""HloModule m
ENTRY e {{
  x = f32[{shapes[0]}] parameter(0)
  w = f32[{shapes[1]}] parameter(1)
  b = f32[24] parameter(2)
  row = f32[{shapes[2]}] broadcast(b), dimensions={{{made.index("f")}}}
  y = f32[{shapes[2]}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={order}
  ROOT sum = f32[{shapes[2]}] add(y, row)
}}
"""
    arguments = [
        numbers(*(sizes[c] for c in given)),
        numbers(*(taps[c] for c in kernel), seed=1),
        numbers(24, seed=2),
    ]
    assert difference(text, arguments) is None
    explained = hlo.compile(text).explain()
    assert "product or convolution that starts with a row: sum" in explained
    assert "custom call" not in explained


# Windows in dimensions of f32[2,6,7,8].
@pytest.mark.parametrize(
    "window",
    [
        "size=1x2x2x1 stride=1x2x2x1",
        "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1",
        "size=1x3x2x1 stride=1x1x2x1 pad=0_0x1_1x0_1x0_0",
        "size=2x2x1x1",
        "size=1x3x3x3 stride=1x3x2x1 pad=0_0x2_0x0_3x0_0",
    ],
)
@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT"])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_select_and_scatter(window, direction, element):
    sizes, out = (2, 6, 7, 8), []
    words = dict(word.split("=") for word in window.split())
    taps = [int(n) for n in words["size"].split("x")]
    strides = [int(n) for n in words.get("stride", "1x1x1x1").split("x")]
    pads = [[int(n) for n in p.split("_")] for p in words.get("pad", "0_0x0_0x0_0x0_0").split("x")]
    for size, tap, stride, pad in zip(sizes, taps, strides, pads):
        out.append((size + sum(pad) - tap) // stride + 1)
    made = ",".join(map(str, out))
    text = f"""HloModule m
choose {{ a = f32[] parameter(0) b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={direction} }}
join {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[2,6,7,8] parameter(0)
  s = f32[{made}] parameter(1)
  i = f32[] constant(0.25)
  t = f32[{made}] tanh(s)
  ROOT y = f32[2,6,7,8] select-and-scatter(x, t, i), window={{{window}}}, select=choose,
      scatter=join
}}
"""
    if element == "f64":
        text = text.replace("f32[", "f64[")
    kind = np.dtype("float32" if element == "f32" else "float64")
    # Equal elements and NaN are chosen by their place.
    x = np.round(numbers(*sizes)).astype(kind)
    x[0, 2, 3, 4] = np.nan
    arguments = [x, numbers(*out, seed=1).astype(kind)]
    assert difference(text, arguments) is None
    explained = hlo.compile(text).explain()
    assert "there is no compiler" in explained or "select-and-scatter: y" in explained
    results = []
    for count in (1, 2, 3, 8):
        lamella.set_num_threads(count)
        results.append(hlo.compile(text)(*arguments))
    assert all(same_bits(results[0], one) for one in results[1:])


def network(x, layers):
    (first, a), (second, b), (short, c), (last, d) = layers
    x = f.max_pool2d(f.conv2d(x, first, a, stride=2, padding=3).relu(), 3, 2, 1)
    y = f.conv2d(f.conv2d(x, second, b, padding=1).relu(), second, b, padding=1)
    x = (f.conv2d(x, short, c) + y).relu()
    return f.linear(x.mean((2, 3)), last, d)


def layers() -> list:
    shapes = [(16, 3, 7, 7), (16, 16, 3, 3), (16, 16, 1, 1), (10, 16)]
    return [
        (lamella.tensor(numbers(*s, seed=n) * 0.1), lamella.tensor(numbers(s[0], seed=9 + n)))
        for n, s in enumerate(shapes)
    ]


def close(own, expected) -> bool:
    return bool(lamella.allclose(own, expected, rtol=1e-4, atol=1e-5))


@needs_compiler
def test_a_network_is_one_region_with_channels_last(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMELLA_DUMP_HLO", str(tmp_path))
    compiled = lamella.compile(network)
    x, weights = lamella.tensor(numbers(2, 3, 32, 32)), layers()
    with lamella.no_grad():
        assert close(compiled(x, weights), network(x, weights))
    (written,) = tmp_path.glob("*.channels_last.hlo")
    text = written.read_text()
    assert text.count("convolution(") == 4
    assert " custom-call(" not in text
    assert " transpose(" not in text


@pytest.mark.parametrize("images", [1, 8, 40])
def test_a_flattened_result_meets_its_weights(images):
    def classified(x, w, last, bias):
        x = f.max_pool2d(f.conv2d(x, w, padding=1).relu(), 2)
        return f.linear(x.flatten(1), last, bias)

    x = lamella.tensor(numbers(images, 1, 8, 6))
    weights = [lamella.tensor(numbers(*s, seed=3)) for s in ((16, 1, 3, 3), (10, 192), (10,))]
    with lamella.no_grad():
        assert close(lamella.compile(classified)(x, *weights), classified(x, *weights))


@pytest.mark.parametrize("pad", ["0_0", "1_1", "2_0", "0_3"])
def test_the_larger_of_a_number_waits_for_windows_with_elements(pad):
    size = 7 + sum(int(p) for p in pad.split("_"))
    text = f"""HloModule m
larger {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }}
ENTRY e {{
  x = f32[2,7] parameter(0)
  c = f32[] constant(0.5)
  row = f32[2,7] broadcast(c), dimensions={{}}
  y = f32[2,7] maximum(row, x)
  i = f32[] constant(-inf)
  ROOT r = f32[2,{size - 1}] reduce-window(y, i), window={{size=1x2 pad=0_0x{pad}}}, to_apply=larger
}}
"""
    x = numbers(2, 7)
    x[1, 3] = np.nan
    assert difference(text, [x]) is None


def test_weights_are_read_again_after_a_write():
    compiled = lamella.compile(network)
    x, weights = lamella.tensor(numbers(2, 3, 32, 32)), layers()
    with lamella.no_grad():
        for step in range(6):
            assert close(compiled(x, weights), network(x, weights))
            if step == 3:
                for weight, bias in weights:
                    weight.mul_(-1.5)
                    bias.add_(0.25)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_goes_through(value):
    given = numbers(2, 3, 32, 32)
    given[1, 2, 5, 7] = value
    x, weights = lamella.tensor(given), layers()

    def pooled(x, layers):
        return f.max_pool2d(f.conv2d(x, *layers[0], stride=2, padding=3).relu(), 3, 2, 1)

    with lamella.no_grad():
        own, expected = lamella.compile(pooled)(x, weights), pooled(x, weights)
    np.testing.assert_allclose(own.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


POOLINGS = [
    p
    for p in itertools.product((2, 3), (1, 2, 3), (0, 1), (1, 2), (False, True))
    if 2 * p[2] <= p[0]
]


@pytest.mark.parametrize(("size", "stride", "padding", "dilation", "ceil"), POOLINGS)
def test_max_pooling(size, stride, padding, dilation, ceil):
    def pooled(x, w):
        return f.max_pool2d(f.conv2d(x, w), size, stride, padding, dilation, ceil)

    x, w = lamella.tensor(numbers(2, 3, 11, 13)), lamella.tensor(numbers(16, 3, 2, 2, seed=1))
    with lamella.no_grad():
        own, expected = lamella.compile(pooled)(x, w), pooled(x, w)
    assert own.shape == expected.shape
    assert close(own, expected)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_other_dtypes_stay_operators(dtype):
    kind = getattr(lamella, dtype)
    x, weights = lamella.tensor(numbers(2, 3, 32, 32)).to(kind), layers()
    weights = [(w.to(kind), b.to(kind)) for w, b in weights]
    with lamella.no_grad():
        own, expected = lamella.compile(network)(x, weights), network(x, weights)
    bound = {"float64": 1e-10, "bfloat16": 0.05, "float16": 0.01}[dtype]
    np.testing.assert_allclose(
        own.to(lamella.float64).numpy(),
        expected.to(lamella.float64).numpy(),
        rtol=bound,
        atol=bound * float(expected.to(lamella.float64).abs().max()),
    )


def test_gradients_of_a_network():
    x, weights = lamella.tensor(numbers(2, 3, 32, 32)), layers()

    def loss(layers, x):
        return (network(x, layers) ** 2).mean()

    step = lamella.func.grad(loss)
    own, expected = lamella.compile(step)(weights, x), step(weights, x)
    for pair, other in zip(own, expected):
        for one, theirs in zip(pair, other):
            assert close(one, theirs)


def test_threads_give_the_same_bits():
    compiled = lamella.compile(network)
    x, weights = lamella.tensor(numbers(8, 3, 64, 64)), layers()
    results = []
    with lamella.no_grad():
        for count in (1, 2, 3, 8):
            lamella.set_num_threads(count)
            results.append([compiled(x, weights)])
    assert all(same_bits(results[0], one) for one in results[1:])


# Channels, sizes of data and kernel, dilation of the input, padding, and what else the window has.
DILATED = {
    "upsampling": ((3, 5), (9, 8), (16, 16), 8, ((11, 11), (11, 11)), ""),
    "cut": ((3, 5), (6, 5), (16, 16), 8, ((4, 4), (4, 4)), ""),
    "cut on one side": ((3, 2), (6, 5), (4, 3), 2, ((3, 0), (-1, 2)), ""),
    "wider than the kernel": ((2, 3), (5, 4), (3, 3), 3, ((5, 2), (2, 7)), ""),
    "turned": ((3, 5), (5, 6), (5, 4), 3, ((2, -1), (1, 1)), " rhs_reversal=1x1"),
    "turned once": ((3, 5), (5, 6), (5, 4), 3, ((2, 1), (1, 1)), " rhs_reversal=1x0"),
    "one tap": ((3, 5), (5, 6), (1, 1), 8, ((0, 0), (3, 1)), ""),
    "one position": ((3, 5), (1, 1), (5, 4), 8, ((4, 4), (3, 3)), ""),
    "holes in the kernel": ((3, 5), (5, 6), (3, 2), 4, ((3, 4), (2, 2)), " rhs_dilate=2x3"),
    "groups": ((4, 6), (5, 6), (3, 4), 2, ((1, 2), (3, 3)), ""),
    "strides": ((3, 5), (5, 6), (3, 4), 3, ((1, 2), (3, 3)), " stride=2x1"),
    "one dimension": ((3, 5), (7,), (6,), 4, ((3, 3),), ""),
    "three dimensions": ((2, 3), (3, 4, 2), (3, 2, 3), 2, ((2, 2), (1, 0), (2, 1)), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DILATED)
@pytest.mark.parametrize("layout", ["first", "last"])
def test_dilated_inputs_against_xla(name, layout):
    pytest.importorskip("jaxlib._hlo", reason="XLA is the reference")
    xla_oracle = pytest.importorskip("xla_oracle")

    (given, made), data, kernel, hole, pads, rest = DILATED[name]
    groups = 2 if name == "groups" else 1
    strides, dilations = [1] * len(data), [1] * len(data)
    if "stride" in rest:
        strides = [2, 1]
    if "rhs_dilate" in rest:
        dilations = [2, 3]
    out = [
        ((n - 1) * hole + 1 + low + high - ((k - 1) * d + 1)) // stride + 1
        for n, k, (low, high), d, stride in zip(data, kernel, pads, dilations, strides)
    ]
    x, w = numbers(2, given, *data), numbers(made, given // groups, *kernel, seed=1)
    result, spatial = [2, made, *out], "012"[: len(data)]
    labels = f"bf{spatial}_oi{spatial}->bf{spatial}"
    if layout == "last":
        x, w = np.moveaxis(x, 1, -1).copy(), np.moveaxis(w, (0, 1), (-1, -2)).copy()
        result, labels = [2, *out, made], f"b{spatial}f_{spatial}io->b{spatial}f"
    shapes = ["f32[" + ",".join(map(str, sizes)) + "]" for sizes in (x.shape, w.shape, result)]
    window = f"size={'x'.join(map(str, kernel))} pad=" + "x".join(f"{a}_{b}" for a, b in pads)
    window += f" lhs_dilate={'x'.join([str(hole)] * len(data))}{rest}"
    text = (
        f"HloModule m\nENTRY e {{\n  x = {shapes[0]} parameter(0)\n  w = {shapes[1]} parameter(1)\n"
        f"  ROOT y = {shapes[2]} convolution(x, w), window={{{window}}}, dim_labels={labels}, "
        f"feature_group_count={groups}\n}}"
    )
    program = hlo.compile(text)
    (expected,) = xla_oracle.run(text, x, w)
    for got in (program(x, w)[0], hlo.evaluate(text, x, w)[0]):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-4)
    if name == "upsampling":  # nothing is multiplied by the holes
        assert "pad" not in program.explain()
