"""The pages of the documentation: their blocks run, in order, and print what the pages say."""

import json
import os
import re
import subprocess
import sys

import pytest
from build_tree import PREFIX, ROOT, build_example

BLOCK = re.compile(
    r"^( *)```(\w+)( \w+)?\n(.*?)^ *```$\n?(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
RUN = """import contextlib, io, json, sys
names = {"__name__": "__main__"}
printed = []
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "page", "exec"), names)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(m[4], m[5]) for m in BLOCK.finditer(text) if m[2] == language]


def run(arguments, folder, **more):
    environment = {**os.environ, "PREFIX": str(PREFIX), "PYTHONPATH": str(PREFIX / "lib/python")}
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, env=environment, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_python(page, folder):
    found = blocks(page, "python")
    assert found
    codes = json.dumps([code for code, _ in found])
    printed = json.loads(run([sys.executable, "-c", RUN], folder, input=codes))
    for (_, expected), got in zip(found, printed):
        assert expected is None or got == expected


@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md", "docs/questions.md"])
def test_python(page, tmp_path):
    check_python(page, tmp_path)


def test_the_bridge():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    check_python("docs/bridge.md", build_example("one_binary"))


def test_a_model_in_a_c_program(tmp_path):
    pytest.importorskip("lamella.hlo")
    page = "docs/ahead-of-time.md"
    ((model, _),) = blocks(page, "python")
    ((main, _),) = blocks(page, "c")
    seeded = f"import lamella\nlamella.manual_seed(3)\n{model}"
    (tmp_path / "model.py").write_text(seeded)
    (tmp_path / "main.c").write_text(main)
    for commands, _ in blocks(page, "sh"):
        if commands.startswith("lamella "):
            commands = f"{sys.executable} -m {commands}"
        run(["sh", "-c", commands], tmp_path)
    show = "\nprint(*net(lamella.tensor([[1.0, 2.0, 3.0, 4.0]]))[0].tolist())"
    expected = run([sys.executable, "-c", seeded + show], tmp_path)
    got = run(["./main"], tmp_path)
    assert [float(n) for n in got.split()] == pytest.approx(
        [float(n) for n in expected.split()], rel=1e-5
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_are_whole(page):
    """Blocks that no test runs can be read by what runs them."""
    import textwrap

    for code, _ in blocks(page, "python"):
        compile(textwrap.dedent(code), str(page), "exec")
    for code, _ in blocks(page, "sh"):
        subprocess.run(["sh", "-n"], input=code, text=True, check=True)
