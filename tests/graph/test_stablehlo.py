"""StableHLO: JAX's programs as artifacts and as text give JAX's results, and JAX reads what is
written."""

from __future__ import annotations

import numpy as np
import pytest
from jax_programs import TABLES, as_array, differences, programs, raw

lamella = pytest.importorskip("lamella")
jax = pytest.importorskip("jax", reason="JAX is the oracle")

from jax._src.interpreters import mlir  # noqa: E402
from jaxlib import _jax  # noqa: E402

hlo = lamella.hlo
VERSION = "1.13.0"


def artifact(lowered, version: str = VERSION) -> bytes:
    code = mlir.module_to_bytecode(lowered.compiler_ir())
    return _jax.mlir.serialize_portable_artifact(code, version)


def texts(data: bytes) -> tuple[str, str]:
    """The text of an artifact as it is printed, and in the generic form."""
    with mlir.make_ir_context():
        operation = _jax.mlir.deserialize_portable_artifact(data).operation
        return operation.get_asm(), operation.get_asm(print_generic_op_form=True)


def run_by_xla(data: bytes, arrays: list) -> list[np.ndarray]:
    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(_jax.mlir.deserialize_portable_artifact(data))
    compiled = device.client.compile_and_load(
        code, _jax.DeviceList((device,)), _jax.CompileOptions()
    )
    return [raw(one) for one in compiled.execute([jax.device_put(a, device) for a in arrays])]


class Artifact:
    """A program of the tables, whose text is its artifact."""

    def __init__(self, program):
        self.function, self.arguments, self.given = (
            program.function,
            program.arguments,
            program.given,
        )
        self.text = artifact(program.lowered)


@pytest.mark.parametrize("table", TABLES)
def test_artifacts_give_what_jax_gives(table):
    assert differences({k: Artifact(v) for k, v in programs(table).items()}) == ""


def plain(module) -> str:
    return module.to_string(metadata=False)


def test_texts_are_the_same_modules_as_the_artifacts():
    wrong = []
    for name, program in programs("functions").items():
        data = artifact(program.lowered)
        for form, text in zip(("printed", "generic"), texts(data)):
            if "chlo." in text:  # an artifact has a composite in its place
                hlo.parse(text)
            elif plain(hlo.parse(text)) != plain(hlo.parse(data)):
                wrong.append(f"{name} {form}")
    assert wrong == []


def test_functions_of_chlo_have_a_meaning_in_text():
    names = (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cosh",
        "sinh",
        "tan",
        "erf",
        "erfc",
    )
    names += ("erf_inv", "lgamma", "digamma", "bessel_i1e", "square")
    x = np.array([0.1, 0.25, 0.5, 0.75, 0.9], np.float32)
    scipy = pytest.importorskip("scipy.special")
    known = {"erf_inv": scipy.erfinv, "lgamma": scipy.gammaln, "bessel_i1e": scipy.i1e}
    known |= {"acosh": lambda x: np.arccosh(x + 1), "erf": scipy.erf, "erfc": scipy.erfc}
    known |= {"digamma": scipy.digamma, "square": np.square}
    known |= {n: getattr(np, "arc" + n[1:]) for n in ("acos", "asin", "asinh", "atan", "atanh")}
    for name in names:
        given = x + 1 if name == "acosh" else x
        type_ = "tensor<5xf32>"
        text = f"""func.func @main(%a: {type_}) -> {type_} {{
          %0 = chlo.{name} %a : {type_} -> {type_}
          return %0 : {type_} }}"""
        (got,) = hlo.evaluate(text, given)
        wanted = known.get(name, getattr(np, name, None))(x.astype(np.float64))
        np.testing.assert_allclose(got.numpy(), wanted, rtol=3e-5, err_msg=name)
    text = """func.func @main(%n: tensor<f32>, %x: tensor<f32>)
        -> (tensor<f32>, tensor<f32>, tensor<f32>) {
      %0 = chlo.polygamma %n, %x : tensor<f32>, tensor<f32> -> tensor<f32>
      %1 = chlo.zeta %x, %x : tensor<f32>, tensor<f32> -> tensor<f32>
      %2 = chlo.next_after %n, %x : tensor<f32>, tensor<f32> -> tensor<f32>
      return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32> }"""
    n, v = np.float32(2), np.float32(3.5)
    got = [float(t.numpy()) for t in hlo.evaluate(text, n, v)]
    wanted = [scipy.polygamma(2, 3.5), scipy.zeta(3.5, 3.5), np.nextafter(n, v)]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("minor", [9, *range(10, 21), *range(100, 114)])
