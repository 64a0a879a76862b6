"""CMake projects for PyTorch find an installed Lamella.

They find its package, its libraries by name, and torch in the processes that ask for its folder.
"""

import os
import subprocess
import sys
import textwrap

from build_tree import PREFIX

PROJECT = """
    cmake_minimum_required(VERSION 3.18)
    project(found LANGUAGES CXX)
    set(CMAKE_CXX_STANDARD 17)
    execute_process(COMMAND "${PYTHON_EXECUTABLE}" -c
                            "import torch, os; print(os.path.dirname(torch.__file__))"
                    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND CMAKE_PREFIX_PATH "${folder}")
    find_package(Torch 2.3 REQUIRED)
    if(NOT Torch_VERSION VERSION_GREATER_EQUAL 2.13)
      message(FATAL_ERROR "expected a version, got '${Torch_VERSION}'")
    endif()
    find_library(TORCH_PYTHON_LIBRARY torch_python PATHS "${TORCH_INSTALL_PREFIX}/lib" REQUIRED)
    set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} ${TORCH_CXX_FLAGS}")
    add_library(found SHARED found.cpp)
    target_link_libraries(found PRIVATE ${TORCH_LIBRARIES} ${TORCH_PYTHON_LIBRARY})
    set_property(TARGET found PROPERTY CXX_STANDARD 17)
"""
SOURCE = """
    #include <torch/library.h>
    #include <ATen/ATen.h>
    at::Tensor windowed(const at::Tensor& x) { return at::hann_window(4) * x; }
    TORCH_LIBRARY(found_torch, m) { m.def("windowed(Tensor x) -> Tensor", &windowed); }
"""
# Runs under lamella.compat, as a setup.py does.
BUILD = """
    import os, subprocess, sys
    import torch
    for command in (["cmake", "-S", ".", "-B", "made", "-DPYTHON_EXECUTABLE=" + sys.executable],
                    ["cmake", "--build", "made"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    torch.ops.load_library("made/libfound.so")
    assert torch.ops.loaded_libraries == {os.path.realpath("made/libfound.so")}
    assert torch.ops.import_module("subprocess") is subprocess
    print(torch.ops.found_torch.windowed(torch.ones(4)).tolist())
"""


def test_find_package(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(textwrap.dedent(PROJECT))
    (tmp_path / "found.cpp").write_text(textwrap.dedent(SOURCE))
    (tmp_path / "build.py").write_text(textwrap.dedent(BUILD))
    path = os.pathsep.join(("/usr/bin", os.environ.get("PATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "lamella.compat", "build.py"],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(PREFIX / "lib" / "python"), PATH=path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "[0.0, 0.5, 1.0, 0.5]\n"
