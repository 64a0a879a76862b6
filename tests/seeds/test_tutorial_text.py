"""Compiles the tutorial's C++ as printed, and the programs for it in this folder.

The text is next to the checkout, if it is there; nothing of it is kept here. A program here uses
only what a reader of the tutorial would write, so it also compiles with PyTorch's headers.
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TITLE = "Registering a Dispatched Operator in C++"
COMPILER = shutil.which("c++") or shutil.which("g++")

# Programs that only use PyTorch's names.
PORTABLE = [
    "myops.h",
    "myops.cpp",
    "myops_cpu.cpp",
    "myops_cuda.cpp",
    "myops_meta.cpp",
    "myops_autograd.cpp",
    "tutorial_test.cpp",
    "autograd_test.cpp",
    "layers_test.cpp",
]

# What the text takes for granted: names it brings in, and functions of its reader's.
HEADERS = """
#include <torch/torch.h>
#include <torch/library.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <ATen/autocast_mode.h>
"""
READER = """
using c10::DeviceType;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::autogradNotImplementedFallback;
using torch::autograd::autogradNotImplementedInplaceOrViewFallback;
using torch::autograd::tensor_list;

static const char* const op = "of_the_readers";
Tensor add_cpu(const Tensor&, const Tensor&);
Tensor add_cuda(const Tensor&, const Tensor&);
Tensor myadd_cuda(const Tensor&, const Tensor&);
Tensor mymatmul(const Tensor&, const Tensor&);
Tensor my_multiple_input_op(const Tensor&, const Tensor&);
"""

BEGINS = re.compile(r"(TORCH_LIBRARY\w*\(|Tensor \w+\(|class \w+ |#include |// Autocast-spec)")


def text_of_the_tutorial():
    for folder in (ROOT.parent, ROOT.parent.parent):
        for path in sorted((folder / "shared" / "seeds").glob("*.txt")):
            text = path.read_text(encoding="utf-8")
            if text.startswith(TITLE):
                return text
    return None


def snippets(text):
    """Pieces of code: from a line that begins one to the line that closes its braces."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        if not BEGINS.match(lines[place]) or lines[place].rstrip("(").endswith("TORCH_LIBRARY"):
            place += 1
            continue
        taken = [lines[place]]
        place += 1
        if not taken[0].startswith(("#", "//")):
            while place < len(lines) and not _closed(taken):
                taken.append(lines[place])
                place += 1
        yield "\n".join(taken)


def _closed(lines):
    code = "\n".join(lines)
    return "{" in code and code.count("{") == code.count("}")


def reader_of_the_tutorial(outdated=()):
    """The text's code in a namespace, with what it leaves to its reader; None without the text.

    outdated: pieces that contain one of these are left out.
    """
    text = text_of_the_tutorial()
    if text is None:
        return None
    pieces = list(snippets(text))
    # One shows a class by halves, with dots for what it leaves out, and has the name of another.
    halves = [piece for piece in pieces if "..." in piece]
    whole = [
        piece
        for piece in pieces
        if "..." not in piece and not any(word in piece for word in outdated)
    ]
    assert len(halves) == 1 and len(whole) >= 18 - len(outdated)
    first, last = halves[0].split("...", 1)
    code = "\n".join(whole)
    # Two places stand for a dtype of the reader's choice.
    assert code.count("<desired dtype>") == 2
    code = code.replace("<desired dtype>", "at::kHalf")
    return f"""namespace reader {{
{READER}
{code}
namespace by_halves {{
class MyAddFunction;
{first} public torch::autograd::Function<MyAddFunction> {last.replace("...", "")};
}}
}}
"""


def compiles(source, flags, path):
    path.write_text(source, encoding="utf-8")
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-w", f"-I{ROOT}", *flags, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == 0, "\n".join(errors[:20])


def test_the_text_compiles(tmp_path):
    source = reader_of_the_tutorial()
    if source is None:
        pytest.skip("the tutorial's text is not beside this checkout")
    build = ROOT / "build"
    families = build / "lamella" / "kernels" / "families" / "lamella_more_operators"
    compat = (ROOT / "compat" / "torch" / "include", build / "compat" / "view")
    flags = [f"-I{folder}" for folder in (*compat, build / "generated", families)]
    compiles(HEADERS + source, flags, tmp_path / "text.cpp")


def test_pytorchs_headers_take_it_and_our_programs(tmp_path):
    torch = importlib.util.find_spec("torch")
    if torch is None:
        pytest.skip("PyTorch's headers are not installed")
    # All in one go, each in a namespace: the headers cost most of the time.
    included = HEADERS.splitlines()
    bodies = []
    for name in PORTABLE:
        lines = (HERE / name).read_text(encoding="utf-8").splitlines()
        assert not any("lamella" in line for line in lines), name
        included += [line for line in lines if line.startswith("#include <")]
        if not name.endswith(".h"):
            space = re.sub(r"\W", "_", name)
            bodies.append(f'namespace {space} {{\n#include "{HERE / name}"\n}}')
    # PyTorch's own promote_type() asks for a device type by now.
    text = reader_of_the_tutorial(outdated=("promote_type",)) or ""
    source = "\n".join([*dict.fromkeys(included), *bodies, text])
    folder = pathlib.Path(torch.origin).parent / "include"
    api = folder / "torch" / "csrc" / "api" / "include"
    flags = ["-isystem", str(folder), "-isystem", str(api)]
    compiles(source, flags, tmp_path / "programs.cpp")
