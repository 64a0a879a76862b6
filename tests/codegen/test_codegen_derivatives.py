"""derivatives.yaml: the command line, and which values the formulas of PyTorch's file save, with
PyTorch's own generator as the oracle.

LAMELLA_BUILD names the build folder (default: build/).
"""

import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
OPERATORS = HERE / "broken_derivatives_operators.yaml"


# Arguments of built-in operators that have no formula, as in PyTorch: they raise in backward.
WITHOUT = {
    f"aten::{name} {node}Backward0: {argument} is without a formula"
    for name, node in (
        ("native_batch_norm", "NativeBatchNorm"),
        ("_native_batch_norm_legit", "NativeBatchNormLegit"),
        ("_native_batch_norm_legit_no_training", "NativeBatchNormLegitNoTraining"),
    )
    for argument in ("running_mean", "running_var")
}


def _run(*arguments, cwd=None):
    build = pathlib.Path(os.environ.get("LAMELLA_BUILD", "build"))
    for found in sorted(build.rglob("lamella-gen")):
        if found.is_file() and os.access(found, os.X_OK):
            command = [str(found.resolve()), *map(str, arguments)]
            result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
            return result.returncode, result.stdout, result.stderr
    pytest.fail(f"no lamella-gen under {build}: build it, or set LAMELLA_BUILD")


def test_several_files_and_their_order(tmp_path):
    one = tmp_path / "one.yaml"
    one.write_text("- name: exp(Tensor self) -> Tensor\n  self: grad * result\n")
    two = tmp_path / "two.yaml"
    two.write_text("- name: exp(Tensor self) -> Tensor\n  self: grad * reslt\n")
    assert _run("--check", "--derivatives", one, OPERATORS) == (0, "", "")
    status, out, err = _run("--check", "--derivatives", one, "--derivatives", two, OPERATORS)
    assert (status, out) == (1, "")
    assert err.startswith(f"{two}:1:9: error: exp: has an entry already, on line 1 of {one}\n")


def test_stated_names_of_nodes_are_not_counted(tmp_path):
    file = tmp_path / "derivatives.yaml"
    file.write_text(
        "- name: exp(Tensor self) -> Tensor\n"
        "  node: ExponentialBackward3, ExponentialBackward2 without self\n"
        "  self: grad * result\n"
    )
    status, out, err = _run("--saved", "--derivatives", file, OPERATORS)
    assert (status, err) == (0, "")
    assert out == (
        "aten::exp ExponentialBackward3, ExponentialBackward2 without self: self saves result\n"
    )


def test_no_argument_is_left_out(tmp_path):
    file = tmp_path / "derivatives.yaml"
    file.write_text(
        "- name: pair(Tensor x, Tensor y) -> (Tensor, Tensor)\n"
        "  y: grads[0] * x\n"
        "- name: exp_backward(Tensor grad, Tensor result) -> Tensor\n"
        "  grad: non_differentiable\n"
        "- name: sort(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)\n"
        "  output_differentiability: [False, False]\n"
        "- name: exp(Tensor self) -> Tensor\n"
        "  dispatch:\n"
        "    AutogradCUDA:\n"
        "      self: grad * result\n"
    )
    status, out, err = _run("--saved", "--derivatives", file, OPERATORS)
    assert (status, err) == (0, "")
    assert out == (
        "aten::pair PairBackward0: x is without a formula\n"
        "aten::pair PairBackward0: y saves x\n"
        "aten::exp_backward ExpBackwardBackward0: result is without a formula\n"
        "aten::sort: not differentiable\n"
        "aten::exp [AutogradCUDA] ExpBackwardAutogradCUDA0: self saves result\n"
        "aten::exp ExpBackward0: self is without a formula\n"
    )


def test_every_argument_of_the_builtin_operators_is_spoken_of():
    ops = HERE.parent.parent / "ops"
    status, out, err = _run(
        "--saved", "--derivatives", ops / "derivatives.yaml", ops / "native_functions.yaml"
    )
    assert (status, err) == (0, "")
    assert {line for line in out.splitlines() if line.endswith("is without a formula")} == WITHOUT


