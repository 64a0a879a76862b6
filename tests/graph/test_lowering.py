"""Rules that lower operators to opcodes: traced calls against eager calls."""

import pathlib
import re
import sys

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from operator_rows import ROWS  # noqa: E402

# The largest difference, relative to numbers of size 1: sums are made in another order.
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-5}


# Rows that are no program, as the elements of their inputs say how large their results are.
SIZES_BY_ELEMENTS = ("masked_select",)


def tensors_of(value):
    if isinstance(value, lamella.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def lowered(function, *inputs):
    graph = lamella.trace(function, *inputs, check=False, decompose=True)
    return hlo.from_trace(graph, rules=True)


def check(function, *inputs, tolerance=1e-9):
    expected = tensors_of(function(*[t.clone() for t in inputs]))
    got = hlo.evaluate(lowered(function, *inputs), *inputs)
    for mine, eager in zip(got, expected):
        assert mine.dtype == eager.dtype and mine.shape == eager.shape
        wide = lamella.complex128 if eager.is_complex() else lamella.float64
        mine, eager = mine.to(wide), eager.detach().to(wide)
        assert lamella.allclose(
            mine, eager, rtol=tolerance, atol=tolerance, equal_nan=True
        ), f"expected {eager}, got {mine}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row):
    for dtype in row.dtypes:
        function, inputs = row.call(dtype)
        inputs = [tensor.detach().clone() for tensor in inputs]
        lamella.manual_seed(3)
        expected = tensors_of(function(*[tensor.clone() for tensor in inputs]))
        if row.path in SIZES_BY_ELEMENTS:
            with pytest.raises(RuntimeError, match="expected an operator with a Meta kernel"):
                lowered(function, *inputs)
            return
        module = lowered(function, *inputs)
        lamella.manual_seed(3)
        for mine, eager in zip(hlo.evaluate(module, *inputs), expected):
            assert mine.dtype == eager.dtype and mine.shape == eager.shape
            assert lamella.allclose(
                mine, eager, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], equal_nan=True
            ), f"expected {eager}, got {mine}"


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 30.0, -30.0, float("inf"), -float("inf")]
SPECIAL += [float("nan"), 1e-30, 3.0]
UNARY = (
    "abs neg sign sgn ceil floor round trunc frac reciprocal square exp exp2 expm1 log log2 log10 "
    "log1p sin cos tan tanh sinh cosh asinh atan sqrt rsqrt sigmoid erf relu isnan isinf isfinite "
    "isposinf isneginf logical_not nan_to_num deg2rad rad2deg positive"
).split()
FUNCTIONS = (
    "relu6 elu selu celu leaky_relu silu mish gelu softplus logsigmoid hardtanh hardsigmoid "
    "hardswish hardshrink softshrink tanhshrink softsign"
).split()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", UNARY + ["nn.functional." + name for name in FUNCTIONS])
def test_special_values(name, dtype):
    function = lamella
    for part in name.split("."):
        function = getattr(function, part)
    x = lamella.tensor(SPECIAL, dtype=getattr(lamella, dtype))
    tolerance = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    check(function, x, tolerance=tolerance)


BINARY = (
    "add sub mul div fmod remainder maximum minimum fmax fmin eq ne lt le gt ge atan2 pow "
    "logical_and logical_or logical_xor xlogy logaddexp"
).split()


@pytest.mark.parametrize(
    "types",
    ["float32 float32", "float32 float64", "bfloat16 float32", "int64 float32", "int32 int64",
     "uint8 int8", "bool int32", "bool bool", "float16 2.5", "int32 2", "int32 1.5", "bool 2"],
)  # fmt: skip
@pytest.mark.parametrize("name", BINARY)
def test_promotion(name, types):
    function = getattr(lamella, name)
    first, second = types.split()
    x = lamella.tensor([[-3.0], [0.0], [1.0], [7.0]]).to(getattr(lamella, first))
    if second[0].isdigit():
        number = float(second) if "." in second else int(second)
        inputs, call = [x], lambda x: function(x, number)
    else:
        y = lamella.tensor([1.0, 2.0, 5.0]).to(getattr(lamella, second))
        inputs, call = [x, y], function
    try:
        call(*inputs)
    except Exception:
        return  # eager refuses these dtypes
    tolerance = 1e-2 if "16" in types else 1e-5
    check(call, *inputs, tolerance=tolerance)
    if len(inputs) == 2:
        # A tensor without dimensions counts only by its category.
        check(call, x, inputs[1][2], tolerance=tolerance)


def test_what_an_operator_becomes():
    """One opcode where the operator's declaration names one, a rule's opcodes, or a call."""
    x = lamella.ones(2, 3)
    opcodes = lambda f, *given: [  # noqa: E731
        i.opcode for i in lowered(f, *given).entry.instructions if i.opcode != "parameter"
    ]
    assert opcodes(lamella.tanh, x) == ["tanh", "tuple"]
    assert opcodes(lambda x: x.add_(x), x.clone()) == ["add", "tuple"]
    assert opcodes(lambda x: x @ x.t(), x) == ["transpose", "dot", "tuple"]
    assert "custom-call" in opcodes(lamella.erfinv, x)
    text = str(lowered(lambda x: lamella.nn.functional.dropout(x, 0.5, training=True), x))
    assert "custom_call_has_side_effect=true" in text


def test_every_rule_names_an_operator():
    names = set(hlo._operators._hlo._lowered_operators())
    assert len(names) >= 230
    for name in names:
        namespace, _, base = name.partition("::")
        operators = getattr(lamella.ops, namespace)
        # What writes its arguments is lowered as the function that functionalize makes of it.
        written = base.removesuffix("_functional") + "_"
        assert hasattr(operators, base) or hasattr(operators, written), name


def test_metadata_says_where():
    module = lowered(lambda x: lamella.nn.functional.gelu(x), lamella.ones(2))
    assert re.search(r'op_name="aten::gelu" source_file="[^"]*test_lowering.py"', str(module))


F = lamella.nn.functional
# Functions that no opcode is, and where they are compared.
PORTABLE = {
    "erfc": (lamella.erfc, (-4, 9)),
    "erfinv": (lamella.erfinv, (-0.999999, 0.999999)),
    "exp2": (lamella.exp2, (-20, 20)),
    "gelu": (F.gelu, (-3, 8)),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), (-3, 8)),
    "log10": (lamella.log10, (1e-5, 1e5)),
    "log2": (lamella.log2, (1e-5, 1e5)),
    "logit": (lamella.logit, (0.001, 0.999)),
    "logit_eps": (lambda x: lamella.logit(x, 0.2), (-1, 2.003)),
    "mish": (F.mish, (-20, 20)),
}


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("gradient", [False, True])
def test_portable_functions_run_in_xla(name, kind, gradient):
    """Values and gradients are PyTorch's; XLA runs the text."""
    xla_oracle = pytest.importorskip("xla_oracle")
    torch = pytest.importorskip("torch")
    pytest.importorskip("jaxlib._hlo", reason="XLA runs the text")
    function, (low, high) = PORTABLE[name]
    torch_function = {
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "logit_eps": lambda x: torch.logit(x, 0.2),
        "mish": torch.nn.functional.mish,
    }.get(name) or getattr(torch, name)
    x = torch.linspace(low, high, 101, dtype=getattr(torch, kind))
    wide = x.double().clone().requires_grad_()
    expected = torch_function(wide)
    if gradient:
        (expected,) = torch.autograd.grad(expected.sum(), wide)

    def traced(x):
        if not gradient:
            return function(x)
        return lamella.func.grad(lambda x: function(x).sum())(x)

    given = lamella.from_numpy(x.numpy())
    graph = lamella.trace(traced, given, check=False, decompose=True)
    text = str(hlo.from_trace(graph, portable=True))
    assert "custom-call" not in text
    rounding = {"float32": 1e-5 if name == "erfc" else 3e-6, "float64": 1e-12}[kind]
    scale = expected.abs().clamp(min=1e-300 if name == "erfc" else 1).detach()
    for got in (xla_oracle.run(text, x.numpy())[0], hlo.evaluate(text, given)[0].numpy()):
        difference = (torch.from_numpy(got.copy()).double() - expected.detach()).abs() / scale
        assert difference.max().item() < rounding


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "mish"])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("gradient", [False, True])
def test_portable_functions_at_edges(name, kind, gradient):
    """The limits at infinities, and 0 of the right sign where the function has vanished."""
    infinity, most = float("inf"), 6e4 if kind == "float16" else 1e30
    edges = [0.0, -0.0, infinity, -infinity, float("nan"), most, -most, -2000.0]
    expected = {
        False: [0.0, -0.0, infinity, -0.0, float("nan"), most, -0.0, -0.0],
        True: [0.6 if name == "mish" else 0.5] * 2 + [1.0, 0.0, float("nan"), 1.0, 0.0, 0.0],
    }[gradient]
    if gradient and name == "mish":
        expected[2:4] = [float("nan")] * 2  # as in PyTorch
    function = PORTABLE[name][0]

    def traced(x):
        return lamella.func.grad(lambda x: function(x).sum())(x) if gradient else function(x)

    x = lamella.tensor(edges, dtype=getattr(lamella, kind))
    graph = lamella.trace(traced, x, check=False, decompose=True)
    text = str(hlo.from_trace(graph, portable=True))
    found = hlo.evaluate(text, x)[0].double().numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    if not gradient:
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()
