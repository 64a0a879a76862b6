"""Policies: the words of an operator's definition, set and read from Python."""

import pytest

import lamella


def test_built_in_operators_say_theirs():
    add = lamella.ops.aten.add.Tensor
    assert "hlo:add" in add.tags
    assert add.policy("hlo") == "add"
    assert lamella.ops.aten.where.self.policy("hlo") == "select"
    # What is said of a family holds for its other forms, but for what only pure functions have.
    assert lamella.ops.aten.add_.Tensor.policy("hlo") is None
    assert lamella.ops.aten.add.out.policy("hlo") is None
    assert lamella.ops.aten.add.Tensor.policy("nothing") is None


def test_define_takes_policies():
    lib = lamella.library.Library("pol_py", "FRAGMENT")
    lib.define(
        "f(Tensor x) -> Tensor", tags="core", autocast="float32", batching="pointwise", hlo="tanh"
    )
    f = lamella.ops.pol_py.f.default
    assert f.tags == ["core", "autocast:float32", "batching:pointwise", "hlo:tanh"]
    assert f.policy("autocast") == "float32"
    assert f.policy("autocast.cuda") == "float32"
    assert f.policy("batching") == "pointwise"
    assert f.policy("hlo") == "tanh"
    lamella.library.define("pol_py::g", "(Tensor x) -> Tensor", lib=lib, tags=["pointwise"])
    g = lamella.ops.pol_py.g.default
    assert g.policy("batching") == "pointwise"
    assert g.policy("autocast") is None
    lib.close()


def test_define_refuses_unknown_words():
    lib = lamella.library.Library("pol_py_bad", "FRAGMENT")
    with pytest.raises(RuntimeError) as error:
        lib.define("f(Tensor x) -> Tensor", autocast="flaot32")
    line = f"{__file__}:{error.traceback[0].lineno + 1}"
    assert str(error.value) == (
        "pol_py_bad::f: 'autocast' expects lower_precision, float32, float32_set_dtype, widest, "
        f"banned or none, got 'flaot32'; did you mean 'float32'? ({line})"
    )
    with pytest.raises(RuntimeError, match="'hlo' expects an HLO opcode such as add, got 'nope'"):
        lib.define("f(Tensor x) -> Tensor", hlo="nope")
    lib.close()
