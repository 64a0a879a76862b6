"""lamella-gen's output at full size: for the declarations that PyTorch ships, and a Python module.

LAMELLA_BUILD names the build folder (default: build/), CXX the compiler (default: c++).
"""

import os
import pathlib
import runpy
import subprocess
import sys
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _generator() -> pathlib.Path:
    build = pathlib.Path(os.environ.get("LAMELLA_BUILD", "build"))
    for found in sorted(build.rglob("lamella-gen")):
        if found.is_file() and os.access(found, os.X_OK):
            return found.resolve()
    pytest.fail(f"no lamella-gen under {build}: build it, or set LAMELLA_BUILD")


def _generate(*arguments):
    command = [str(_generator()), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory):
    """The files generated from the wheel's native_functions.yaml, and the arguments used."""
    torchgen = pytest.importorskip("torchgen")
    native = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    out = tmp_path_factory.mktemp("pytorch")
    arguments = ["--tags", native / "tags.yaml", "--out", out, native / "native_functions.yaml"]
    start = time.perf_counter()
    _generate(*arguments)
    return out, arguments, time.perf_counter() - start


def test_all_of_pytorch_in_seconds(pytorch):
    out, _, seconds = pytorch
    assert seconds < 10
    assert len(list((out / "lamella/api/ops").glob("*.h"))) > 1000


def test_a_second_run_touches_nothing(pytorch):
    out, arguments, _ = pytorch
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    _generate(*arguments)
    after = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert before == after


@pytest.mark.parametrize(
    "header",
    ["api/redispatch.h", "native_functions.h", "structured_kernels.h"],
)
def test_all_of_pytorch_compiles(pytorch, tmp_path, header):
    out, _, _ = pytorch
    source = tmp_path / "all.cpp"
    source.write_text(f'#include "lamella/{header}"\n')
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only"]
    command += ["-Wall", "-Wextra", "-Wno-unused-parameter"]
    command += ["-I", str(out), "-I", str(ROOT), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[:4000]
    assert result.stderr == ""


def test_stubs_of_all_of_pytorch(pytorch, tmp_path):
    pytest.importorskip("mypy")
    out, _, _ = pytorch
    user = tmp_path / "user.py"
    user.write_text(
        "import lamella\n"
        "a: lamella.Tensor = lamella.zeros(2, 3, dtype=lamella.float32)\n"
        "b: lamella.Tensor = lamella.add(a, 1, alpha=2) + a.view(3, 2)\n"
        "values, indices = lamella.max(a, 0)\n"
        "values.add_('text')\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict"]
    command += ["--cache-dir", str(tmp_path / "cache")]
    stubs = sorted(str(path) for path in (out / "python/lamella").glob("*.pyi"))
    environment = {**os.environ, "MYPYPATH": str(out / "python")}
    result = subprocess.run(command + stubs, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout[:4000]
    result = subprocess.run(command + [str(user)], capture_output=True, text=True, env=environment)
    errors = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, result.stdout
    assert "user.py:5" in errors[0] and '"add_"' in errors[0]


def test_a_library_gets_a_python_module(tmp_path, monkeypatch):
    yaml = pathlib.Path(__file__).parent / "golden/library.yaml"
    _generate(
        "--out", tmp_path, "--target", "geo", "--methods",
        "--python-module", "geo_ops", "--library", "libgeo.so", yaml,
    )  # fmt: skip

    class Tensor:
        pass

    class Namespace:
        def __init__(self, name):
            self.name = name

        def __getattr__(self, op):
            return lambda *args, **kwargs: (f"{self.name}.{op}", args, kwargs)

    def add_to_tensor(members):
        for name, method in members.items():
            setattr(Tensor, name, method)

    loaded = []
    lamella = types.ModuleType("lamella")
    lamella.load_library = loaded.append
    lamella.ops = types.SimpleNamespace(geo=Namespace("geo"), more=Namespace("more"))
    lamella._C = types.SimpleNamespace(_add_to_tensor=add_to_tensor)
    monkeypatch.setitem(sys.modules, "lamella", lamella)

    module = runpy.run_path(str(tmp_path / "geo_ops.py"))
    assert loaded == [str(tmp_path / "libgeo.so")]
    assert module["__all__"] == ["norm", "pair", "scale", "scale_", "twice"]
    assert module["pair"](1) == ("more.pair", (1,), {})
    x = Tensor()
    assert x.norm(2, p=1) == ("geo.norm", (x, 2), {"p": 1})
    assert not hasattr(x, "twice")
