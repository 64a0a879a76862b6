"""The memory that compilation keeps, and that it needs temporarily."""

import subprocess
import sys

import pytest

import lamella

_PROGRAM = """
import lamella

def counted(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) >> 10

{function}

fn({arguments})
lamella.hlo  # is loaded before memory is counted
compiled = lamella.compile(fn)
before = counted("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
compiled({arguments})
print(counted("VmHWM") - before, counted("VmRSS") - before)
"""

# Sixteen values of 16 MiB, of which one at a time is needed.
_CHAIN = """
x = lamella.ones(2048, 2048)

def fn(x):
    for _ in range(16):
        x = (x * 2).sin()
    return x.sum()
"""


def _mebibytes(function: str, arguments: str) -> tuple[int, int]:
    """The peak of the first call, and the memory left after it, minus the memory before."""
    program = _PROGRAM.format(function=function, arguments=arguments)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    peak, left = map(int, run.stdout.split())
    return peak, left


@pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux does")
def test_little_is_left_after_compiling():
    _, left = _mebibytes(_CHAIN, "x")
    assert left < 100, left


# Its trace makes cells of closures, each of which holds 16 MiB.
_CLOSURES = """
import gc

gc.disable()
x = lamella.ones(2048, 2048)

def fn(x):
    def layer(x):
        return (lambda: x.sin())()

    for _ in range(8):
        x = layer(x)
    return x.sum()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux does")
def test_nothing_of_the_trace_is_left_for_the_garbage_collector():
    _, left = _mebibytes(_CLOSURES, "x")
    assert left < 100, left


@pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux does")
def test_values_that_nobody_needs_go_back_during_the_trace():
    peak, _ = _mebibytes(_CHAIN, "x")
    assert peak < 250, peak


def test_loops_write_over_what_they_read_last():
    def fn(x, w):
        return lamella.nn.functional.gelu(x @ w).sin() @ w

    compiled = lamella.compile(fn)
    x, w = lamella.randn(64, 32), lamella.randn(32, 32)
    assert lamella.allclose(compiled(x, w), fn(x, w), rtol=1e-4, atol=1e-5)
    # One array of the first product, in which the loop leaves its results.
    assert f"with {64 * 32 * 4} bytes of temporary memory" in compiled.explanation(steps=True)


def test_a_loop_that_reads_elsewhere_has_memory_of_its_own():
    def fn(x, w):
        y = x @ w
        return (y + y.t()).sin() @ w

    compiled = lamella.compile(fn)
    x, w = lamella.randn(32, 32), lamella.randn(32, 32)
    assert lamella.allclose(compiled(x, w), fn(x, w), rtol=1e-4, atol=1e-5)
