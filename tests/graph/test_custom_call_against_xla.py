"""The same functions as targets of XLA's CPU client and of Lamella, called by the same programs."""

import ctypes
import pathlib
import subprocess
import sys

import numpy as np
import pytest

hlo = pytest.importorskip("lamella.hlo")
jax = pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
xla_oracle = pytest.importorskip("xla_oracle")

# Each hands on what it sees: elements in the order in which they lie in memory.
SOURCE = """
#include <cstring>
#include <string>
struct Status;
extern "C" {
void plain(void* out, const void** in) {
  for (int i = 0; i < 6; ++i) ((float*)out)[i] = 10 * ((const float*)in[0])[i] + i;
}
void with_status(void* out, const void** in, Status*) { plain(out, in); }
void unified(void* out, const void** in, const char* opaque, size_t length, Status*) {
  plain(out, in);
  for (size_t i = 0; i < 6; ++i) ((float*)out)[i] += i < length ? opaque[i] : 0;
}
void two_results(void* out, const void** in) {
  float** results = (float**)out;
  for (int i = 0; i < 6; ++i) results[0][i] = ((const float*)in[0])[i] + i;
  for (int i = 0; i < 3; ++i) results[1][i] = ((const float*)in[1])[i] * 2;
}
void in_place(void* out, const void** in) {
  for (int i = 0; i < 6; ++i) ((float*)out)[i] += 1 + (out == in[0]);
}
}
"""
NAMES = ("plain", "with_status", "unified", "two_results", "in_place")

STATUS = ", api_version=API_VERSION_STATUS_RETURNING"
UNIFIED = ", api_version=API_VERSION_STATUS_RETURNING_UNIFIED"
X = "  x = f32[2,3]{1,0} parameter(0)\n"
# Name of the case: the lines of the program.
PROGRAMS = {
    "original": X + '  ROOT r = f32[6] custom-call(x), custom_call_target="@plain"',
    "status": X + '  ROOT r = f32[6] custom-call(x), custom_call_target="@with_status"' + STATUS,
    "unified": X
    + '  ROOT r = f32[6] custom-call(x), custom_call_target="@unified"'
    + UNIFIED
    + ', backend_config="abc\\n"',
    "no_opaque": X + '  ROOT r = f32[6] custom-call(x), custom_call_target="@unified"' + UNIFIED,
    "column_major_operand": X + '  ROOT r = f32[6]{0} custom-call(x), custom_call_target="@plain", '
    "operand_layout_constraints={f32[2,3]{0,1}}",
    "column_major_result": X + '  c = f32[2,3]{0,1} custom-call(x), custom_call_target="@plain", '
    "operand_layout_constraints={f32[2,3]{1,0}}\n"
    "  ROOT r = f32[2,3]{1,0} copy(c)",
    "transposed_operand": X + "  t = f32[3,2]{0,1} transpose(x), dimensions={1,0}\n"
    '  ROOT r = f32[6] custom-call(t), custom_call_target="@plain"',
    "two_results": X + "  y = f32[3]{0} parameter(1)\n"
    '  ROOT r = (f32[6], f32[3]) custom-call(x, y), custom_call_target="@two_results"',
    "result_layout_alone": X + '  c = f32[2,3]{0,1} custom-call(x), custom_call_target="@plain"\n'
    "  ROOT r = f32[2,3]{1,0} copy(c)",
    "two_layouts": X + "  y = f32[3]{0} parameter(1)\n"
    "  c = (f32[2,3]{0,1}, f32[3]{0}) custom-call(x, y), "
    'custom_call_target="@two_results", '
    "operand_layout_constraints={f32[2,3]{0,1}, f32[3]{0}}\n"
    "  c0 = f32[2,3]{0,1} get-tuple-element(c), index=0\n"
    "  c1 = f32[3]{0} get-tuple-element(c), index=1\n"
    "  d = f32[2,3]{1,0} copy(c0)\n"
    "  ROOT r = (f32[2,3]{1,0}, f32[3]{0}) tuple(d, c1)",
    "aliased": X + '  c = f32[2,3]{1,0} custom-call(x), custom_call_target="@in_place", '
    "output_to_operand_aliasing={{}: (0, {})}\n"
    "  ROOT r = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(c, x)",
    "aliased_twice": X + "  n = f32[2,3]{1,0} negate(x)\n"
    '  c = f32[2,3]{1,0} custom-call(n), custom_call_target="@in_place", '
    "output_to_operand_aliasing={{}: (0, {})}\n"
    '  d = f32[2,3]{1,0} custom-call(c), custom_call_target="@in_place", '
    "output_to_operand_aliasing={{}: (0, {})}\n"
    "  ROOT r = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(n, d)",
}


# A process may come back to these tests after others, and XLA ends a process that registers another
# function under a name that it has.
@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    (folder / "targets.cpp").write_text(SOURCE, encoding="utf-8")
    command = ["c++", "-std=c++17", "-shared", "-fPIC", "-w", "targets.cpp", "-o", "targets.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "targets.so"))
    for name in NAMES:
        function = getattr(library, name)
        capsule = jax.ffi.pycapsule(function)
        jax.ffi.register_ffi_target(f"against_xla.{name}", capsule, platform="cpu", api_version=0)
        hlo.register_custom_call_target(f"against_xla.{name}", capsule, replace=True)
    return "against_xla."


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_target_sees_the_same(prefix, name):
    text = "HloModule m\n\nENTRY main {\n" + PROGRAMS[name].replace("@", prefix) + "\n}\n"
    x = np.array([[1.5, 2, 3], [4, 5, 6]], np.float32)
    arrays = [x, np.array([7, 8, 9], np.float32)][: text.count(" parameter(")]
    expected = xla_oracle.run(text, *arrays)
    got = hlo.evaluate(text, *arrays)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        np.testing.assert_array_equal(ours.numpy(), theirs)
