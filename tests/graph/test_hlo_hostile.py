"""Valid but hostile programs: extreme sizes, starts, bounds and comparators."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lamella
from lamella import hlo

LEAST, MOST = -(2**63), 2**63 - 1
SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def run(body, *arrays, called=""):
    text = "HloModule m\n" + called + "ENTRY e {\n" + body + "\n}\n"
    return [one.numpy() for one in hlo.evaluate(text, *arrays)]


@pytest.mark.parametrize(
    "body",
    [
        "x = f32[] constant(1)\n  ROOT b = f32[1152921504606846976] broadcast(x), dimensions={}",
        "ROOT i = c128[1073741824,1073741824] iota(), iota_dimension=0",
        "x = f32[2] constant({1, 2})\n  z = f32[] constant(0)\n"
        "  ROOT p = f32[1125899906842624] pad(x, z), padding=1125899906842622_0",
        "x = f32[1048576] iota(), iota_dimension=0\n" "  ROOT d = f32[1048576,1048576] dot(x, x)",
        "ROOT r = u8[1152921504606846976] rng(a, b), distribution=rng_uniform",
    ],
)
def test_absurd_sizes_are_out_of_memory(body):
    # Where the machine would give that much, nothing of it is touched before it is refused.
    if "rng" in body:
        body = "a = u8[] constant(0)\n  b = u8[] constant(9)\n  " + body
    with pytest.raises(MemoryError):
        run(body)


@pytest.mark.parametrize(
    "line, said",
    [
        ("c = f32[1000000000000] constant({1, 2})", "expected 1000000000000 values of "),
        ("c = (f32[4], s8[1000000000000]) constant(({1, 2, 3, 4}, {1}))", "expected 1000000000000"),
        ("c = f32[" + "1," * 70 + "1] parameter(0)", "expected at most 64 dimensions, got 71"),
        ("c = " + "(\n" * 101 + ")" * 101 + " parameter(0)", "expected at most 100 nested tuples"),
        ("c = f32[0,4611686018427387904,4] parameter(0)", "expected at most 2^60 elements, got "),
    ],
)
def test_texts_ask_for_no_more_than_they_hold(line, said):
    with pytest.raises(RuntimeError) as error:
        hlo.parse("HloModule m\nENTRY e {\n  ROOT " + line + "\n}\n")
    assert said in str(error.value)


def test_tuples_that_double_are_bounded():
    pair = hlo.Shape("f32[]")
    with pytest.raises(RuntimeError) as error:
        for _ in range(40):
            pair = hlo.Shape.tuple([pair, pair])
    assert str(error.value) == "shape: expected a tuple of at most 1048576 arrays, got more"
    nest = hlo.Shape("f32[]")
    with pytest.raises(RuntimeError) as error:
        for _ in range(200):
            nest = hlo.Shape.tuple([nest])
    assert str(error.value) == "shape: expected at most 100 nested tuples, got more"


def test_windows_larger_than_memory():
    x = np.arange(4, dtype=np.float32)
    far = 10**17
    body = (
        "x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[1] reduce-window(x, z), "
        f"window={{size={far} pad={far - 4}_0}}, to_apply=sum"
    )
    np.testing.assert_array_equal(run(body, x, called=SUM)[0], [6])
    # Holes that wide leave the first element in the window's first place.
    body = (
        "x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[2] reduce-window(x, z), "
        f"window={{size={10**6} lhs_dilate={far} stride={2 * far}}}, to_apply=sum"
    )
    np.testing.assert_array_equal(run(body, x, called=SUM)[0], [0, 2])


def test_steps_and_starts_at_the_ends():
    x = np.arange(5, dtype=np.float32)
    body = f"x = f32[5] parameter(0)\n  ROOT s = f32[1] slice(x), slice={{[4:5:{MOST}]}}"
    np.testing.assert_array_equal(run(body, x)[0], [4])
    body = (
        "x = f32[5] parameter(0)\n  i = s64[] parameter(1)\n"
        "  ROOT s = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}"
    )
    for start, expected in ((LEAST, [0, 1]), (MOST, [3, 4]), (4, [3, 4])):
        np.testing.assert_array_equal(run(body, x, np.int64(start))[0], expected)
    body = body.replace("s64", "u64")
    np.testing.assert_array_equal(run(body, x, np.uint64(2**64 - 1))[0], [3, 4])


def test_scatter_and_gather_at_the_ends():
    x = np.arange(5, dtype=np.float32)
    indices = np.array([[LEAST], [MOST], [1], [-1], [5]])
    body = (
        "x = f32[5] parameter(0)\n  i = s64[5,1] parameter(1)\n  ROOT g = f32[5] gather(x, i), "
        "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1}"
    )
    np.testing.assert_array_equal(run(body, x, indices)[0], [0, 4, 1, 0, 4])
    body = (
        "x = f32[5] parameter(0)\n  i = s64[5,1] parameter(1)\n  u = f32[5] parameter(2)\n"
        "  ROOT s = f32[5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"
    )
    out = run(body, x, indices, np.full(5, 10, np.float32), called=SUM)[0]
    np.testing.assert_array_equal(out, [0, 11, 2, 3, 4])


@pytest.mark.parametrize("answer", ["true", "false"])
def test_comparators_that_contradict_themselves(answer):
    called = (
        "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        f"  ROOT c = pred[] constant({answer})\n}}\n"
    )
    body = "x = f32[1000] parameter(0)\n  ROOT s = f32[1000] sort(x), dimensions={0}, to_apply=less"
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    np.testing.assert_array_equal(np.sort(run(body, x, called=called)[0]), np.sort(x))


@pytest.mark.parametrize("element, dtype", [("s32", np.int32), ("f32", np.float32)])
def test_random_numbers_between_reversed_bounds(element, dtype):
    body = (
        f"a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n"
        f"  ROOT r = {element}[9] rng(a, b), distribution=rng_uniform"
    )
    out = run(body, dtype(7), dtype(-7))[0]
    assert out.shape == (9,) and np.isfinite(out.astype(np.float64)).all()


def test_booleans_of_foreign_bytes():
    bytes_ = np.array([0, 1, 2, 255], np.uint8)
    body = (
        "p = pred[4] parameter(0)\n  n = pred[4] not(p)\n  c = s32[4] convert(p)\n"
        "  s = pred[4] select(p, n, p)\n  ROOT t = (pred[4], s32[4], pred[4]) tuple(n, c, s)"
    )
    flags, numbers, chosen = run(body, bytes_.view(np.bool_))
    np.testing.assert_array_equal(flags.view(np.uint8), [1, 0, 0, 0])
    np.testing.assert_array_equal(numbers, [0, 1, 1, 1])
    np.testing.assert_array_equal(chosen.view(np.uint8), [0, 0, 0, 0])


def test_groups_of_absurd_sizes():
    body = (
        "x = f32[3,2] parameter(0)\n  y = f32[3,2,1] parameter(1)\n  g = s64[3] parameter(2)\n"
        "  ROOT d = f32[3,1] ragged-dot(x, y, g), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    )
    x, y = np.ones((3, 2), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    out = run(body, x, y, np.array([LEAST, MOST, MOST]))[0]
    np.testing.assert_array_equal(out, np.full((3, 1), 5, np.float32))


def test_calls_that_double_are_interrupted():
    """2^60 additions, and a loop without an end, answer Ctrl-C."""
    levels = "f0 {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"
    for n in range(1, 60):
        levels += (
            f"f{n} {{\n  x = f32[4] parameter(0)\n  a = f32[4] call(x), to_apply=f{n - 1}\n"
            f"  ROOT b = f32[4] call(a), to_apply=f{n - 1}\n}}\n"
        )
    doubling = "x = f32[4] parameter(0)\n  ROOT c = f32[4] call(x), to_apply=f59"
    forever = "x = f32[4] parameter(0)\n  ROOT w = f32[4] while(x), condition=yes, body=f0"
    levels += "yes {\n  x = f32[4] parameter(0)\n  ROOT y = pred[] constant(true)\n}\n"
    code = (
        "import sys, signal, lamella, lamella.hlo\n"
        "program = lamella.hlo.compile(sys.argv[1])\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.5)\n"
        "try:\n    program(lamella.ones(4))\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    for body in (doubling, forever):
        text = "HloModule m\n" + levels + "ENTRY e {\n" + body + "\n}\n"
        command = [sys.executable, "-c", code, text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "interrupted\n", done.stderr


def test_deep_calls_run():
    text = "HloModule m\nc0 {\n  ROOT x = f32[] parameter(0)\n}\n"
    for n in range(1, 999):
        text += (
            f"c{n} {{\n  x = f32[] parameter(0)\n"
            f"  ROOT y = f32[] call(x), to_apply=c{n - 1}\n}}\n"
        )
    text += "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=c998\n}\n"
    assert hlo.evaluate(text, lamella.tensor(3.0))[0].item() == 3
