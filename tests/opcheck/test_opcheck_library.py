"""lamella opcheck on two libraries: in one each operator has a defect, in the other none has."""

import json
import subprocess
import sys

import pytest
from build_tree import BUILD

import lamella

FOLDER = BUILD / "tests" / "opcheck"

# Each operator of the wrong library, with what is wrong with it and a part of how that is told.
DEFECTS = {
    "writes_its_argument": ("undeclared-mutation", "argument 'x' was written, its schema says T"),
    "reshapes_its_argument": ("undeclared-mutation", "argument 'x' was given another shape"),
    "never_writes_": ("untrue-mutation", "argument 'x' was never written"),
    "hides_its_write_": ("unversioned-write", "its version did not change"),
    "returns_its_argument": ("undeclared-alias", "the result shares memory with argument 'x'"),
    "returns_a_view": ("undeclared-alias", "the result shares memory with argument 'x'"),
    "returns_one_twice": ("undeclared-alias", "return 1 shares memory with return 0"),
    "copies_its_view": ("untrue-alias", "never shares memory with argument 'x'"),
    "returns_another_": ("untrue-alias", "expected argument 'x' itself to be returned"),
    "has_no_meta": ("missing-meta", "no kernel for Meta"),
    "meta_of_other_shape": ("wrong-meta", "float32[4, 4], Meta says float32[1, 4, 4]"),
    "meta_of_other_dtype": ("wrong-meta", "float32[4, 4], Meta says float64[4, 4]"),
    "meta_of_other_strides": ("wrong-meta", "has strides [4, 1], Meta says [1, 4]"),
    "meta_refuses": ("wrong-meta", "expected 'x' to have 2 dimensions, got 1"),
    "loses_its_gradient": ("lost-gradient", "varies with argument 'x'"),
    "gradient_is_wrong": ("wrong-gradient", "with respect to input 0"),
    "forgets_an_input": ("wrong-gradient", "with respect to input 1"),
    "second_gradient_is_wrong": ("wrong-second-gradient", "Jacobian"),
    "composite_reads": ("composite-violation", "composite_reads"),
    "reads_past_the_end": ("out-of-bounds", "0 bytes past the end of a tensor's 64 bytes"),
    "writes_past_the_end": ("out-of-bounds", "memory beside a tensor's own was written"),
    "leaves_a_gap": ("uninitialised", "never written"),
    "divides_by_zero": ("crash", "SIGFPE when called with x=float32[0, 4]"),
    "leaks_its_result": ("leak", "a call leaves 1 storage and 64 bytes behind"),
    "leaks_when_it_fails": ("leak", "a call that fails leaves 1 storage"),
    "returns_nothing": ("undefined-return", "an undefined tensor was returned"),
    "counts_its_calls": ("nondeterministic", "at a second call"),
    "hides_its_randomness": ("nondeterministic", "depends on the random generator"),
    "turns_gradients_off": ("state-changed", "grad mode was True and is False"),
    "shares_its_scratch": ("thread-unsafe", "while another thread called it as well"),
    "assumes_contiguous": ("layout-dependent", "where argument 'x' is float32[4, 4] with strides"),
    "ignores_the_offset": ("layout-dependent", "from element 5"),
    "rejects_its_default": ("default-rejected", "expected 'factor' to be positive, got 0"),
    "twice.other_out": ("out-mismatch", "unlike defects::twice"),
    "twice.ignores_strides_out": ("out-mismatch", "unlike defects::twice"),
    "mixes_its_examples": ("wrong-batching", "under vmap over x: result 0 of example 0"),
    "hides_from_the_tracer": ("wrong-trace", "result 0 of the graph has"),
    "refuses_its_autocast_class": (
        "wrong-autocast",
        "under autocast: refuses_its_autocast_class: expected 'x' to be float",
    ),
    "twice_": ("inplace-mismatch", "unlike defects::twice"),
}


