"""The command `lamella compile`: object files that C programs call."""

import os
import subprocess
import sys

import numpy as np
import pytest
from build_tree import PREFIX, run

hlo = pytest.importorskip("lamella.hlo")

PROGRAM = """HloModule several

ENTRY main {
  pair = (f32[5], (s32[2,2], pred[3])) parameter(0)
  wide = c64[2] parameter(1)
  small = bf16[3] parameter(2)
  none = f64[0,4] parameter(3)
  x = f32[5] get-tuple-element(pair), index=0
  others = (s32[2,2], pred[3]) get-tuple-element(pair), index=1
  n = s32[2,2] get-tuple-element(others), index=0
  p = pred[3] get-tuple-element(others), index=1
  c = f32[5] constant({nan, -nan, 0, -0, inf})
  y = f32[5] add(x, c)
  m = s32[2,2] multiply(n, n)
  q = pred[3] not(p)
  product = c64[2] multiply(wide, wide)
  called = f32[5] custom-call(x), custom_call_target="aten::relu"
  smaller = bf16[3] negate(small)
  inner = (c64[2], bf16[3], f64[0,4]) tuple(product, smaller, none)
  ROOT all = (f32[5], s32[2,2], pred[3], (c64[2], bf16[3], f64[0,4]), f32[5]) \
tuple(y, m, q, inner, called)
}
"""
MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "several.h"
static void* at(FILE* file, size_t bytes) {
  char* block = malloc(bytes + 64); /* not aligned */
  if (fread(block + 1, 1, bytes, file) != bytes) exit(2);
  return block + 1;
}
int main(void) {
  FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");
  void* i[6];
  size_t sizes[] = {20, 16, 3, 16, 6, 0};
  for (int n = 0; n < 6; ++n) i[n] = at(in, sizes[n]);
  for (int again = 0; again < 3; ++again) {
    float y[5], product[4], called[5];
    int32_t m[4];
    uint8_t q[3];
    uint16_t smaller[3];
    double none[1];
    if (several(i[0], i[1], i[2], i[3], i[4], i[5], y, m, q, product, smaller, none, called)) {
      return puts(lamella_program_error()), 1;
    }
    if (again != 2) continue;
    fwrite(y, 1, 20, out), fwrite(m, 1, 16, out), fwrite(q, 1, 3, out);
    fwrite(product, 1, 16, out), fwrite(smaller, 1, 6, out), fwrite(called, 1, 20, out);
  }
  fclose(out);
  char line[4096];
  for (FILE* maps = fopen("/proc/self/maps", "r"); fgets(line, sizeof line, maps);) {
    if (strstr(line, "libLLVM") || strstr(line, "libpython")) return puts(line), 1;
  }
  return 0;
}
"""


def command(*arguments, status=0, **settings):
    done = subprocess.run(
        [sys.executable, "-m", "lamella", "compile", *map(str, arguments)],
        capture_output=True, text=True, check=False, env={**os.environ, **settings},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def linked(folder, name, main, language="c"):
    source, library = folder / f"main.{language}", PREFIX / "lib"
    source.write_text(main)
    run("c++" if language == "cpp" else "cc", "-Wall", "-Werror", source, folder / f"{name}.o",
        f"-I{folder}", f"-L{library}", f"-Wl,-rpath,{library}", "-llamella_graph", "-llamella",
        "-o", folder / "main")  # fmt: skip
    return folder / "main"


def test_every_kind_of_argument(tmp_path):
    (tmp_path / "p.hlo").write_text(PROGRAM)
    assert command(tmp_path / "p.hlo", "-o", tmp_path / "several") == ""
    main = linked(tmp_path, "several", MAIN)
    x = np.array([1, -2, 3, -0.0, 5], np.float32)
    n = np.array([[1, 2], [3, -4]], np.int32)
    p = np.array([True, False, True])
    wide = np.array([1 + 2j, -1j], np.complex64)
    small = np.array([0x3F80, 0xBF80, 0x7F80], np.uint16)
    (tmp_path / "in").write_bytes(b"".join(a.tobytes() for a in (x, n, p, wide, small)))
    run(main, cwd=tmp_path)
    nan = np.array([np.nan, -np.nan, 0, -0.0, np.inf], np.float32)
    got = (tmp_path / "out").read_bytes()
    np.testing.assert_array_equal(np.frombuffer(got[:20], np.float32), x + nan)
    np.testing.assert_array_equal(np.frombuffer(got[20:36], np.int32), (n * n).ravel())
    np.testing.assert_array_equal(np.frombuffer(got[36:39], np.bool_), ~p)
    np.testing.assert_allclose(np.frombuffer(got[39:55], np.complex64), wide * wide)
    np.testing.assert_array_equal(np.frombuffer(got[55:61], np.uint16), small ^ 0x8000)
    np.testing.assert_array_equal(np.frombuffer(got[61:], np.float32), np.maximum(x, 0))


def test_errors_of_calls(tmp_path):
    (tmp_path / "p.hlo").write_text(
        "HloModule m\nENTRY e {\n  x = s64[2] parameter(0)\n  y = s64[1] parameter(1)\n"
        '  ROOT r = s64[1] custom-call(x, y), custom_call_target="aten::index_select",\n'
        '      backend_config="%0, 0, %1"\n}\n'
    )
    command(tmp_path / "p.hlo", "-o", tmp_path / "row")
    main = """#include <cstdio>