def test_what_formulas_save():
    golden = HERE / "golden"
    status, out, err = _run(
        "--saved", "--derivatives", golden / "mini_derivatives.yaml", golden / "mini.yaml"
    )
    assert (status, err) == (0, "")
    assert out == (
        "aten::full: not differentiable\n"
        "aten::add.Tensor AddBackward0: self saves nothing\n"
        "aten::add.Tensor AddBackward0: other saves alpha\n"
        "aten::add.Tensor AddBackward0: result uses self_t, other_t, alpha\n"
        "aten::pool PoolBackward0: self saves self.sizes(), self.strides(), kernel_size, "
        "self.options(), zeros_like(self), result.scalar_type()\n"
        "aten::pool PoolBackward0: result is auto_linear\n"
        "aten::pool [AutogradCUDA] PoolBackwardAutogradCUDA0: self saves self.sizes()\n"
        "aten::sub.Tensor SubBackward0: other, self saves self.dim(), other.device()\n"
        "aten::sub.Tensor SubBackward0: result is auto_linear\n"
        "aten::mode ModeBackward0: self saves self.sizes(), dim, indices, keepdim\n"
        "aten::mode ModeBackward0: values uses self_t, dim, indices, keepdim\n"
        "aten::fill_.Scalar FillBackward0: self saves nothing\n"
        "aten::fill_.Scalar FillBackward0: result uses self_t\n"
        "aten::lerp_all LerpAllBackward0: self saves end.defined(), weights, result, scale\n"
        "aten::lerp_all LerpAllBackward0: end is not implemented\n"
        "aten::lerp_all LerpAllBackward0: weights saves sizes_of(weights), dtypes_of(weights), "
        "weights.size(), mode, TensorGeometry(self)\n"
        "aten::lerp_all LerpAllBackward0: result uses self_t, end_p, weights_p, weights_t, mode\n"
    )


# ---- PyTorch's own file ----

# Where Lamella's answer differs from PyTorch's: (what PyTorch saves more, what Lamella does).
# PyTorch does not know the attribute and saves the tensor, or takes the name of a function for it.
DIFFERENT = {
    "aten::native_group_norm": (set(), {"input.device()"}),
    "aten::_log_softmax_backward_data": (set(), {"output.scalar_type()"}),
    "aten::_softmax_backward_data": (set(), {"output.scalar_type()"}),
    "aten::_nested_tensor_from_tensor_list": ({"list"}, {"list.size()"}),
    "aten::_fft_r2c": ({"self"}, {"self.sizes()"}),
    "aten::_thnn_fused_gru_cell": (set(), {"input_bias.defined()"}),
    "aten::complex": ({"real"}, set()),
    "aten::_thnn_fused_lstm_cell": (set(), {"input_bias.defined()"}),
    "aten::sparse_compressed_tensor.comp_plain_value_size": ({"values"}, set()),
}


def _packaged():
    torchgen = pytest.importorskip("torchgen")
    return pathlib.Path(torchgen.__file__).parent / "packaged"


@pytest.fixture(scope="module")
def ours():
    """(operator, key, names) -> (node, verb, what) of every formula in PyTorch's file."""
    packaged = _packaged()
    arguments = [
        "--derivatives",
        packaged / "autograd/derivatives.yaml",
        packaged / "ATen/native/native_functions.yaml",
    ]
    assert _run("--check", *arguments) == (0, "", "")
    status, out, err = _run("--saved", *arguments)
    assert (status, err) == (0, "")
    formulas = {}
    pattern = re.compile(
        r"(\S+)(?: \[(\w+)\])?(?: (\w+))?: (?:(not differentiable)|(.*?) (saves|uses|is) (.*))"
    )
    for line in out.splitlines():
        match = pattern.fullmatch(line)
        assert match, line
        operator, key, node, nothing, names, verb, what = match.groups()
        key = key or "Default"
        if nothing:
            formulas[operator, key, ()] = (node, "is", nothing)
            continue
        parts = re.split(r", (?![^(]*\))", what)
        names = tuple(sorted(names.split(", ")))
        formulas[operator, key, names] = (node, verb, {p for p in parts if p != "nothing"})
    return formulas