def command(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "lamella", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    path = FOLDER / "libopcheck_defects.so"
    report = tmp_path_factory.mktemp("opcheck") / "report.json"
    return command("opcheck", path, "--json", report), json.loads(report.read_text())


def test_each_defect_is_one_line(wrong):
    done, _ = wrong
    assert done.returncode == 1, done.stderr
    *lines, total = done.stdout.splitlines()
    found = dict(line.split("  ", 1) for line in lines)
    assert len(found) == len(lines), "an operator with two lines"
    for name, (kind, text) in DEFECTS.items():
        line = found.pop(f"defects::{name}", "nothing")
        assert line.startswith(f"{kind}  ") and text in line, f"{name}: {line}"
    assert not found
    assert len(DEFECTS) >= 25
    assert total == f"{len(DEFECTS) + 1} operators, {len(DEFECTS)} findings"


def test_the_report_as_json(wrong):
    _, report = wrong
    assert report["library"].endswith("libopcheck_defects.so")
    assert "defects::twice" in report["operators"]
    finding = next(f for f in report["findings"] if f["operator"] == "defects::has_no_meta")
    assert finding["kind"] == "missing-meta"
    assert finding["schema"] == "defects::has_no_meta(Tensor x) -> Tensor"
    finding = next(f for f in report["findings"] if f["kind"] == "undeclared-mutation")
    assert finding["inputs"] == "x=float32[4, 4]"


def test_nothing_is_found_in_a_right_library():
    done = command("opcheck", FOLDER / "libopcheck_right.so")
    assert done.stderr == ""
    assert done.stdout.endswith(" operators, 0 findings\n")
    assert int(done.stdout.split()[0]) >= len(DEFECTS)
    assert done.returncode == 0


def test_one_operator_and_inputs_of_the_author(tmp_path):
    inputs = tmp_path / "inputs.py"
    inputs.write_text(
        "import lamella\n"
        "def inputs(name):\n"
        "    return [((lamella.ones(2, 3),), {})] if name == 'defects::has_no_meta' else None\n"
    )
    done = command(
        "opcheck", FOLDER / "libopcheck_defects.so", "--op", "has_no_meta", "--inputs", inputs
    )
    assert done.returncode == 1
    assert done.stdout == (
        "defects::has_no_meta  missing-meta  no kernel for Meta: shapes are not known without "
        "computing\n1 operator, 1 finding\n"
    )


def test_what_cannot_be_examined(tmp_path):
    done = command("opcheck", tmp_path / "nothing.so")
    assert done.returncode == 2
    assert done.stderr.startswith("lamella: opcheck: ") and "load_library" in done.stderr
    done = command("opcheck", FOLDER / "libopcheck_right.so", "--op", "absent")
    assert done.returncode == 2
    assert done.stderr.endswith("defines no operator 'absent'\n")


@pytest.fixture(scope="module")
def loaded():
    return [lamella.load_library(FOLDER / f"libopcheck_{n}.so") for n in ("defects", "right")]


def test_opcheck_in_the_process(loaded):
    x = lamella.randn(3, 4)
    results = lamella.testing.opcheck(lamella.ops.right.scaled, (x, 2.0), {"times": 1})
    assert set(results.values()) == {"SUCCESS"}
    assert "gradients" in results
    with pytest.raises(lamella.testing.OpCheckError) as error:
        lamella.testing.opcheck(lamella.ops.defects.writes_its_argument, (x,))
    assert str(error.value) == (
        "defects::writes_its_argument  undeclared-mutation  argument 'x' was written, its schema "
        "says Tensor x\n  called with x=float32[3, 4]"
    )
    results = lamella.testing.opcheck(
        lamella.ops.defects.has_no_meta.default,
        (x,),
        test_utils=["test_schema", "test_faketensor"],
        raise_exception=False,
    )
    assert results["test_schema"] == "SUCCESS"
    assert (
        lamella.testing.opcheck(
            lamella.ops.defects.returns_its_argument, (x,), raise_exception=False
        )["gradients"]
        == "SKIPPED"
    )
    assert "missing-meta" in results["test_faketensor"]


def test_mistakes_of_the_caller(loaded):
    with pytest.raises(ValueError) as error:
        lamella.testing.opcheck(lamella.ops.right.twice, (lamella.ones(2),))
    assert str(error.value) == (
        "opcheck: expected 'op' to be one overload of right::twice: default, out"
    )
    with pytest.raises(ValueError, match="expected 'test_utils' to name checks, got 'test_all'"):
        lamella.testing.opcheck(lamella.ops.right.scaled, (lamella.ones(2),), test_utils="test_all")
    with pytest.raises(TypeError, match="expected 'op' to be an operator of lamella.ops"):
        lamella.testing.opcheck(print, ())


def test_builtin_operators_pass():
    """Correct built-in operators pass all checks."""
    x, y = lamella.randn(3, 4), lamella.randn(3, 4)
    for op, args in [
        (lamella.ops.aten.mul.Tensor, (x, y)),
        (lamella.ops.aten.tanh.default, (x,)),
        (lamella.ops.aten.mm.default, (x, y.t())),
        (lamella.ops.aten.sum.dim_IntList, (x, [1])),
        (lamella.ops.aten.transpose.int, (x, 0, 1)),
        (lamella.ops.aten.add_.Tensor, (x, y)),
        (lamella.ops.aten.cat.default, ([x, y], 1)),
        (lamella.ops.aten.sort.default, (x, 1)),
    ]:
        lamella.testing.opcheck(op, args)
