"""The pages of the documentation: their blocks run, in order, and print what the pages say."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys

import pytest
from build_tree import BUILD, GENERATOR, PREFIX, ROOT, build, build_example
from mpi_jobs import Job, needs_mpi, run_ranks


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


BLOCK = re.compile(
    r"^( *)```(\w+)( \w+)?\n(.*?)^ *```$\n?(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
RUN = """import contextlib, io, json, sys
names = {"__name__": "__main__"}
printed = []
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "page", "exec"), names)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(m[4], m[5]) for m in BLOCK.finditer(text) if m[2] == language]


def run(arguments, folder, **more):
    environment = {**os.environ, "PREFIX": str(PREFIX), "PYTHONPATH": str(PREFIX / "lib/python")}
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, env=environment, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_python(page, folder):
    found = blocks(page, "python")
    assert found
    codes = json.dumps([code for code, _ in found])
    printed = json.loads(run([sys.executable, "-c", RUN], folder, input=codes))
    for (_, expected), got in zip(found, printed):
        assert expected is None or got == expected


@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md", "docs/questions.md"])
def test_python(page, tmp_path):
    check_python(page, tmp_path)


def test_the_bridge():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    check_python("docs/bridge.md", build_example("one_binary"))


def test_a_model_in_a_c_program(tmp_path):
    pytest.importorskip("lamella.hlo")
    page = "docs/ahead-of-time.md"
    ((model, _),) = blocks(page, "python")
    ((main, _),) = blocks(page, "c")
    seeded = f"import lamella\nlamella.manual_seed(3)\n{model}"
    (tmp_path / "model.py").write_text(seeded)
    (tmp_path / "main.c").write_text(main)
    for commands, _ in blocks(page, "sh"):
        if commands.startswith("lamella "):
            commands = f"{sys.executable} -m {commands}"
        run(["sh", "-c", commands], tmp_path)
    show = "\nprint(*net(lamella.tensor([[1.0, 2.0, 3.0, 4.0]]))[0].tolist())"
    expected = run([sys.executable, "-c", seeded + show], tmp_path)
    got = run(["./main"], tmp_path)
    assert [float(n) for n in got.split()] == pytest.approx(
        [float(n) for n in expected.split()], rel=1e-5
    )


OWN_OPERATOR = """
import lamella

x = lamella.tensor([2.0], requires_grad=True)
{cube}
y.backward()
assert x.grad.item() == 12

lamella.load_library("./libmine.so")
x = lamella.tensor([1.0, 4.0], requires_grad=True)
lamella.ops.mine.clamped_log(x, 2.0).sum().backward()
assert x.grad.tolist() == [0, 0.25]
"""
# What the page's gradient in C++ stands beside.
DECLARED = """
#include <lamella/lamella.h>
using namespace lamella;

Tensor clamped_log(const Tensor& x, double floor) {
  static auto op = Dispatcher::singleton()
                       .findSchemaOrThrow("mine::clamped_log", "")
                       .typed<Tensor(const Tensor&, double)>();
  return op.call(x, floor);
}
LAMELLA_LIBRARY(mine, m) { m.def("clamped_log(Tensor x, float floor) -> Tensor"); }
LAMELLA_LIBRARY_IMPL(mine, CPU, m) {
  m.impl("clamped_log", [](const Tensor& x, double floor) -> Tensor {
    return lamella::log(lamella::clamp_min(x, floor));
  });
}
"""


def compile_as(source, code, file):
    """Compiles code of Lamella's own as the source is compiled."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    entry = next(one for one in commands if one["file"] == str(ROOT / source))
    words = shlex.split(entry["command"])
    out = words.index("-o")
    words = [word for word in words[:out] + words[out + 2 :] if word not in ("-c", entry["file"])]
    file.write_text(code)
    run([*words, "-fsyntax-only", str(file)], entry["directory"])


def test_adding_an_operator(tmp_path):
    page = "docs/adding-an-operator.md"
    entry, documented, derivative = (code for code, _ in blocks(page, "yaml"))
    ((cube, _),) = blocks(page, "python")
    loop, structured, gradient = (code for code, _ in blocks(page, "cpp"))
    for name, text in {"entry": entry, "documented": documented, "derivative": derivative}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    run([GENERATOR, "--check", "--derivatives", "derivative.yaml", "entry.yaml"], tmp_path)
    run([GENERATOR, "--check", "documented.yaml"], tmp_path)
    compile_as("lamella/kernels/cpu/simd/inverse_trigonometric.cpp", loop, tmp_path / "loop.cpp")
    compile_as("lamella/kernels/pointwise/activation.cpp", structured, tmp_path / "kernel.cpp")
    (tmp_path / "mine.cpp").write_text(DECLARED + gradient)
    command = ["c++", "-std=c++20", "-shared", "-fPIC", "mine.cpp", "-o", "libmine.so"]
    run([*command, f"-I{PREFIX}/include", f"-L{PREFIX}/lib", "-llamella"], tmp_path)
    run([sys.executable, "-c", OWN_OPERATOR.format(cube=cube)], tmp_path)


def test_three_operators_file_by_file():
    """What the page says of the files of three operators stands in them."""
    text = (ROOT / "docs/adding-an-operator.md").read_text(encoding="utf-8")
    found = 0
    for file, said in re.findall(r"^\| `([\w/.]+/[\w.]+)` \| (.*) \|$", text, re.MULTILINE):
        source = " ".join((ROOT / file).read_text(encoding="utf-8").split())
        for code in re.findall(r"`([^`]*[(:][^`]*)`", said):
            assert code.split(", `")[0] in source, (file, code)
            found += 1
    assert found >= 8


def test_typed_custom_calls(tmp_path):
    jax = pytest.importorskip("jax")
    page = "docs/typed-custom-calls.md"
    ((handler, _),) = blocks(page, "cpp")
    ((lapack, _),) = blocks(page, "python")
    text = (ROOT / page).read_text(encoding="utf-8")
    program, error = (
        re.search(f"^```\n({one}.*?)^```$", text, re.M | re.S)[1] for one in ("Hlo", "hlo:")
    )
    (tmp_path / "axpy.cpp").write_text(handler)
    (tmp_path / "program.hlo").write_text(program)
    command = ["c++", "-std=c++20", "-shared", "-fPIC", "axpy.cpp", "-o", "libaxpy.so"]
    run([*command, f"-I{jax.ffi.include_dir()}"], tmp_path)
    check = f"""
