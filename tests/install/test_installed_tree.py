"""The installed tree, build/prefix, as a project outside sees it."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PREFIX = ROOT / "build" / "prefix"

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(outside CXX)
find_package(Lamella 0.1 REQUIRED)
add_library(own SHARED own.cpp)
target_link_libraries(own PRIVATE Lamella::lamella)
add_library(compat SHARED compat.cpp)
target_link_libraries(compat PRIVATE Lamella::compat)
get_target_property(generator Lamella::lamella-gen LOCATION)
file(WRITE "${CMAKE_BINARY_DIR}/generator.txt" "${generator}")
"""

OWN = """
#include <lamella/lamella.h>
static int64_t twice(int64_t x) { return 2 * x; }
LAMELLA_LIBRARY(install_test_own, m) { m.def("twice(int x) -> int", &twice); }
"""

COMPAT = """
#include <torch/library.h>
static int64_t thrice(int64_t x) {
  TORCH_CHECK(x >= 0, "thrice: expected 'x' >= 0, got ", x);
  return 3 * x;
}
TORCH_LIBRARY(install_test_compat, m) { m.def("thrice(int x) -> int", &thrice); }
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A built project that finds Lamella with find_package."""
    if not (PREFIX / "include/lamella/lamella.h").is_file():
        pytest.fail(f"no installed tree in {PREFIX}: run `make build`")
    source = tmp_path_factory.mktemp("outside")
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "own.cpp").write_text(OWN)
    (source / "compat.cpp").write_text(COMPAT)
    cmake = "/usr/bin/cmake" if os.path.exists("/usr/bin/cmake") else shutil.which("cmake")
    build = source / "build"
    run(
        cmake, "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror",
    )  # fmt: skip
    run(cmake, "--build", build)
    return build


def test_an_extension_asks_only_for_the_c_abi(project):
    check = ROOT / "tools" / "check_exports.py"
    library = PREFIX / "lib" / "liblamella.so"
    run(sys.executable, check, library, project / "libown.so", project / "libcompat.so")


def test_an_extension_loads_and_registers(project):
    # A library that cannot register says so on stderr or fails to load; a good one is silent.
    for name in ("libown.so", "libcompat.so"):
        script = f"import ctypes; ctypes.CDLL({str(project / name)!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_generator_is_installed(project):
    generator = (project / "generator.txt").read_text()
    assert generator == str(PREFIX / "bin" / "lamella-gen")
    run(generator, "--check", ROOT / "ops" / "native_functions.yaml")


def test_the_core_library_is_small():
    assert (PREFIX / "lib" / "liblamella.so").stat().st_size <= 8 * 1024 * 1024
