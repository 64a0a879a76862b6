"""The command `lamella`: ops, explain, new. Tests of opcheck are in tests/opcheck."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from build_tree import CMAKE, PREFIX

import lamella

CTEST = "/usr/bin/ctest" if os.path.exists("/usr/bin/ctest") else shutil.which("ctest")


def command(*arguments, status=0, program=(sys.executable, "-m", "lamella")):
    done = subprocess.run(
        [*program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def test_one_operator_in_full():
    text, _, facts_of_it = command("ops", "mul.Tensor").partition("\n\naten::")
    assert text.startswith("self * other. The operands broadcast") and ">>> lamella.mul(" in text
    lines = f"aten::{facts_of_it}".splitlines()
    assert lines[0] == "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"
    facts = dict(line.split(maxsplit=1) for line in lines[1:6])
    assert facts["declared"].startswith("native_functions.yaml:")
    assert "pointwise" in facts["tags"]
    assert facts["batching"] == "pointwise"
    kernels = [line.split() for line in lines[lines.index("  kernels") + 1 :]]
    assert [key for key, _ in kernels] == ["CPU", "Meta"]
    assert all(place.startswith("native_functions.yaml:") for _, place in kernels)
    assert lines[6].split()[0] == "derivative" and "derivatives.yaml:" in lines[6]


def test_many_operators_in_short():
    lines = command("ops", "aten::mul*").splitlines()
    assert "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor  [CPU, Meta]" in lines
    assert all(line.startswith("aten::mul") for line in lines)
    entries = json.loads(command("ops", "aten::mul*", "--json"))
    assert len(entries) == len(lines)
    entry = next(e for e in entries if e["overload"] == "Tensor" and e["name"] == "aten::mul")
    assert entry["arguments"][1]["name"] == "other"
    assert {kernel["key"] for kernel in entry["kernels"]} >= {"CPU", "Meta"}
    # Other tests of this process may have added operators of their own, but took none away.
    names = {name for name, _ in lamella._C._operator_names() if name.startswith("aten::")}
    lines = command("ops", "aten::*").splitlines()
    assert len(lines) > 1000
    assert {line.split("(")[0].split(".")[0] for line in lines} <= names


def test_an_operator_that_is_not_there():
    text = command("ops", "mull", status=2)
    assert text.startswith("lamella: ops: no operator is called 'mull': near are ")
    assert "aten::mul" in text


def test_explain():
    text = command("explain", "aten::add", "float32[2,3] requires_grad", "float32[3]", "alpha=2")
    lines = text.splitlines()
    assert lines[0] == "aten::add.Tensor"
    steps = {line.split()[0]: line for line in lines[3:]}
    assert "records the gradient" in steps["AutogradCPU"]
    assert "runs: kernel registered at native_functions.yaml:" in steps["CPU"]
    assert "Meta" in command("explain", "relu", "meta float32[2]")
    assert "aten::cat" in command("explain", "cat", "[float32[2], float32[3]]", "0")
    wrong = command("explain", "add", "float33[2]", "1", status=2)
    assert wrong == "lamella: explain: expected a dtype in 'float33[2]', got 'float33'\n"
    assert "explain: " in command("explain", "add", "float32[2]", "'a'", status=2)


def test_the_command_of_the_installed_tree():
    program = [PREFIX / "bin" / "lamella"]
    assert command("--version", program=program) == f"lamella {lamella.__version__}\n"
    assert "opcheck" in command("--help", program=program)
    assert "COMMAND" in command(program=program, status=2)


def test_a_new_project_builds_and_passes(tmp_path):
    folder = tmp_path / "clipping"
    lines = command("new", "clipping", folder).splitlines()
    assert lines[0] == f"{folder}: build and test it with"
    assert sorted(path.name for path in folder.iterdir()) == [
        "CMakeLists.txt",
        "README.md",
        "derivatives.yaml",
        "kernels.cpp",
        "operators.yaml",
        "test_clipping.py",
    ]
    assert not any("@" in path.read_text().replace("@example", "") for path in folder.iterdir())
    build = folder / "build"
    for step in (
        [CMAKE, "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}",
         "-DCMAKE_CXX_FLAGS=-Wall -Wextra", f"-DPython3_EXECUTABLE={sys.executable}"],
        [CMAKE, "--build", build],
        [CTEST, "--test-dir", build, "--output-on-failure"],
    ):  # fmt: skip
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr
    text = command("opcheck", build / "libclipping.so")
    assert text == "3 operators, 0 findings\n"
    text = command("ops", "clipping::softclip", "--library", build / "libclipping.so")
    assert text.startswith("limit * tanh(self / limit): `self` smoothly limited to (-limit, limit)")
    assert "  derivative  derivatives.yaml:" in text


def test_a_new_project_is_one_wheel(tmp_path):
    folder = tmp_path / "clipping"
    lines = command("new", "clipping", folder, "--wheel").splitlines()
    assert f"one wheel for all versions of Python: pip wheel --no-build-isolation {folder}" in lines
    assert {"pyproject.toml", "wheel_backend.py"} < {path.name for path in folder.iterdir()}
    environment = {**os.environ, "PIP_NO_INDEX": "1", "CMAKE_PREFIX_PATH": str(PREFIX)}
    pip = [sys.executable, "-m", "pip"]
    for step in (
        [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path / "wheels", folder],
        [*pip, "install", "--no-deps", "--target", tmp_path / "site", "-f", tmp_path / "wheels",
         "clipping"],
    ):  # fmt: skip
        done = subprocess.run(step, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name.startswith("clipping-0.1.0-py3-none-linux_")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
import clipping, lamella, lamella.bridge
x = lamella.tensor([0.0, 100.0])
assert clipping.softclip(x, 2.0).tolist() == [0, 2]
assert lamella.bridge.dlpack(clipping.library).clipping.softclip(x, 2.0).tolist() == [0, 2]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = subprocess.check_output(
        ["nm", "-D", "--undefined-only", tmp_path / "site/clipping/libclipping.so"], text=True
    )
    assert not [n for n in names.split() if n.startswith("Py") or "torch" in n or "xla" in n]


@pytest.mark.parametrize(
    "name, why",
    [
        ("Clip", "expected NAME to be lower-case letters, digits and '_', got 'Clip'"),
        ("class", "expected a name that is no keyword of Python or C++, got 'class'"),
        ("namespace", "expected a name that is no keyword of Python or C++, got 'namespace'"),
        *(
            (
                name,
                "expected a name that no module of Python, target of CMake or macro of C has, got "
                f"'{name}'",
            )
            for name in ("json", "install", "linux")
        ),
        ("aten", "expected a new namespace, got 'aten', which has operators"),
    ],
)
def test_names_that_no_project_may_have(name, why, tmp_path):
    assert command("new", name, tmp_path, status=2) == f"lamella: new: {why}\n"


def test_new_overwrites_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    text = command("new", "clipping", tmp_path, status=2)
    assert text == f"lamella: new: expected '{tmp_path}' to be empty or not to exist\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_info():
    facts = json.loads(command("info", "--json"))
    assert facts["lamella"] == lamella.__version__
    assert facts["libraries"]["liblamella_more.so"] == "found"
    assert facts["processor"].split()[0] in ("DEFAULT", "AVX2", "AVX512")
    text = command("info")
    assert all(name in text for name in (*facts["libraries"], facts["package"]))


def test_programs_written_for_pytorch_have_help():
    usage = "usage: python -m lamella.compat SCRIPT | -c CODE | -m MODULE [ARGUMENT...]\n"
    program = (sys.executable, "-m", "lamella.compat")
    assert command("--help", program=program).startswith(usage)
    assert command(status=2, program=program) == usage


def test_every_command_that_prints_facts_prints_json(tmp_path):
    facts = json.loads(command("explain", "add", "float32[2]", "float32[2]", "--json"))
    assert facts["operator"] == "aten::add.Tensor" and facts["schema"].startswith(
        "aten::add.Tensor("
    )
    assert facts["keys"] == ["AutogradCPU", "ADInplaceOrView", "CPU"]
    assert facts["steps"][-1]["key"] == "CPU" and facts["steps"][-1]["what"].startswith("runs: ")
    facts = json.loads(command("new", "clipping", tmp_path / "project", "--json"))
    assert facts["folder"] == str(tmp_path / "project") and len(facts["commands"]) == 3
    program = tmp_path / "p.hlo"
    program.write_text(
        "HloModule m\nENTRY f {\n  p = c64[] parameter(0)\n  ROOT s = c64[] add(p, p)\n}\n"
    )
    facts = json.loads(command("hlo", "run", program, "--input", "1+2j", "--json"))
    assert facts == [{"shape": "c64[]", "values": [2, 4]}]
    assert json.loads(command("hlo", "print", program, "--json"))["name"] == "m"
    assert json.loads(command("hlo", "diff", program, program, "--json")) == {
        "equal": True,
        "differences": [],
    }


def test_what_cannot_be_read_or_written_ends_with_status_2(tmp_path):
    missing = tmp_path / "missing"
    wrong = (
        ("hlo", "run", missing), ("hlo", "print", missing), ("hlo", "diff", missing, missing),
        ("compile", missing, "-o", "x"), ("opcheck", missing), ("ops", "--library", missing),
        ("explain", "add", "--library", missing), ("backend-check", missing, "--device", "sim"),
        ("ops", "nosuch"), ("explain", "nosuch"), ("new", "NO"),
    )  # fmt: skip
    for arguments in wrong:
        assert "Traceback" not in command(*arguments, status=2)
    program = (sys.executable, "-m", "lamella.compat")
    assert command(missing, status=2, program=program) == (
        f"lamella.compat: {missing}: No such file or directory\n"
    )


def test_completion():
    script = command("completion")
    ask = script + (
        'ask() { COMP_WORDS=(lamella "$@"); COMP_CWORD=$#; _lamella; echo "${COMPREPLY[@]}"; }\n'
        "ask h; ask hlo r; ask hlo run --js; ask ops --l; ask ops x --j; ask nosuch"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["hlo", "run", "--json", "--library", "--json", ""]
