"""`lamella-gen --check` from the command line, and on the declarations that PyTorch ships.

LAMELLA_BUILD names the build folder (default: build/).
"""

import os
import pathlib
import subprocess

import pytest


def _generator() -> pathlib.Path:
    build = pathlib.Path(os.environ.get("LAMELLA_BUILD", "build"))
    for found in sorted(build.rglob("lamella-gen")):
        if found.is_file() and os.access(found, os.X_OK):
            return found.resolve()
    pytest.fail(f"no lamella-gen under {build}: build it, or set LAMELLA_BUILD")


def _check(*arguments, cwd=None):
    result = subprocess.run(
        [str(_generator()), "--check", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout, result.stderr


def test_declarations_of_pytorch():
    torchgen = pytest.importorskip("torchgen")
    native = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    yaml = native / "native_functions.yaml"
    assert _check(yaml) == (0, "", "")
    assert _check("--tags", native / "tags.yaml", yaml) == (0, "", "")


def test_every_file_is_checked(tmp_path):
    good = tmp_path / "good.yaml"
    good.write_text("- func: twice(Tensor self) -> Tensor\n")
    bad = tmp_path / "bad.yaml"
    bad.write_text("- func: once(tensor self) -> Tensor\n")
    assert _check(good) == (0, "", "")
    status, out, err = _check(good, bad)
    assert (status, out) == (1, "")
    assert err.startswith(f"{bad}:1:14: error: unknown type 'tensor'; did you mean 'Tensor'?\n")


def test_a_file_that_is_not_there(tmp_path):
    missing = tmp_path / "missing.yaml"
    assert _check(missing) == (1, "", f"{missing}: error: cannot read the file\n")
    assert _check(tmp_path) == (1, "", f"{tmp_path}: error: is a folder, not a file\n")


def _joined(text, count, separator=", "):
    return separator.join(text.format(i=i) for i in range(count))


LONG = {
    "arguments": "- func: f(" + _joined("int a{i}", 500_000) + ") -> Tensor\n",
    "same names": "- func: f(" + _joined("int a", 20_000) + ") -> Tensor\n",
    "returns": "- func: f(Tensor x) -> (" + _joined("Tensor r{i}", 200_000) + ")\n",
    "written": "- func: f(" + _joined("Tensor(a{i}!) x{i}", 100_000) + ") -> ()\n",
    "outs": "- func: f.out(Tensor x, *, " + _joined("Tensor(a{i}!) o{i}",
     50_000) + ") -> (" + _joined("Tensor(a{i}!)", 50_000) + ")\n",
    "one alias set of many": "- func: f(Tensor(" + _joined("a{i}", 100_000,
     "|") + ") x) -> ()\n",
    "folded": "- func: >\n    f(\n" + _joined("      int a{i},\n", 100_000,
     "") + "    int z) -> ()\n",
    "tags": "- func: f(Tensor x) -> Tensor\n  tags: [" + _joined("t{i}", 20_000) + "]\n",
    "keys": "- func: f(Tensor x) -> Tensor\n  dispatch:\n    " + _joined("K{i}",
     20_000) + ": k\n",
    "autogen": "- func: f(Tensor x) -> Tensor\n  autogen: " + _joined("f.o{i}", 20_000) + "\n",
    "no defaults": "- func: f(" + _joined("int a{i}",
     20_000) + ") -> Tensor\n  cpp_no_default_args: [" + _joined("b{i}", 20_000) + "]\n",
    "delegates": _joined("- func: f{i}(Tensor x) -> Tensor\n  structured_delegate: g{i}.out\n",
     10_000, ""),
    "numbers": "- [" + _joined("{i}", 200_000) + "]\n",
}  # fmt: skip


@pytest.mark.parametrize("what", LONG)
def test_time_grows_with_the_text(tmp_path, what):
    path = tmp_path / "long.yaml"
    path.write_text(LONG[what])
    # A quadratic step takes minutes.
    result = subprocess.run(
        [str(_generator()), "--check", str(path)], capture_output=True, text=True, timeout=20
    )
    assert result.returncode in (0, 1)
    # Lines are shown in part.
    assert len(result.stdout) + len(result.stderr) < 1000 * 60_000
