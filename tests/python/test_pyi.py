"""The type stubs: a program that uses the package passes mypy --strict."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import lamella

GOOD = """
import lamella
import lamella.nn.functional as F
from lamella import Tensor


def step(x: Tensor, eps: float = 1e-5) -> Tensor:
    y = 2.0 - x * 2.0 + 1
    y += eps
    z = (y @ y.exp()).to(lamella.float16)
    rows: int = z.size(0)
    assert rows == z.shape[0]
    return F.softmax(z[0:1, None], dim=-1)


t = lamella.tensor([[1.0, 2.0]], dtype=lamella.float32)
print(step(t).tolist(), lamella.add(t, 1, alpha=2), lamella.add(t, t, out=t), t.dtype.itemsize)
print(lamella.empty(2, 3), lamella.empty((2, 3), dtype=lamella.int64))
print(lamella.finfo(lamella.float32).eps, lamella.manual_seed(1).initial_seed())
library = lamella.library.Library("mine", "DEF")
print(library.define("f(Tensor x) -> Tensor"), lamella.utils.cmake_prefix_path, float(t[0, 0]))
with lamella.no_grad():
    w = lamella.zeros(2, requires_grad=True)
(w * 2).sum().backward()
g: Tensor | None = w.grad
d: Tensor = lamella.cdist(t.clone(), t, compute_mode="use_mm_for_euclid_dist")
rows_of: tuple[Tensor, ...] = lamella.atleast_2d(t, d) + t.nonzero(as_tuple=True)
print(lamella.tensordot(t, t, dims=2), lamella.einsum("ij,ij->", t, t), t.unique(), rows_of)
print(lamella.linalg.LinAlgError, lamella.ops.aten.add.Tensor(t, t))
"""

BAD = """
import lamella

t = lamella.tensor([1.0])
t.size("a")
t.no_such_method()
lamella.empty(2, dtype="float32")
"""


def mypy(tmp_path, program):
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(program))
    root = os.path.dirname(os.path.dirname(os.path.abspath(lamella.__file__)))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            f"--cache-dir={tmp_path}",
            str(file),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": root},
    )
    return done.stdout


def test_a_good_program(tmp_path):
    assert mypy(tmp_path, GOOD) == "Success: no issues found in 1 source file\n"


def test_a_bad_program(tmp_path):
    out = mypy(tmp_path, BAD)
    for line in (5, 6, 7):
        assert f"program.py:{line}: error" in out


def test_the_stub_names_what_there_is():
    """Names of the stub exist, and public functions of the package are in the stub."""
    import ast

    path = os.path.join(os.path.dirname(lamella.__file__), "__init__.pyi")
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):  # "import save as save" names it as well
            names.update(alias.asname for alias in node.names if alias.asname)
    missing = {name for name in names if not name.startswith("_") and not hasattr(lamella, name)}
    assert not missing
    # In an interpreter of its own: backends that other tests load add names.
    program = (
        "import json, lamella; print(json.dumps([[name for name, value in vars(lamella).items() "
        "if callable(value) and name[0] != '_'], "
        "[name for name in dir(lamella.Tensor) if name[0] != '_']]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    functions, has = map(set, json.loads(done.stdout))
    assert not functions - names
    (tensor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    members = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    members |= {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in members if not name.startswith("_")} == has