def test_artifacts_of_every_version_are_read(minor):
    """VHLO 0.9 to 1.13; MLIR's bytecode is older for the first."""
    version = f"{minor // 100}.{minor % 100}.0"

    def function(x, y):
        first = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * y), (0, x))
        return jax.numpy.sort(first[1]) @ jax.numpy.exp(y), x[jax.numpy.array([1, 0])]

    x, y = np.array([3.0, 1.0, 2.0], np.float32), np.array([1.0, 2.0, 0.5], np.float32)
    try:
        data = artifact(jax.jit(function).lower(x, y), version)
    except Exception as error:
        pytest.skip(f"jaxlib does not write version {version}: {error}")
    got = hlo.evaluate(data, x, y)
    for mine, theirs in zip(got, jax.jit(function)(x, y), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-5)


# ---- Written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_what_is_written_reads_back(table):
    wrong = []
    for name, program in programs(table).items():
        module = hlo.parse(program.text)
        try:
            data = module.to_stablehlo()
        except RuntimeError as error:
            assert "expected an opcode" in str(error), name
            wrong.append(name)
            continue
        again = hlo.parse(data)
        for one, other in zip(
            hlo.evaluate(module, *program.given), hlo.evaluate(again, *program.given), strict=True
        ):
            np.testing.assert_array_equal(as_array(one), as_array(other), err_msg=name)
        assert hlo.parse(again.to_stablehlo()).to_stablehlo() == again.to_stablehlo(), name
    # StableHLO has no opcode for these.
    assert len(wrong) <= 3, wrong


def test_what_is_written_runs_in_xla():
    for name, program in list(programs("functions").items())[::12]:
        module = hlo.parse(program.text)
        for mine, theirs in zip(
            hlo.evaluate(module, *program.given),
            run_by_xla(module.to_stablehlo(), program.given),
            strict=True,
        ):
            np.testing.assert_allclose(
                as_array(mine), as_array(theirs), rtol=2e-4, atol=2e-5, err_msg=name
            )


def test_a_trace_becomes_a_program_of_jax():
    a, b = lamella.randn(3, 4), lamella.randn(4, 5)

    def function(x, y):
        return lamella.nn.functional.gelu(lamella.matmul(x, y)).softmax(-1)

    graph = lamella.trace(function, a, b, decompose=True)
    data = hlo.from_trace(graph, portable=True).to_stablehlo()
    (got,) = run_by_xla(data, [a.numpy(), b.numpy()])
    np.testing.assert_allclose(got, function(a, b).numpy(), rtol=1e-5, atol=1e-6)


def test_annotations_are_kept_when_written():
    text = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=2

ENTRY main {
  a = f32[4] parameter(0), sharding={devices=[2]0,1}
  b = f32[4] negate(a), frontend_attributes={k="v"}
  c = f32[4] custom-call(b), custom_call_target="t", operand_layout_constraints={f32[4]{0}},
    api_version=API_VERSION_TYPED_FFI, backend_config={n = 3 : i32}
  ROOT d = (f32[4], f32[4]) tuple(b, c)
}
"""
    got = hlo.parse(hlo.parse(text).to_stablehlo()).to_string()
    assert "input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=2" in got
    assert "parameter(0), sharding={devices=[2]0,1}" in got
    assert 'frontend_attributes={k="v"}' in got
    assert 'custom_call_target="t", operand_layout_constraints={f32[4]{0}}' in got
    assert "api_version=API_VERSION_TYPED_FFI" in got and "backend_config={n = 3 : i32}" in got


def test_an_instruction_that_stablehlo_has_not_is_named():
    text = "HloModule m\nENTRY e {\n  ROOT s = u64[2] rng-get-and-update-state(), delta=1\n}\n"
    with pytest.raises(RuntimeError) as error:
        hlo.parse(text).to_stablehlo()
    assert str(error.value) == (
        "to_stablehlo: 's' (rng-get-and-update-state): expected an opcode that StableHLO has"
    )
