"""Mistakes of a first library of operators, and what is said about each."""

import os
import subprocess
import sys

import pytest
from build_tree import CMAKE, PREFIX

FIRST = """#include <lamella/lamella.h>
using lamella::Tensor;
static Tensor good(const Tensor& x) { return x + 1; }
static Tensor halves(const Tensor& x) { return x * (*x.const_data_ptr<float>() / 2); }

static Tensor plus(const Tensor& x, const std::optional<Tensor>& y) { return x + *y; }
LAMELLA_LIBRARY(mistakes, m) {
  m.def("good(Tensor x) -> Tensor");
  m.def("halves(Tensor x) -> Tensor");
  m.def("plus(Tensor x, Tensor? y) -> Tensor", plus);
}
LAMELLA_LIBRARY_IMPL(mistakes, CPU, m) {
  m.impl("godo", good);
  m.impl("nothing_is_near", good);
  m.impl("halves", halves);
}
"""
SECOND = """#include <lamella/lamella.h>
LAMELLA_LIBRARY(wrong_schema, m) {
  m.def("fine(Tensor x) -> Tensor");

  m.def("good(tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(wrong_schema, CPU, m) {
  m.impl("good", [](const lamella::Tensor& x) { return x + 1; });
}
"""
CMAKE_LISTS = """cmake_minimum_required(VERSION 3.22)
project(mistakes LANGUAGES CXX)
find_package(Lamella REQUIRED)
add_library(first SHARED first.cpp)
add_library(second SHARED second.cpp)
target_link_libraries(first PRIVATE Lamella::lamella)
target_link_libraries(second PRIVATE Lamella::lamella)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "first.cpp").write_text(FIRST)
    (folder / "second.cpp").write_text(SECOND)
    (folder / "CMakeLists.txt").write_text(CMAKE_LISTS)
    options = (f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O0")
    for command in ((CMAKE, "-S", ".", "-B", "build", *options), (CMAKE, "--build", "build")):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(folder, code, *words):
    command = [sys.executable, *words] if words else [sys.executable, "-c", code]
    path = str(PREFIX / "lib" / "python")
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )


LOAD = """import warnings, lamella
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    {}.load_library("build/libfirst.so")
print(*(f"{{one.category.__name__}}: {{one.message}}" for one in told), sep="\\n")
"""


@pytest.mark.parametrize("by", ["lamella", "lamella.ops"])
def test_a_kernel_for_a_name_that_nothing_declares(folder, by):
    done = run(folder, LOAD.format(by))
    assert done.stdout == (
        "UserWarning: impl: unknown operator 'mistakes::godo'; did you mean 'mistakes::good'? "
        f"({folder}/first.cpp:12)\n"
    ), done.stderr


def test_a_warning_that_is_an_error_leaves_nothing_loaded(folder):
    code = """import warnings, lamella
warnings.simplefilter("error")
try:
    lamella.load_library("build/libfirst.so")
except UserWarning as error:
    print(error)
print("mistakes" in {name.partition("::")[0] for name, _ in lamella._C._operator_names()})
"""
    lines = run(folder, code).stdout.splitlines()
    assert lines[0].startswith("impl: unknown operator 'mistakes::godo'") and lines[1] == "False"


def test_a_wrong_dtype_in_data_ptr(folder):
    code = """import lamella
lamella.load_library("build/libfirst.so")
try:
    lamella.ops.mistakes.halves(lamella.ones(1, dtype=lamella.float64))
except RuntimeError as error:
    print(error)
"""
    assert run(folder, code).stdout == (
        "halves: const_data_ptr: expected a tensor of float32, got float64\n"
    )


def test_an_argument_that_is_none_in_a_debug_build(folder):
    code = """import lamella
lamella.load_library("build/libfirst.so")
lamella.ops.mistakes.plus(lamella.ones(1), None)
"""
    done = run(folder, code)
    assert done.returncode != 0 and "Assertion 'this->_M_is_engaged()' failed" in done.stderr


def test_an_error_in_a_schema_has_its_place_and_is_told_once(folder):
    done = run(folder, "import lamella; lamella.load_library('build/libsecond.so')")
    assert done.stderr.partition("RuntimeError: ")[2] == (
        f"load_library: {folder}/build/libsecond.so could not register its operators\n"
        "  schema error at column 6: unknown type 'tensor'; did you mean 'Tensor'? "
        f"({folder}/second.cpp:5)\n"
        "  good(tensor x) -> Tensor\n"
        "       ^\n"
    )


def test_opcheck_says_why_nothing_was_checked(folder):
    words = ("-m", "lamella", "opcheck", "build/libfirst.so", "--op", "good")
    done = run(folder, "", *words)
    assert done.returncode == 1
    assert done.stdout == (
        "mistakes::good  unchecked  no inputs are known that the operator takes: give some with "
        "--inputs; those that were made were answered: mistakes::good: no kernel for CPU\n"
        "1 operator, 1 finding\n"
    )