import ctypes, lamella, lamella.hlo
{lapack}
import jax
library = ctypes.CDLL("./libaxpy.so")
lamella.hlo.register_ffi_target("axpy", jax.ffi.pycapsule(library.Axpy))
text = open("program.hlo").read()
x, y = lamella.tensor([1.0, 2.0, 3.0]), lamella.tensor([10.0, 20.0, 30.0])
assert lamella.hlo.compile(text)(x, y)[0].tolist() == [12, 24, 36]
try:
    lamella.hlo.compile(text.replace("y = f32[3]", "y = f32[2]"))(x, y[:2])
except RuntimeError as error:
    print(str(error).splitlines()[0])
assert "lapack_sgetrf_ffi" in lamella.hlo.custom_call_targets("Host")
"""
    assert run([sys.executable, "-c", check], tmp_path) == error


@needs_mpi
def test_distributed(tmp_path):
    page = "docs/distributed.md"
    first, meetings, message = (code for code, _ in blocks(page, "python"))
    begin = "import lamella\nimport lamella.distributed as dist\n"

    def check(ranks, program):
        (tmp_path / "program.py").write_text(program)
        run_ranks(ranks, tmp_path / "program.py")

    # The sum of the ranks' numbers, taken four times.
    check(4, f"{first}\nassert x.tolist() == [24, 24, 24], x")
    setting = """
rank, ops = dist.get_rank(), lamella.ops.dist
w, x, loss = lamella.full((3,), 2.0, requires_grad=True), lamella.ones(3), lambda y: (y * y).sum()
"""
    expected = "assert (None if w.grad is None else w.grad.tolist()) == [[4, 4, 4], None][rank]"
    check(2, f"{begin}dist.init_process_group('mpi'){setting}{message}\n{expected}")
    differ = "dist.init_process_group('mpi', debug=True)\nx = lamella.ones(2 + dist.get_rank(), 3)"
    (tmp_path / "program.py").write_text(f"{begin}{differ}\ndist.all_reduce(x)")
    status, said = Job(2, tmp_path / "program.py").finish()
    text = (ROOT / page).read_text(encoding="utf-8")
    expected = re.search(r"^```\n(all_reduce: expected all.*?)^```$", text, re.M | re.S)[1]
    assert status != 0 and " ".join(expected.split()) in said
    # Ranks that are started one by one.
    for i, meeting in enumerate(line for line in meetings.splitlines() if line.startswith("dist.")):
        meeting = meeting.replace("/tmp/meet", f"{tmp_path}/meet").replace(
            "29500", str(free_port())
        )
        script = f"{begin}import sys\nrank = int(sys.argv[1])\n{meeting}\nx = lamella.ones(1)\n"
        script += "dist.all_reduce(x)\nassert x.item() == 2, x\n"
        where = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        paths = {**os.environ, "PYTHONPATH": str(PREFIX / "lib/python")}
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(rank)],
                env={**paths, **(where | {"RANK": str(rank)} if i == 2 else {})},
            )
            for rank in range(2)
        ]
        assert [one.wait(120) for one in ranks] == [0, 0], meeting


def test_a_project_of_cmake(tmp_path):
    """The README's, with the sources of an example."""
    ((project, _),) = blocks("README.md", "cmake")
    begin = "cmake_minimum_required(VERSION 3.22)\nproject(my_ops LANGUAGES CXX)\n"
    (tmp_path / "CMakeLists.txt").write_text(begin + project)
    example = ROOT / "examples/operators_from_yaml"
    code = (example / "kernels.cpp").read_text().replace('#include "geometry/', '#include "my_ops/')
    (tmp_path / "my_ops.cpp").write_text(code)
    (tmp_path / "my_ops.yaml").write_text((example / "geometry.yaml").read_text())
    assert (build(tmp_path, tmp_path / "build") / "libmy_ops.so").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_are_whole(page, tmp_path):
    """Blocks that no test runs can be read by what runs them."""
    import textwrap

    for code, _ in blocks(page, "python"):
        compile(textwrap.dedent(code), str(page), "exec")
    for code, _ in blocks(page, "yaml"):
        (tmp_path / "entries.yaml").write_text(textwrap.dedent(code))
        if code.lstrip().startswith("- func:"):
            run([GENERATOR, "--check", "entries.yaml"], tmp_path)
        elif "examples" in page.parts:  # a part of the example's own file
            assert any(code in file.read_text() for file in page.parent.glob("*.yaml")), code
    for code, _ in blocks(page, "sh"):
        subprocess.run(["sh", "-n"], input=code, text=True, check=True)
