"""Kernels of programs: their PTX, where it is kept, and what happens where there is none."""

import re
import shutil
import subprocess

import pytest
from standin_runs import STANDIN, printed, run

from lamella import hlo

pytestmark = pytest.mark.skipif(not STANDIN.exists(), reason="the stand-in of CUDA is not built")

PROGRAM = """
import ctypes, os, lamella
import lamella.nn.functional as F
standin = ctypes.CDLL(os.environ["LAMELLA_CUDA_DRIVER"])
generator = lamella.Generator().manual_seed(1)
def values(*sizes):
    return lamella.randn(*sizes, generator=generator).cuda()
def launches(fn, *tensors):
    fn = lamella.compile(fn, fullgraph=True)
    fn(*tensors)
    standin.standin_reset_calls()
    fn(*tensors)
    return standin.standin_calls(b"cuLaunchKernel")
"""
FUNCTIONS = (
    PROGRAM
    + """
x, w = values(8, 1024), values(1024)
counts = []
for dtype in (lamella.float32, lamella.bfloat16, lamella.float16, lamella.float64):
    y, v = x.to(dtype), w.to(dtype)
    counts.append(launches(lambda y, v: F.gelu(y + v) * (y * 2 + 1).relu(), y, v))
    counts.append(launches(lambda y, v: (y * v).softmax(-1), y, v))
    counts.append(launches(lambda y, v: F.layer_norm(y + v, (1024,), v, v), y, v))
print(counts)
"""
)


HAS_COMPILER = (
    "machine code"
    in hlo.compile(
        "HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }"
    ).explain()
)
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="there is no compiler")


@needs_compiler
def test_kernels_fit_the_registers(tmp_path):
    """ptxas compiles every kernel for 9.0, without spills."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("nvcc is not installed")
    assert printed(FUNCTIONS, LAMELLA_STANDIN_PTX=str(tmp_path)) == str([1] * 12)
    files = sorted(tmp_path.glob("*.ptx"))
    assert len(files) == 12
    for file in files:
        command = [assembler, "-v", "-arch=sm_90", str(file), "-o", str(tmp_path / "cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        spills = re.findall(r"(\d+) bytes spill", done.stderr)
        registers = re.findall(r"Used (\d+) registers", done.stderr)
        assert registers and set(spills) == {"0"}, done.stderr
        assert max(map(int, registers)) <= 128, (file, registers)


@needs_compiler
def test_code_is_kept(tmp_path):
    """A later process loads the kernels' PTX from the cache, and no LLVM."""
    program = FUNCTIONS + "print('liblamella_compiler' in open('/proc/self/maps').read())"
    for loaded in ("True", "False"):
        lines = printed(program, LAMELLA_CACHE=str(tmp_path)).splitlines()
        assert lines == [str([1] * 12), loaded]


@needs_compiler
def test_without_the_compiler():
    program = PROGRAM + "print(launches(lambda x: (x * 2 + 1).relu(), values(4, 4)))"
    assert int(printed(program, LAMELLA_COMPILER="0")) > 1
    assert printed(program) == "1"


@needs_compiler
def test_kernels_that_do_not_load():
    """Where the driver refuses them the operators run."""
    start = (
        PROGRAM
        + """
x = lamella.ones(4, device="cuda")
lamella.cuda.synchronize()
print(standin.standin_calls(b"cuModuleLoadData"))
"""
    )
    program = (
        start
        + """
text = "HloModule m\\nENTRY e { a = f32[4] parameter(0) b = f32[4] add(a, a)"
program = lamella.hlo.compile(text + " ROOT c = f32[4] multiply(b, a) }")
print(program(x)[0].tolist())
print(program.explain())
"""
    )
    loaded = int(printed(start))
    shown = printed(program, LAMELLA_STANDIN_FAIL=f"cuModuleLoadData:{loaded + 1}:218")
    shown = shown.partition("\n")[2]
    assert shown.startswith("[2.0, 2.0, 2.0, 2.0]")
    assert "no kernels of regions: the CUDA driver's cuModuleLoadData failed: " in shown
    assert "call of aten::add.Tensor: " in shown and "kernel, " not in shown


def test_arrays_are_apart_for_tools_that_check_accesses():
    program = (
        PROGRAM
        + """
x = values(8, 8)
program = lamella.compile(lambda x: (x @ x @ x @ x), fullgraph=True)
print(lamella.allclose(program(x), x @ x @ x @ x), end=" ")
print("one block of 1024 bytes for 2 arrays" in program.explanation(steps=True))
"""
    )
    assert printed(program) == "True True"
    assert printed(program, LAMELLA_CUDA_CACHE="0") == "True False"


# ---- The stand-in itself -------------------------------------------------------------------------

PTX = """.version 7.0
.target sm_80
.address_size 64
.visible .entry kernel(
\t.param .align 8 .b8 kernel_param_0[8]
)
.maxntid 32, 1, 1
{
\t.reg .b32 %r<3>;
\t.reg .b64 %rd<4>;
\tld.param.u64 %rd1, [kernel_param_0];
BODY
\tret;
}
"""
LAUNCH = (
    PROGRAM
    + """
memory = lamella.zeros(128, device="cuda", dtype=lamella.int32)
lamella.cuda.synchronize()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
print(standin.cuModuleLoadData(ctypes.byref(module), TEXT.encode()))
print(standin.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel"))
given = (ctypes.c_uint64 * 1)(memory.data_ptr())
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(given))
print(standin.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
print(standin.cuCtxSynchronize())
"""
)


@pytest.mark.parametrize(
    ("body", "expected", "message"),
    [
        ("\tmov.u32 %r1, 7;\n\tst.global.u32 [%rd1+508], %r1;", ["0", "0", "0", "0"], ""),
        (
            "\tmov.u32 %r1, 7;\n\tst.global.u32 [%rd1+2097152], %r1;",
            ["0", "0", "0", "700"],
            "standin: kernel: instruction 4 writes 4 bytes at 0x",
        ),
        (
            "\tld.global.u32 %r1, [%rd1+2];",
            ["0", "0", "0", "700"],
            "standin: kernel: instruction 3 reads 4 bytes at 0x",
        ),
        (
            "\tbrev.b32 %r1, %r2;",
            ["218"],
            "standin: the PTX has an instruction that is not known: brev.b32",
        ),
    ],
)
def test_the_standin_checks_ptx(body, expected, message):
    text = PTX.replace("BODY", body)
    launch = LAUNCH.replace(
        "print(standin.cuModuleGet", "module or exit()\nprint(standin.cuModuleGet"
    )
    done = run(["-c", f"TEXT = {text!r}\n{launch}"])
    assert done.stdout.split() == expected, done.stdout + done.stderr
    assert message in done.stderr
