"""tools/release.sh: the version, the changelog and the archive of a release."""

import json
import os
import re
import subprocess
import sys
import tarfile

import pytest
from build_tree import ROOT


def sh(*command, cwd, status=0, **settings):
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **settings}
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    """A repository with the files that have the version, and those that make a release."""
    folder = tmp_path / "tree"
    files = ("CMakeLists.txt", "pyproject.toml", "python/lamella/__init__.py", "tools/release.sh",
             "lamella/abi/record.txt")  # fmt: skip
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / ".gitignore").write_text("build*\n")
    changes = "# Changelog\n\n## 0.9.3 (unreleased)\n\n- One.\n\n## 0.1.0 (2020-01-01)\n\n- Two.\n"
    (folder / "CHANGELOG.md").write_text(changes)
    sh("git", "init", "-q", cwd=folder)
    commit(folder)
    return folder


def commit(folder):
    sh("git", "add", "-A", cwd=folder)
    sh("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin", cwd=folder)


def test_a_release(tree):
    text = sh("sh", "tools/release.sh", "0.9.3", cwd=tree, LAMELLA_RELEASE_BUILD="0")
    assert "git tag v0.9.3" in text
    assert "project(Lamella VERSION 0.9.3 " in (tree / "CMakeLists.txt").read_text()
    assert '\nversion = "0.9.3"\n' in (tree / "pyproject.toml").read_text()
    assert '\n__version__ = "0.9.3"\n' in (tree / "python/lamella/__init__.py").read_text()
    assert "(unreleased)" not in (tree / "CHANGELOG.md").read_text()
    out = tree / "build" / "release" / "0.9.3"
    assert sorted(path.name for path in out.iterdir()) == [
        "SHA256SUMS", "abi-record.txt", "lamella-0.9.3.tar.gz", "notes.md",
    ]  # fmt: skip
    assert (out / "notes.md").read_text().strip() == "- One."
    sh("sha256sum", "-c", "SHA256SUMS", cwd=out)
    with tarfile.open(out / "lamella-0.9.3.tar.gz") as archive:
        made = archive.extractfile("lamella-0.9.3/pyproject.toml").read().decode()
        assert 'version = "0.9.3"' in made
        assert len(archive.getnames()) == 8
        about = archive.extractfile("lamella-0.9.3/PKG-INFO").read().decode()
        assert "\nName: lamella\nVersion: 0.9.3\n" in about
    # Nothing is committed or tagged.
    assert sh("git", "log", "--oneline", cwd=tree).count("\n") == 1
    assert sh("git", "tag", cwd=tree) == ""


def test_a_dry_run_leaves_the_sources_alone(tree):
    wheel = tree / "build/wheels/lamella-0.9.3-cp311-cp311-manylinux_2_36_x86_64.whl"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("")
    sh("sh", "tools/release.sh", "0.9.3", "--dry-run", cwd=tree)
    assert sh("git", "status", "--porcelain", cwd=tree) == ""
    out = tree / "build/release/0.9.3"
    assert (out / wheel.name).exists() and wheel.name in (out / "SHA256SUMS").read_text()
    with tarfile.open(out / "lamella-0.9.3.tar.gz") as archive:
        made = archive.extractfile("lamella-0.9.3/pyproject.toml").read().decode()
        assert 'version = "0.9.3"' in made


def test_what_is_refused(tree):
    for version, told in (
        ("two", "expected a version such as 0.2.0, got 'two'"),
        ("0.9.4", "expected CHANGELOG.md to have a section '## 0.9.4 (unreleased)'"),
    ):
        text = sh("sh", "tools/release.sh", version, cwd=tree, status=2)
        assert text == f"tools/release.sh: {told}\n"
    text = sh("sh", "tools/release.sh", "0.9.3", "--dry", cwd=tree, status=2)
    assert text == (
        "tools/release.sh: expected --dry-run or nothing behind the version, got '--dry'\n"
    )
    (tree / "new.txt").write_text("")
    text = sh("sh", "tools/release.sh", "0.9.3", cwd=tree, status=2)
    assert text == "tools/release.sh: expected a work tree without changes\n"


def test_what_the_hosts_checks_run_is_there():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = set()
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        text = file.read_text()
        for line in re.findall(r"run: make (.*)", text):
            names = re.search(r"target: \[(.*)\]", text)[1] if "matrix.target" in line else line
            asked |= {word for word in re.split(r"[ ,]+", names) if "=" not in word}
    assert asked == {
        "aarch64",
        "coverage",
        "fuzz",
        "lint",
        "reference",
        "sanitize",
        "site",
        "test",
        "wheel",
    }
    assert asked <= targets


def test_coverage_by_room(tmp_path):
    (tmp_path / "lamella/core").mkdir(parents=True)
    (tmp_path / "lamella/core/one.cpp").write_text(
        "int f(int x) {\n  if (x > 1)\n    return 2;\n  return 1;\n}\n"
        "int main() { return f(1) - 1; }\n"
    )
    sh("c++", "-O0", "--coverage", "lamella/core/one.cpp", "-o", "one", cwd=tmp_path)
    sh("./one", cwd=tmp_path)
    files = {"x/python/lamella/a.py": {"executed_lines": [1, 2, 3], "missing_lines": [4]}}
    (tmp_path / "python.json").write_text(json.dumps({"files": files}))
    table = sh(sys.executable, str(ROOT / "tools/coverage_table.py"), ".", cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert rows == {
        "room": ["lines", "ran"],
        "lamella/core": ["5", "80.0%"],
        "python": ["4", "75.0%"],
        "all": ["9", "77.8%"],
    }
