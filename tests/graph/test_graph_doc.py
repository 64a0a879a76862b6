"""docs/graph.md: its snippets run in order and print what the page says."""

import contextlib
import importlib.util
import io
import re
import subprocess
import sys

import pytest
from build_tree import PREFIX, ROOT

pytest.importorskip("lamella.hlo")

PAGE = (ROOT / "docs" / "graph.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^```(\w+)( \w+)?\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def blocks(language):
    return [m.group(2, 3, 4) for m in BLOCK.finditer(PAGE) if m.group(1) == language]


def test_python():
    names = {"__name__": "__main__"}
    found = blocks("python")
    assert len(found) >= 7
    for needs, code, expected in found:
        if needs and importlib.util.find_spec(needs.strip()) is None:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/graph.md", "exec"), names)
        if expected is not None:
            assert printed.getvalue() == expected
        elif "except RuntimeError" in code:
            assert printed.getvalue().startswith("hlo: ")


def test_commands(tmp_path):
    code = blocks("python")[0][1]
    text = code[code.index('"""') + 3 : code.rindex('"""')]
    (tmp_path / "shifted.hlo").write_text(text, encoding="utf-8")
    commands = "".join(code for _, code, _ in blocks("sh"))
    for command in commands.splitlines():
        words = command.split()
        assert words[0] == "lamella"
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout or words[1] == "compile"
    assert "int shifted(const float* input0, float* output0);" in (
        tmp_path / "shifted.h"
    ).read_text(encoding="utf-8")


def test_cpp(tmp_path):
    ((_, code, _),) = blocks("cpp")
    (tmp_path / "build.cpp").write_text(code, encoding="utf-8")
    library = PREFIX / "lib"
    command = ["c++", "-std=c++20", "-O0", "build.cpp", "-o", "build", f"-I{PREFIX / 'include'}"]
    command += [f"-L{library}", f"-Wl,-rpath,{library}", "-llamella_graph", "-llamella"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = subprocess.run([tmp_path / "build"], capture_output=True, text=True, check=True).stdout
    assert text.startswith("HloModule shifted")