#include "row.h"
int main() {
  int64_t x[] = {7, 8}, at[] = {1}, out[1];
  if (row(x, at, out) != 0 || out[0] != 8) return 1;
  at[0] = 2;
  if (row(x, at, out) == 0) return 1;
  std::puts(lamella_program_error());
}
"""
    assert run(linked(tmp_path, "row", main, "cpp")) == (
        "hlo: 'r' (custom-call aten::index_select): index_select: "
        "expected 'index' in [0, 1], got 2\n"
    )
    (tmp_path / "p.hlo").write_text(
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n"
        '  ROOT y = f32[2] custom-call(x), custom_call_target="mine::unknown"\n}\n'
    )
    text = command(tmp_path / "p.hlo", "-o", tmp_path / "f", status=2)
    assert text.startswith("lamella: ") and "mine::unknown" in text


@pytest.mark.parametrize(
    ("output", "settings", "error"),
    [
        ("1x", {}, "compile: expected a C identifier for the function, got '1x'"),
        ("a-b", {}, "compile: expected a C identifier for the function, got 'a-b'"),
        ("none/f", {}, "compile: none/f: No such file or directory"),
        (
            "f",
            {"LAMELLA_COMPILER": "0"},
            "compile: expected liblamella_compiler.so, which is built with LLVM (llvm-19-dev)",
        ),
    ],
)
def test_errors(tmp_path, monkeypatch, output, settings, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.hlo").write_text("HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n")
    assert command("p.hlo", "-o", output, status=2, **settings) == f"lamella: {error}\n"
    assert os.listdir(tmp_path) == ["p.hlo"]


def test_tokens_have_no_arrays(tmp_path):
    (tmp_path / "p.hlo").write_text(
        "HloModule m\nENTRY e {\n  t = token[] parameter(0)\n  ROOT c = f32[] constant(1)\n}\n"
    )
    assert command(tmp_path / "p.hlo", "-o", tmp_path / "f", status=2) == (
        "lamella: compile: expected arrays, got t of token[]\n"
    )


def test_large_constants_are_bytes_of_the_library(tmp_path):
    """In the entry and in a computation that it calls, between small ones, and of narrow types."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40000)).astype(np.float32)
    bits = rng.integers(0, 2, 5000).astype(bool)

    def constant(values):
        return "{" + ", ".join(map(str, values.tolist())).lower() + "}"

    program = f"""HloModule large
added {{
  p = f32[40000] parameter(0)
  c = f32[40000] constant({constant(a)})
  ROOT s = f32[40000] add(p, c)
}}
ENTRY main {{
  p = f32[40000] parameter(0)
  two = f32[2] constant({{1, 2}})
  c = f32[40000] constant({constant(b)})
  m = pred[5000] constant({constant(bits)})
  s = f32[40000] call(p), to_apply=added
  r = f32[40000] multiply(s, c)
  ROOT t = (f32[40000], f32[2], pred[5000]) tuple(r, two, m)
}}
"""
    (tmp_path / "large.hlo").write_text(program)
    command(tmp_path / "large.hlo", "-o", tmp_path / "liblarge.a")
    size = (tmp_path / "liblarge.a").stat().st_size
    # Loops over elements have their constants in their code, too.
    assert 325000 <= size < 2 * 325000 + 30000
    main = """#include <stdio.h>
#include "large.h"
int main(void) {
  static float in[40000], out[40000], two[2];
  static uint8_t bits[5000];
  for (int i = 0; i < 40000; ++i) in[i] = i;
  if (large(in, out, two, bits)) return puts(lamella_program_error()), 1;
  FILE* file = fopen("out", "wb");
  fwrite(out, 4, 40000, file), fwrite(two, 4, 2, file), fwrite(bits, 1, 5000, file);
}
"""
    (tmp_path / "main.c").write_text(main)
    library = PREFIX / "lib"
    run("cc", "main.c", "-o", "main", "-L.", "-llarge", f"-L{library}", f"-Wl,-rpath,{library}",
        "-llamella_graph", "-llamella", "-lm", cwd=tmp_path)  # fmt: skip
    for settings in ({}, {"LAMELLA_COMPILER": "0"}):
        run(tmp_path / "main", cwd=tmp_path, env={**os.environ, **settings})
        data = (tmp_path / "out").read_bytes()
        expected = (np.arange(40000, dtype=np.float32) + a) * b
        np.testing.assert_array_equal(np.frombuffer(data[:160000], np.float32), expected)
        assert data[160000:] == np.float32([1, 2]).tobytes() + bits.tobytes()


def test_what_is_said_of_a_python_module(tmp_path, monkeypatch):
    path = tmp_path / "model.py"
    path.write_text("def f(x):\n    return x if x.sum() > 0 else -x\n\n\ng = 3\n")
    for name, example, told in (
        ("h", "3", f"expected '{path}' to define a module or function 'h'"),
        ("g", "3", f"expected '{path}' to define a module or function 'g'"),
        ("f", "float32[2]", f"{path}:f: "),
    ):
        text = command(f"{path}:{name}", "--example", example, "-o", tmp_path / "f.a", status=2)
        assert text.startswith(f"lamella: compile: {told}"), text
    assert command(f"{tmp_path}/no.py:f", "-o", "f", status=2) == (
        f"lamella: compile: {tmp_path}/no.py: No such file or directory\n"
    )
    from lamella import _cli

    for platform in ("win32", "darwin"):
        monkeypatch.setattr(sys, "platform", platform)
        assert _cli.main(["compile", f"{path}:f", "-o", "f"]) == 2
