"""docs/custom-calls.md: its target is compiled, and its program runs with it."""

import re
import subprocess

import numpy as np
import pytest
from build_tree import PREFIX, ROOT

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

PAGE = (ROOT / "docs" / "custom-calls.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    (code,) = (text for language, text in BLOCKS if language == "cpp")
    folder = tmp_path_factory.mktemp("page")
    (folder / "target.cpp").write_text(code, encoding="utf-8")
    library = PREFIX / "lib"
    command = ["c++", "-std=c++20", "-shared", "-fPIC", "target.cpp", "-o", "libtarget.so"]
    command += [f"-I{PREFIX / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command += ["-llamella_graph", "-llamella"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lamella.load_library(str(folder / "libtarget.so"))
    (text,) = (text for _, text in BLOCKS if text.startswith("HloModule"))
    return text


def test_the_program_runs(program):
    b = np.arange(128, dtype=np.float32)
    c = np.linspace(0, 1, 2048, dtype=np.float32)
    (a,) = hlo.compile(program)(b, c)
    np.testing.assert_array_equal(a.numpy(), np.tile(b, 16) + c)
    assert "add_repeated" in hlo.custom_call_targets("Host")


def test_the_error_is_as_printed(program):
    (printed,) = (text for _, text in BLOCKS if text.startswith("hlo: "))
    with pytest.raises(RuntimeError) as caught:
        hlo.compile(program.replace("add_repeated", "add_repeted"))
    assert str(caught.value).startswith(" ".join(printed.split()))


def test_a_function_of_python(capsys):
    (code,) = (text for language, text in BLOCKS if language == "python")
    exec(compile(code, "docs/custom-calls.md", "exec"), {})
    (said,) = re.findall(r"# (\[.*\])", code)
    assert capsys.readouterr().out.strip() == said
