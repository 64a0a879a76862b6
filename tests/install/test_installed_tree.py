"""The installed tree, build/prefix, as external projects use it."""

import os
import subprocess
import sys

import pytest
from build_tree import PREFIX, ROOT, build, check_needs_only_the_c_abi, run

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(outside CXX)
find_package(Lamella 0.1 REQUIRED)
add_library(own SHARED own.cpp)
target_link_libraries(own PRIVATE Lamella::lamella)
add_library(derived SHARED derived.cpp)
target_link_libraries(derived PRIVATE Lamella::lamella)
target_include_directories(derived PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
lamella_add_operators(TARGET derived YAML operators.yaml DERIVATIVES derivatives.yaml
                      DERIVATIVES_HEADER formulas.h)
add_library(compat SHARED compat.cpp)
target_link_libraries(compat PRIVATE Lamella::compat)
add_executable(xla xla.cpp)
target_link_libraries(xla PRIVATE Lamella::compat Lamella::graph)
get_target_property(generator Lamella::lamella-gen LOCATION)
file(WRITE "${CMAKE_BINARY_DIR}/generator.txt" "${generator}")
"""

OWN = """
#include <lamella/lamella.h>
static int64_t twice(int64_t x) { return 2 * x; }
LAMELLA_LIBRARY(install_test_own, m) { m.def("twice(int x) -> int", &twice); }
"""

# An operator with a derivative, and a check of its gradient that ctypes can call.
OPERATORS = """
- func: install_test_derived::cube(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: cube
"""

DERIVATIVES = """
- name: install_test_derived::cube(Tensor self) -> Tensor
  self: three_squares(grad, self)
"""

FORMULAS = """
#pragma once
#include <lamella/lamella.h>
namespace install_test_derived {
inline lamella::Tensor three_squares(const lamella::Tensor& grad, const lamella::Tensor& x) {
  return grad * x * x * 3;
}
}
"""

DERIVED = """
#include <lamella/lamella.h>
#include "derived/functions.h"
#include "derived/native_functions.h"
using lamella::Tensor;
namespace install_test_derived::native {
Tensor cube(const Tensor& self) { return self * self * self; }
}
// The gradient of cube at x.
extern "C" __attribute__((visibility("default"))) float gradient_of_cube(float x) try {
  Tensor leaf = lamella::full({}, x, lamella::kFloat);
  lamella::detail::check(lamella_tensor_set_requires_grad(leaf.impl(), 1));
  Tensor y = install_test_derived::cube(leaf);
  lamella_tensor* root = y.impl();
  lamella_tensor* none = nullptr;
  lamella::detail::check(lamella_backward_run(&root, &none, 1, nullptr, 0, 0, nullptr));
  Tensor grad = lamella::TensorBase::adopt(lamella_tensor_grad(leaf.impl()));
  return grad.item().to<float>();
} catch (...) {
  return -1;
}
"""

COMPAT = """
#include <torch/library.h>
static int64_t thrice(int64_t x) {
  TORCH_CHECK(x >= 0, "thrice: expected 'x' >= 0, got ", x);
  return 3 * x;
}
TORCH_LIBRARY(install_test_compat, m) { m.def("thrice(int x) -> int", &thrice); }
"""

# A graph with a custom call, as XLA's users write it.
XLA = """
#include "tensorflow/compiler/xla/client/client_library.h"
#include "tensorflow/compiler/xla/client/local_client.h"
#include "tensorflow/compiler/xla/client/xla_builder.h"
#include "tensorflow/compiler/xla/literal_util.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#include <cstdio>
static void add_three(void* out, const void** in) {
  for (int i = 0; i < 2; ++i) {
    static_cast<float*>(out)[i] = static_cast<const float*>(in[0])[i] + 3;
  }
}
XLA_REGISTER_CUSTOM_CALL_TARGET(add_three, "Host");
int main() {
  xla::XlaBuilder b("outside");
  xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {2});
  xla::XlaOp x = xla::Parameter(&b, 0, shape, "x");
  xla::CustomCall(&b, "add_three", {x + x}, shape);
  xla::LocalClient* client = xla::ClientLibrary::LocalClientOrDie();
  auto data = client->TransferToServer(xla::LiteralUtil::CreateR1<float>({1, 2})).ValueOrDie();
  xla::Literal result =
      client->ExecuteAndTransfer(b.Build().ValueOrDie(), {data.get()}).ValueOrDie();
  std::printf("%g %g", result.Get<float>({0}), result.Get<float>({1}));
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A built project that finds Lamella with find_package."""
    if not (PREFIX / "include/lamella/lamella.h").is_file():
        pytest.fail(f"no installed tree in {PREFIX}: run `make build`")
    source = tmp_path_factory.mktemp("outside")
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "own.cpp").write_text(OWN)
    (source / "compat.cpp").write_text(COMPAT)
    (source / "xla.cpp").write_text(XLA)
    (source / "derived.cpp").write_text(DERIVED)
    (source / "formulas.h").write_text(FORMULAS)
    (source / "operators.yaml").write_text(OPERATORS)
    (source / "derivatives.yaml").write_text(DERIVATIVES)
    flags = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"
    return build(source, source / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", flags)


def test_an_extension_asks_only_for_the_c_abi(project):
    check_needs_only_the_c_abi(
        *(project / f"lib{name}.so" for name in ("own", "compat", "derived"))
    )


def test_an_extension_loads_and_registers(project):
    # A library that cannot register says so on stderr or fails to load; a good one is silent.
    for name in ("libown.so", "libcompat.so"):
        script = f"import ctypes; ctypes.CDLL({str(project / name)!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_derivatives_of_a_project_outside(project):
    script = (
        "import ctypes\n"
        f"library = ctypes.CDLL({str(project / 'libderived.so')!r})\n"
        "library.gradient_of_cube.restype = ctypes.c_float\n"
        "print(library.gradient_of_cube(ctypes.c_float(2)))\n"
    )
    assert run(sys.executable, "-c", script) == "12.0\n"


def test_a_graph_of_a_project_outside(project):
    assert run(project / "xla") == "5 7"


def test_the_generator_is_installed(project):
    generator = (project / "generator.txt").read_text()
    assert generator == str(PREFIX / "bin" / "lamella-gen")
    run(generator, "--check", ROOT / "ops" / "native_functions.yaml")


def test_the_core_library_is_small():
    assert (PREFIX / "lib" / "liblamella.so").stat().st_size <= 12 * 1024 * 1024


# Classes that headers instantiate beyond the standard headers under them: what compiling an
# extension costs, in a number that no other load on the machine changes. A test of a file that
# includes one header and calls nothing; the bounds are a tenth above what was counted.
LIGHT = [
    ("#include <lamella/library.h>\n#include <lamella/api/ops/add.h>\n", 800),
    ("#include <lamella/autograd.h>\n", 1150),
    ("#include <lamella/lamella.h>\n", 3600),
]


@pytest.mark.parametrize("text, most", LIGHT)
def test_headers_instantiate_little(text, most, tmp_path):
    def classes(text):
        (tmp_path / "file.cpp").write_text(text)
        dump = tmp_path / "classes"
        # Clang does not list the classes of a translation unit.
        run("g++", "-std=c++20", "-fsyntax-only", f"-fdump-lang-class={dump}",
            f"-I{PREFIX / 'include'}", tmp_path / "file.cpp")  # fmt: skip
        return sum(line.startswith("Class ") for line in dump.read_text().splitlines())

    standard = "".join(f"#include <{name}>\n" for name in ("optional", "string", "tuple", "vector"))
    assert classes(text) - classes(standard) <= most


def test_hlo_is_a_library_that_loads_when_it_is_asked_for():
    for name in ("liblamella_graph.so", "liblamella_lapack.so"):
        assert (PREFIX / "lib" / name).is_file()
    program = (
        "import lamella\n"
        "def loaded():\n"
        "    with open('/proc/self/maps') as maps:\n"
        "        return 'liblamella_graph.so' in maps.read()\n"
        "before = loaded()\n"
        "text = 'HloModule m\\nENTRY f {\\n  ROOT p = f32[] parameter(0)\\n}\\n'\n"
        "print(before, lamella.hlo.evaluate(text, 2.0)[0].item(), loaded())\n"
    )
    path = str(PREFIX / "lib" / "python")
    out = run(sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": path})
    assert out == "False 2.0 True\n"
