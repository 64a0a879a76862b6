"""The wheel of lamella-runtime: one for every version of Python, without the extension module."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy
import pytest

from lamella import _paths

HERE = pathlib.Path(__file__).resolve().parent
BASE = getattr(sys, "_base_executable", sys.executable)
VERSIONS = [(3, minor) for minor in range(9, 14)]

# The first argument is the folder of the wheel, the second that of NumPy.
PROGRAM = """
import site, sys
sys.path.append(sys.argv[2])
site.addsitedir(sys.argv[1])
import numpy, lamella, lamella.bridge
assert "lamella_runtime" in lamella.__file__, lamella.__file__
ops = lamella.bridge.dlpack(sys.argv[3]).cases
x = numpy.arange(4.0)
assert ops.midpoint(x, x + 1, 0.25).tolist() == [0.25, 1.25, 2.25, 3.25]
assert ops.scaled(x, 2j).tolist() == [0, 2j, 4j, 6j]
assert [y.tolist() for y in ops.parts(x, [1, 2], "first")] == [[0], [0, 1]]
out = numpy.empty(4)
assert ops.midpoint(x, x, out=out) is out and out.tolist() == x.tolist()
assert ops.raise_by_(x, 1.0) is x and x.tolist() == [1, 2, 3, 4]
many = numpy.ones(1 << 20, numpy.float32)
assert (ops.cube(many) == 1).all()
for _ in range(1000):
    ops.pair(x, 2)
for wrong in (lambda: ops.fail(x, "type"), lambda: ops.cube("x"), lambda: ops.cube()):
    try:
        wrong()
    except TypeError as error:
        print(error)
try:
    lamella.ops
except AttributeError as error:
    assert "lamella-runtime, which has lamella.bridge alone" in str(error)
"""
EXPECTED = """fail: expected 'kind' to be kind, got type
cube: expected 'x' to be Tensor, got str
cube: expected 'x', of type Tensor; it is missing
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    tool = HERE.parents[1] / "tools" / "runtime_wheel.py"
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.check_output([sys.executable, tool, _paths.prefix, folder], text=True)
    return pathlib.Path(made.strip())


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A folder into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", folder, wheel], check=True)
    return folder


def pythons():
    """One interpreter for each version that is here, none of an environment with Lamella."""
    found = [BASE, *(shutil.which(f"python{a}.{b}") for a, b in VERSIONS)]
    found += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
    program = "import sys; print(*sys.version_info[:2])"
    versions = {}
    for path in filter(None, found):
        said = subprocess.run([path, "-c", program], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            versions.setdefault(tuple(map(int, said.stdout.split())), path)
    return {v: path for v, path in versions.items() if v in VERSIONS}


def numpy_for(python, folder):
    """A folder with NumPy for an interpreter; None: there is none."""
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
        return folder
    pip = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, "numpy"]
    return folder if subprocess.run(pip, capture_output=True).returncode == 0 else None


def test_wheel(wheel):
    assert wheel.name.startswith("lamella_runtime-") and "-py3-none-manylinux_2_" in wheel.name
    assert wheel.stat().st_size < 6 << 20
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        for name in names:
            if not name.endswith((".so", ".so.1")):
                continue
            path = wheel.parent / pathlib.Path(name).name
            path.write_bytes(file.read(name))
            needed = subprocess.check_output(["nm", "-D", "--undefined-only", path], text=True)
            words = needed.split()
            assert not [n for n in words if n.startswith(("Py", "_Py")) or "torch" in n], name
    assert not [name for name in names if "_C" in pathlib.Path(name).name]


def test_every_python(site, library, tmp_path):
    tried = []
    for version, python in pythons().items():
        if python == BASE:
            folder = pathlib.Path(numpy.__file__).parents[1]
        else:
            folder = numpy_for(python, tmp_path / f"numpy{version[1]}")
        if folder is None:
            continue
        command = [python, "-I", "-c", PROGRAM, site, folder, library]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0 and found.stdout == EXPECTED, (version, found.stderr)
        tried.append(version)
    assert sys.version_info[:2] in tried


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_transforms(site, library, framework):
    """The tests of the whole package, with the runtime in its place."""
    module = pytest.importorskip(framework)
    program = (
        "import site, sys, pytest; sys.path.insert(0, sys.argv.pop(1)); "
        "site.addsitedir(sys.argv[1]); sys.path.insert(0, sys.argv.pop(1) + '/lamella_runtime'); "
        "import lamella; assert 'lamella_runtime' in lamella.__file__; "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    names = "test_transforms or test_errors or test_arguments or compile or several_devices"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", names]
    file = HERE / f"test_{framework}.py"
    packages = pathlib.Path(module.__file__).parents[1]
    path = os.pathsep.join([str(site / "lamella_runtime"), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", program, packages, site, *options, file],
        env={**os.environ, "BRIDGE_LIBRARY": str(library), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr
