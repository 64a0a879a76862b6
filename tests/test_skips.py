"""The table of skips in conftest.py is enforced."""

import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")


def run(folder, body):
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "test_some.py").write_text(f"import pytest\n\n{body}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_what_a_machine_lacks_may_be_skipped(tmp_path):
    done = run(tmp_path, "def test_a():\n    pytest.skip('Graphviz is not installed')\n")
    assert done.returncode == 0, done.stdout


def test_other_reasons_fail_the_run(tmp_path):
    done = run(tmp_path, "def test_a():\n    pytest.skip('libx.so is not built')\n")
    assert done.returncode == 1
    assert "test_some.py::test_a: 'libx.so is not built' is no reason to skip" in done.stdout
    done = run(tmp_path, "pytest.importorskip('no_such_package')\n\ndef test_a():\n    pass\n")
    assert done.returncode == 1
    assert "could not import 'no_such_package'" in done.stdout


def test_more_than_listed_fails_the_run(tmp_path):
    body = "@pytest.mark.parametrize('n', range(2))\ndef test_a(n):\n"
    done = run(tmp_path, body + "    pytest.skip('Graphviz is not installed')\n")
    assert done.returncode == 1
    line = "'Graphviz is not installed' (no Graphviz): expected at most 1 skips, got 2"
    assert line in done.stdout
