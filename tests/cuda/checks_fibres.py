"""Kernels of blocks on the stand-in: barriers, shared memory, warp operations, and mistakes that it
reports. They are launched by the driver's functions."""

import ctypes

import pytest
from standin_runs import run

PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL(os.environ["LAMELLA_CUDA_DRIVER"])
check = lambda result: result and sys.exit(f"failed: {result}")
check(driver.cuInit(0))
context = ctypes.c_void_p()
check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(driver.cuCtxSetCurrent(context))

class Parameters(ctypes.Structure):
    _fields_ = [("at", ctypes.c_uint64), ("to", ctypes.c_uint64)]
    _fields_ += [("n", ctypes.c_int32), ("wrong", ctypes.c_int32)]

def launch(name, values, count, grid, block, shared=0, wrong=0):
    given, kernel = (ctypes.c_int32 * len(values))(*values), ctypes.c_void_p()
    got = (ctypes.c_int32 * count)()
    at, to = ctypes.c_uint64(), ctypes.c_uint64()
    check(driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4 * len(values))))
    check(driver.cuMemAlloc_v2(ctypes.byref(to), ctypes.c_size_t(4 * count)))
    check(driver.cuMemcpyHtoDAsync_v2(at, given, ctypes.c_size_t(4 * len(values)), None))
    check(driver.cuMemcpyHtoDAsync_v2(to, got, ctypes.c_size_t(4 * count), None))
    check(driver.cuModuleGetFunction(ctypes.byref(kernel), None, name.encode()))
    p = Parameters(at, to, len(values), wrong)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(p))
    check(driver.cuLaunchKernel(kernel, *grid, *block, shared, None, pointers, None))
    check(driver.cuMemcpyDtoHAsync_v2(got, to, ctypes.c_size_t(4 * count), None))
    return list(got)
"""


def launch(arguments):
    done = run(["-c", PROGRAM + f"print(launch({arguments}))"])
    return done.stdout.strip() or done.stderr.strip()


def test_sums_of_blocks():
    n = 2 * 3 * 128 - 10
    got = launch(f"'fibres_sum', range({n}), 7, (2, 3, 1), (32, 4, 1)")
    assert got == str([n * (n - 1) // 2, *range(6)])


def test_shared_memory_and_barriers():
    right = [*range(127, -1, -1), *range(255, 127, -1)]
    assert launch("'fibres_turn', range(256), 256, (2, 1, 1), (128, 1, 1), 512") == str(right)
    wrong = launch("'fibres_turn', range(256), 256, (2, 1, 1), (128, 1, 1), 512, 1")
    assert wrong.startswith("[") and wrong != str(right)


def test_lanes():
    got = launch("'fibres_lanes', [0], 640, (1, 1, 1), (64, 1, 1)")
    got = [int(x) for x in got[1:-1].split(",")]
    for thread in range(64):
        warp, lane = thread // 32 * 32, thread % 32

        def set_of(condition, warp=warp):
            bits = sum(1 << lane for lane in range(32) if condition(warp + lane))
            return ctypes.c_int32(bits).value

        assert got[10 * thread : 10 * thread + 10] == [
            set_of(lambda t: t % 3 == 0),
            int(warp == 32),
            int(warp == 32),
            warp + 3,
            thread - 2 if lane >= 2 else thread,
            thread + 1 if lane % 8 < 7 else thread,
            13,
            set_of(lambda t, thread=thread: t % 4 == thread % 4),
            thread ^ 1 if lane < 16 else -1,
            2,
        ]


@pytest.mark.parametrize(
    ("launched", "message"),
    [
        (
            "'fibres_turn', range(128), 128, (1, 1, 1), (128, 1, 1), 512, 2",
            r"fibres_turn, block (0, 0, 0): thread (63, 0, 0) waits for the block at",
        ),
        (
            "'fibres_turn', range(128), 128, (1, 1, 1), (128, 1, 1), 512, 4",
            r"fibres_turn, block (0, 0, 0): thread (0, 0, 0) waits for the block at",
        ),
        (
            "'fibres_sum', range(64), 64, (1, 1, 1), (64, 1, 1), 0, 3",
            "thread (0, 0, 0) waits for its warp at",
        ),
    ],
)
def test_reported(launched, message):
    got = launch(launched)
    assert message in got and "kernels_fibres.cpp" in got and "failed: 719" in got


@pytest.mark.parametrize(
    "shape",
    ["(1, 1, 1), (512, 1, 1)", "(1, 1, 1), (64, 1, 1), 1 << 20", "(1, 70000, 1), (1, 1, 1)"],
)
def test_refused(shape):
    assert launch(f"'fibres_turn', range(8), 8, {shape}") == "failed: 1"
