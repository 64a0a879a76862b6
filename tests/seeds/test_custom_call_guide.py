"""Compiles the custom-call guide's C++ and CUDA as printed.

The text is next to the checkout, if it is there; nothing of it is kept here. Pieces are compiled
unmodified, within the declarations that they assume.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FENCE = re.compile(r"```c\+\+\n(.*?)```", re.DOTALL)
COMPILER = shutil.which("c++") or shutil.which("g++")
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
BUILD = ROOT / "build"
FOLDERS = [ROOT, ROOT / "compat" / "xla", BUILD / "compat" / "view", BUILD / "generated"]

HEADERS = """
#include <string.h>
#include <string>
#include "tensorflow/compiler/xla/client/xla_builder.h"
#include "tensorflow/compiler/xla/service/custom_call_status.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
"""
# CUstream, which is the driver's. It may be said again where its header is there.
CUDA = "typedef struct CUstream_st* CUstream;\n"
# A body's names: the first example's builder and operands.
BODY = """
using xla::API_VERSION_STATUS_RETURNING;
using xla::F32;
using xla::Shape;
void reader(std::string %s) {
  xla::XlaBuilder b("reader");
  auto shape = [](int64_t n) { return xla::ShapeUtil::MakeShape(xla::F32, {n}); };
  xla::XlaOp param0 = xla::Parameter(&b, 0, shape(128), "p0");
  xla::XlaOp param1 = xla::Parameter(&b, 1, shape(2048), "p1");
  %s
}
"""


def pieces():
    """The guide's pieces of code, in its order."""
    for folder in (ROOT.parent, ROOT.parent.parent):
        for path in sorted((folder / "shared" / "seeds").glob("*.txt")):
            text = path.read_text(encoding="utf-8")
            if "XLA_REGISTER_CUSTOM_CALL_TARGET" in text:
                found = FENCE.findall(text)
                assert len(found) == 10
                return found
    pytest.skip("the custom-call guide is not beside this checkout")


def compiles(command, source, path):
    path.write_text(source, encoding="utf-8")
    flags = [f"-I{folder}" for folder in FOLDERS]
    command = [*command, "-std=c++20", *flags, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == 0, "\n".join(errors[:20])


def the_one(found, *words):
    """The piece that has these words."""
    matching = [piece for piece in found if all(word in piece for word in words)]
    assert len(matching) == 1, words
    return matching[0]


def function(text):
    """A piece without its headers, which are above the namespace."""
    return re.sub(r"(?m)^#include.*$", "", text)


def test_the_text_for_the_host_compiles(tmp_path):
    found = pieces()
    # The first piece is a whole program.
    first = found[0]
    assert first.startswith("#include") and "void do_it()" in first
    spaces = {
        "declared": function(the_one(found, "status.h", "void* out")),
        "declared_for_cuda": CUDA + function(the_one(found, "status.h", "CUstream")),
        "fails": "bool bad_condition;\n" + the_one(found, "if (bad_condition)"),
        "opaque": BODY % ("", the_one(found, 'opaque = "..."')),
        "version": BODY % ("opaque", the_one(found, "API_VERSION_STATUS_RETURNING")),
        "tuples": BODY % ("", the_one(found, "MakeTuple")),
    }
    bodies = [f"namespace {name} {{\n{text}\n}}" for name, text in spaces.items()]
    source = "\n".join([first, HEADERS, *bodies])
    compiles([COMPILER, "-fsyntax-only", "-w"], source, tmp_path / "guide.cpp")


def test_the_text_for_cuda_compiles(tmp_path):
    found = pieces()
    if NVCC is None:
        pytest.skip("nvcc is not installed")
    piece = the_one(found, "<<<")
    # The kernel is printed without its return type, which can only be void.
    assert "__global__ custom_call_kernel(" in piece
    before = """
#undef __global__
#define __global__ __location__(global) void
using xla::int64;
"""
    source = "#include <cuda.h>\n" + HEADERS + before + piece
    compiles([NVCC, "-c", "-w", "-o", str(tmp_path / "guide.o")], source, tmp_path / "guide.cu")


def test_what_the_text_only_draws(tmp_path):
    """Two pieces are diagrams in C++ syntax; the programs check what they state."""
    found = pieces()
    # Pointers to void are dereferenced, and a semicolon is missing.
    drawn = the_one(found, "subtuple")
    assert "new float[128]\n" in drawn and "(*subtuple)[0]" in drawn
    program = (HERE / "custom_call_test.cpp").read_text(encoding="utf-8")
    for line in drawn.splitlines():
        if line.startswith("//") or not line.strip():
            continue
        line = line.rstrip(";").replace("void* subtuple", "void** subtuple")
        line = re.sub(r"\(\*(\w+)\)\[", r"\1[", line.replace("void* p0", "void** p0"))
        assert f"  {line};" in program, line
    # Equations without semicolons: the order of the buffers.
    equations = re.findall(r"buffers\[(\d)\] == (\w+)", the_one(found, "buffers[5] =="))
    assert [int(place) for place, _ in equations] == list(range(6))
    program = (HERE / "custom_call_cuda.cu").read_text(encoding="utf-8")
    order = re.findall(r"(\w+) = reinterpret_cast<(?:const )?float\*>\(buffers\[(\d)\]\)", program)
    for place, name in equations[:-1]:
        assert (name, place) in order