@pytest.fixture(scope="module")
def theirs():
    """PyTorch's reading of the same files, without the derived view-copy operators."""
    packaged = _packaged()
    pytest.importorskip("yaml", reason="PyTorch's generator reads YAML with it")
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    infos, _ = load_derivatives(
        str(packaged / "autograd/derivatives.yaml"),
        str(packaged / "ATen/native/native_functions.yaml"),
        str(packaged / "ATen/native/tags.yaml"),
    )
    return [
        (f"aten::{info.func.func.name}", key, info)
        for tables in infos.values()
        for key, info in tables.items()
        if not (info.op or "").endswith("_copy")
    ]


def test_every_entry_of_pytorch_is_read(ours):
    text = (_packaged() / "autograd/derivatives.yaml").read_text()
    entries = set(re.findall(r"^- name: *\"?([\w.]+)\(", text, re.MULTILINE))
    assert len(entries) == 687
    assert {f"aten::{name}" for name in entries} == {operator for operator, _, _ in ours}


def _spelled(attribute):
    """A saved attribute of PyTorch's as Lamella spells it."""
    name = attribute.nctype.name
    name = name if isinstance(name, str) else name.name
    if name.endswith("_info"):
        return f"zeros_like({attribute.expr})"
    if name.endswith("_sym_sizes_opt"):
        return name.removesuffix("_sym_sizes_opt") + ".sizes()"
    if "_sym_blocksize_opt" in name:
        return name.partition("_")[0]
    text = re.sub(r'strides_or_error\((\w+), ".*"\)', r"\1.strides()", attribute.expr)
    text = re.sub(r"to_args_sizes(_symint)?\(", "sizes_of(", text)
    text = text.replace("to_args_scalartypes(", "dtypes_of(").replace("sym_", "")
    text = re.sub(r"\.size\(-?\w+\)", ".sizes()", text)
    return text


def test_saves_what_pytorch_saves(ours, theirs):
    compared = 0
    different = {}
    for operator, key, info in theirs:
        for derivative in info.derivatives:
            names = tuple(sorted(derivative.var_names))
            node, verb, what = ours[operator, key, names]
            assert node == info.op
            compared += 1
            if verb == "is":
                assert derivative.original_formula.startswith("not_implemented(")
                continue
            expected = {_spelled(attribute) for attribute in derivative.saved_inputs}
            for attribute in derivative.saved_outputs:
                text = _spelled(attribute)
                expected.add("result" if text == "self" else text)
            if expected != what:
                different[operator] = (expected - what, what - expected)
    assert compared > 750
    assert different == DIFFERENT


def test_forward_mode_uses_what_pytorch_uses(ours, theirs):
    compared = 0
    for operator, key, info in theirs:
        lists = set()
        if not operator.startswith("aten::_foreach_"):
            lists = {a.name for a in info.args_with_derivatives if "List" in str(a.type)}
        for derivative in info.forward_derivatives:
            names = tuple(sorted(derivative.var_names))
            _, verb, what = ours[operator, key, names]
            if verb == "is":
                continue
            tangents = {f"{n}_t" for n in derivative.required_inputs_fw_grad or ()}
            primals = {f"{n}_p" for n in derivative.required_inputs_primal or ()}
            arguments = {a.name for a in info.args_with_derivatives} - lists
            mentioned = {n for n in what if n[-2:] in ("_t", "_p") and n[:-2] in arguments}
            assert mentioned == tangents | primals, operator
            compared += 1
    assert compared > 250
