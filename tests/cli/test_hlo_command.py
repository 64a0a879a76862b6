"""The command `lamella hlo`: run, print, graph, diff."""

import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """HloModule sums, entry_computation_layout={(f32[2,3]{1,0}, s32[])->(f32[2,3]{1,0}, \
s32[])}

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  n = s32[] parameter(1)
  twice = f32[2,3]{1,0} add(x, x), metadata={op_name="jit(f)/add"}
  more = s32[] add(n, n)
  ROOT both = (f32[2,3]{1,0}, s32[]) tuple(twice, more)
}

"""


def command(*arguments, status=0, text=None):
    done = subprocess.run(
        [sys.executable, "-m", "lamella", "hlo", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        input=text,
        env={**os.environ, "LAMELLA_BUNDLES": "off"},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 or not done.stderr else done.stderr


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "sums.hlo"
    file.write_text(PROGRAM)
    return file


def test_a_program_runs_on_files_and_numbers(program, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    out = command("run", program, "--input", tmp_path / "x.npy", "--input", 4)
    assert out.startswith("output 0: f32[2,3]{1,0}\ntensor([[ 0.,  2.,  4.],")
    assert out.endswith("output 1: s32[]\ntensor(8, dtype=lamella.int32)\n")
    # Columns first, and from the standard input.
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    again = command("run", "-", "--input", tmp_path / "x.npy", "--input", 4, text=PROGRAM)
    assert again == out


def test_a_program_runs_on_random_numbers_and_writes_its_results(program, tmp_path):
    outs = [command("run", program, "--random", 3, "--output", tmp_path / "out") for _ in range(2)]
    assert outs[0] == outs[1] != command("run", program, "--random", 4)
    first = np.load(tmp_path / "out" / "output_0.npy")
    assert first.shape == (2, 3) and first.dtype == np.float32 and np.ptp(first) > 0
    assert np.load(tmp_path / "out" / "output_1.npy").dtype == np.int32


@pytest.mark.parametrize(
    "element", ["pred", "s4", "u2", "s64", "u64", "f16", "bf16", "f8e4m3", "f8e5m2", "c64", "c128"]
)
def test_random_numbers_of_every_kind(element, tmp_path):
    text = f"HloModule m\nENTRY main {{\n  ROOT p = {element}[5] parameter(0)\n}}\n"
    command("run", "-", "--random", 1, "--output", tmp_path, text=text)
    # What was written can be read.
    command("run", "-", "--input", tmp_path / "output_0.npy", text=text)


def test_files_of_several_tensors(program, tmp_path):
    import lamella

    tensors = {"n": lamella.tensor(2, dtype=lamella.int32), "x": lamella.ones(2, 3)}
    lamella.save_file(tensors, tmp_path / "in.safetensors")
    out = command("run", program, "--input", tmp_path / "in.safetensors")
    assert "tensor(4, dtype=lamella.int32)" in out


def test_what_is_missing_or_wrong_is_named(program, tmp_path):
    assert command("run", program, status=2) == (
        "lamella: hlo: expected 2 inputs, got 0; missing are x: f32[2,3]{1,0}, n: s32[]; give "
        "--input for each, or --random SEED\n"
    )
    np.save(tmp_path / "x.npy", np.ones(2))
    wrong = command("run", program, "--input", tmp_path / "x.npy", "--input", 1, status=1)
    assert wrong == "lamella: hlo: expected argument 0 ('x') to be f32[2,3], got f64[2]\n"
    nobody = command("run", tmp_path / "none.hlo", status=2)
    assert nobody == f"lamella: hlo: {tmp_path / 'none.hlo'}: No such file or directory\n"
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\x04\x00{}  ")
    broken = command("run", program, "--input", tmp_path / "broken.npy", status=2)
    assert broken.endswith("broken.npy: expected an .npy file of numbers\n")


def test_errors_show_the_line_and_the_place(tmp_path):
    file = tmp_path / "wrong.hlo"
    file.write_text(PROGRAM.replace("= s32[] add(", "= s32[] addd("))
    for part in (["print"], ["run"], ["graph", "-o", tmp_path / "x.dot"], ["diff", file]):
        assert command(*part, file, status=2) == (
            f"lamella: hlo: {file}:7:16: expected an opcode, got 'addd'\n"
            "    more = s32[] addd(n, n)\n"
            "                 ^\n"
        )


def test_the_same_failure_has_the_same_status(tmp_path):
    file = tmp_path / "unknown.hlo"
    file.write_text(
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n"
        '  ROOT y = f32[2] custom-call(x), custom_call_target="mine::unknown"\n}\n'
    )
    for part in (["run"], ["graph", "--compiled", "-o", tmp_path / "x.dot"]):
        assert "mine::unknown" in command(*part, file, status=2)


def test_print(program):
    assert command("print", program) == PROGRAM
    assert "metadata" not in command("print", program, "--no-metadata")
    assert "%twice = f32[2,3]{1,0} add(%x, %x)" in command("print", program, "--percent")
    shapes = command("print", program, "--operand-shapes")
    assert "more = s32[] add(s32[] n, s32[] n)" in shapes
    assert command("print", "-", text=PROGRAM) == PROGRAM


def test_graph_writes_what_the_name_of_the_file_says(program, tmp_path):
    for ending, begins in (
        ("html", "<!DOCTYPE html>"),
        ("dot", 'digraph "sums" {'),
        ("json", '{\n "format": "lamella.hlo"'),
    ):
        file = tmp_path / f"sums.{ending}"
        assert command("graph", program, "-o", file) == ""
        assert file.read_text(encoding="utf-8").startswith(begins)
    said = command("graph", program, "-o", tmp_path / "sums.png", status=2)
    assert "expected --output to end in .html, .dot or .json" in said


def test_diff_says_what_differs(program, tmp_path):
    assert command("diff", program, program) == "equal\n"
    other = tmp_path / "other.hlo"
    other.write_text(PROGRAM.replace("twice", "double"))
    assert command("diff", program, other) == "equal up to renaming\n"
    other.write_text(PROGRAM.replace("add(x, x)", "multiply(x, x)"))
    assert command("diff", program, other, status=1) == (
        "main:\n"
        "  - twice = f32[2,3]{1,0} add(x, x)\n"
        "  ~ both: operand 0: twice -> twice\n"
        "  + twice = f32[2,3]{1,0} multiply(x, x)\n"
        "1 removed, 1 added, 1 changed, 3 equal\n"
    )
