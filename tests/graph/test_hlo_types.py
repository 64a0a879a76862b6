"""The types of lamella.hlo: a program that uses it passes mypy --strict."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import lamella

PROGRAM = """
import lamella
hlo = lamella.hlo

m: hlo.Module = hlo.parse("HloModule m")
r: list[lamella.Tensor] = hlo.evaluate(m, 1.0)
e = hlo.compile(m)
print(e(1)[0].tolist(), e.output_shape.dimensions, [i.opcode for i in m.entry.instructions])
b = hlo.Builder("x")
x = b.parameter("f32[2,3]")
y = hlo.add(x, 1.0) * 2 - x[0]
z: hlo.Op = hlo.reduce(y, 0.0, lambda p, q: p + q, [0])
c = hlo.concat_in_dim([x, y], 0)
d = hlo.concat_in_dim(b, [x, y], 0)
print(b.build(b.tuple([z, c, d])).to_string(percent=True))


@hlo.custom_call_target("f")
def f(t: lamella.Tensor) -> lamella.Tensor:
    return t * 2


hlo.register_custom_call_target("g", 1)
print(lamella.hlo.Shape("f32[2]").element_type == hlo.ElementType.F32)
"""


def test_a_program_has_types(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    root = pathlib.Path(lamella.__file__).resolve().parent.parent
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)]
    done = subprocess.run(
        [*command, f"--cache-dir={tmp_path}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(root)},
    )
    assert done.stdout == "Success: no issues found in 1 source file\n"
