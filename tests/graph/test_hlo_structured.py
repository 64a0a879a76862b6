"""Products, windows, sorts, transforms and linear algebra in the reference evaluator, against XLA's
own CPU programs, or against NumPy where XLA's CPU compiler does not support them."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import xla_oracle
from hlo_programs import TYPES, arguments, assert_near, combiner, error_of, hlo, ours, program

pytest.importorskip("jaxlib", reason="XLA is the oracle")


def assert_same(operands: str, root: str, *arrays: np.ndarray) -> None:
    text = program(operands, root)
    given = arrays or arguments(operands)
    assert_near(ours(text, *given), xla_oracle.run(text, *given))


REDUCTIONS = [
    ("f32[4,3] f32[]", "f32[4] reduce(p0, p1), dimensions={1}, to_apply=add"),
    ("f32[4,3] f32[]", "f32[] reduce(p0, p1), dimensions={0,1}, to_apply=max"),
    ("f32[2,3,4] f32[]", "f32[3] reduce(p0, p1), dimensions={0,2}, to_apply=odd"),
    ("f32[0,3] f32[]", "f32[3] reduce(p0, p1), dimensions={0}, to_apply=add"),
    ("f32[3,0] f32[]", "f32[0] reduce(p0, p1), dimensions={0}, to_apply=add"),
    ("f32[4,3] f32[]", "f32[4] reduce(p0, p1), dimensions={1}, to_apply=called"),
    (
        "f32[4,3] s32[4,3] f32[] s32[]",
        "(f32[3], s32[3]) reduce(p0, p1, p2, p3), dimensions={0}, to_apply=two",
    ),
    ("f32[3,4] f32[3,4]", "f32[3,4] map(p0, p1), dimensions={0,1}, to_apply=odd"),
    ("f32[] f32[]", "f32[] map(p0, p1), dimensions={}, to_apply=sub"),
    (
        "f32[4,5] f32[]",
        "f32[6,4] reduce-window(p0, p1), window={size=2x2 stride=1x2 pad=1_2x2_-1 lhs_dilate=1x2 "
        "rhs_dilate=1x2}, to_apply=add",
    ),
    (
        "f32[5] f32[]",
        "f32[3] reduce-window(p0, p1), window={size=2 stride=4 pad=4_3}, to_apply=sub",
    ),
    (
        "f32[8] s32[8] f32[] s32[]",
        "(f32[4], s32[4]) reduce-window(p0, p1, p2, p3), window={size=3 stride=2 pad=0_1}, "
        "to_apply=two",
    ),
    (
        "f32[2] f32[]",
        "f32[0] reduce-window(p0, p1), window={size=3}, to_apply=add",
    ),
    (
        "f32[3] f32[]",
        "f32[7] reduce-window(p0, p1), window={size=4 pad=5_5 rhs_dilate=2}, to_apply=add",
    ),
    (
        "f32[5,5] f32[4,2] f32[]",
        "f32[5,5] select-and-scatter(p0, p1, p2), window={size=2x2 stride=1x2}, select=ge, "
        "scatter=sub",
    ),
    (
        "f32[5,5] f32[3,3] f32[]",
        "f32[5,5] select-and-scatter(p0, p1, p2), window={size=3x3 stride=2x2 pad=1_1x1_1}, "
        "select=ge, scatter=add",
    ),
    (
        "f32[3,5] f32[3]",
        "(f32[3,5], f32[3]) scan(p0, p1), dimensions={1}, num_carries=1, to_apply=step",
    ),
    (
        "f32[5,3] f32[3]",
        "(f32[5,3], f32[3]) scan(p0, p1), dimensions={0}, num_carries=1, is_reverse=true, "
        "to_apply=step",
    ),
]


# Windows that begin at the first element, or end at the last one.
PREFIXES = {
    "forward": (7, "size=7 pad=6_0", 7),
    "backward": (7, "size=7 pad=0_6", 7),
    "wider than the array": (7, "size=10 pad=9_0", 7),
    "wider, backward": (7, "size=10 pad=0_9", 7),
    "begins later": (7, "size=9 pad=4_4", 7),
    "ends before": (7, "size=7 pad=9_-3", 7),
    "strides": (7, "size=7 stride=2 pad=6_0", 4),
    "strides, backward": (7, "size=7 stride=3 pad=0_6", 3),
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("apply", ["add", "max", "sub", "two"])
def test_prefixes(name, dimension, apply):
    size, window, out = PREFIXES[name]
    one = {"size": "1", "stride": "1", "pad": "0_0"}
    parts = dict(part.split("=") for part in window.split())
    window = " ".join(
        f"{key}={'x'.join([text, one[key]] if dimension == 0 else [one[key], text])}"
        for key, text in parts.items()
    )
    sizes, made = ((size, 3), (out, 3)) if dimension == 0 else ((3, size), (3, out))
    given, result = (",".join(map(str, both)) for both in (sizes, made))
    if apply == "two":
        operands = f"f32[{given}] s32[{given}] f32[] s32[]"
        shape, arguments_of = f"(f32[{result}], s32[{result}])", "p0, p1, p2, p3"
    else:
        operands, shape, arguments_of = f"f32[{given}] f32[]", f"f32[{result}]", "p0, p1"
    root = f"{shape} reduce-window({arguments_of}), window={{{window}}}, to_apply={apply}"
    assert_same(operands, root)
    given = arguments(operands)
    text = program(operands, root)
    for one, other in zip(hlo.compile(text)(*given), hlo.evaluate(text, *given)):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pad", ["46591_0", "0_46591"])
def test_prefixes_take_time_by_their_length(pad):
    """The running maximum and its index, as cummax makes it."""
    text = f"""HloModule m
largest {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  keep = pred[] compare(a, b), direction=GE
  v = f32[] select(keep, a, b)
  k = s32[] select(keep, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}}
ENTRY e {{
  x = f32[46592] parameter(0)
  i = s32[46592] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[46592], s32[46592]) reduce-window(x, i, low, none), window={{size=46592 pad={pad}}},
    to_apply=largest
}}"""
    x = np.random.default_rng(0).normal(size=46592).astype(np.float32)
    turned = pad.startswith("0")
    expected = np.maximum.accumulate(x[::-1])[::-1] if turned else np.maximum.accumulate(x)
    for run in (hlo.evaluate, lambda text, x: hlo.compile(text)(x)):
        begin = time.monotonic()
        values, places = (one.numpy() for one in run(text, x))
        assert time.monotonic() - begin < 5  # a window for each element takes half a minute
        assert (values == expected).all() and (x[places] == values).all()


@pytest.mark.parametrize("operands, root", REDUCTIONS)
def test_reductions(operands, root):
    assert_same(operands, root)


SPECIAL = np.array([[1, np.nan, -2], [-np.nan, 0, -0.0], [np.inf, -np.inf, 3]], np.float32)


@pytest.mark.parametrize("compare", ["lt", "ge"])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("stable", ["true", "false"])
def test_sorts(compare, dimension, stable):
    array = np.random.default_rng(0).permutation(24).reshape(4, 6).astype(np.float32)
    root = f"f32[4,6] sort(p0), dimensions={{{dimension}}}, is_stable={stable}, to_apply={compare}"
    assert_same("f32[4,6]", root, array)


def test_sorts_of_nan_and_zeros_have_a_total_order():
    assert_same("f32[3,3]", "f32[3,3] sort(p0), dimensions={0}, to_apply=lt", SPECIAL)
    text = program("f32[3,3]", "f32[3,3] sort(p0), dimensions={1}, to_apply=lt")
    got = ours(text, SPECIAL)[0]
    assert np.signbit(got[1]).tolist() == [True, True, False]


def test_sorts_by_two_keys():
    assert_same(
        "s32[40] f32[40]",
        "(s32[40], f32[40]) sort(p0, p1), dimensions={0}, is_stable=true, to_apply=keys",
    )


@pytest.mark.parametrize("largest", ["true", "false"])
def test_top_k_counts_nan_as_in_the_total_order(largest):
    assert_same("f32[3,3]", f"(f32[3,2], s32[3,2]) topk(p0), k=2, largest={largest}", SPECIAL)


PRODUCTS = [
    ("f32[4,3] f32[3,5]",
     "f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("c64[4,3] c64[5,3]",
     "c64[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ("f64[4] f64[4]", "f64[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ("pred[4,3] pred[3,5]",
     "pred[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("u8[4,3] u8[3,5]", "u8[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f16[4,3] f16[3,5]",
     "f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("s8[2,4,3] s8[3,2,5]",
     "s32[2,4,5] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={0}"),
    ("f32[3,0] f32[0,2]",
     "f32[3,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f32[2] f32[3]", "f32[2,3] dot(p0, p1)"),
    ("f32[2,6,6,4] f32[3,2,2,6]",
     "f32[2,3,3,6] convolution(p0, p1), window={size=3x2 stride=2x1 pad=1_0x-1_0 rhs_dilate=1x2 "
     "rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, feature_group_count=2"),
    ("f32[4,6,6,2] f32[3,2,2,6]",
     "f32[2,6,6,6] convolution(p0, p1), window={size=3x2 pad=1_1x0_1}, "
     "dim_labels=b01f_01io->b01f, batch_group_count=2"),
    ("f32[2,5,2] f32[3,4,2]",
     "f32[4,2,11] convolution(p0, p1), window={size=3 pad=2_2 lhs_dilate=2}, "
     "dim_labels=b0f_0oi->fb0"),
    ("f32[2,3,4,5,2] f32[2,2,2,2,3]",
     "f32[2,2,3,4,3] convolution(p0, p1), window={size=2x2x2}, dim_labels=b012f_012io->b012f"),
    ("s8[2,6,2] s8[3,2,4]",
     "s32[2,4,4] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f"),
    ("c64[2,6,2] c64[3,2,4]",
     "c64[2,4,4] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f"),
    ("f32[3,4] f32[4,5]", "f32[3,5] convolution(p0, p1), dim_labels=bf_io->bf"),
    ("f32[0,6,2] f32[3,2,4]",
     "f32[0,4,4] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f"),
    ("f32[2,6,0] f32[3,0,4]",
     "f32[2,4,4] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f"),
]  # fmt: skip


@pytest.mark.parametrize("operands, root", PRODUCTS)
def test_products(operands, root):
    assert_same(operands, root)


@pytest.mark.parametrize("n", [1, 2, 7, 12, 67, 134])
@pytest.mark.parametrize("part", [("f32", "c64"), ("f64", "c128")])
def test_transforms(n, part):
    real, both = part
    for kind in ("FFT", "IFFT"):
        root = f"{both}[2,{n}] fft(p0), fft_type={kind}, fft_length={{{n}}}"
        assert_same(f"{both}[2,{n}]", root)
    half = n // 2 + 1
    assert_same(f"{real}[2,{n}]", f"{both}[2,{half}] fft(p0), fft_type=RFFT, fft_length={{{n}}}")
    assert_same(f"{both}[2,{half}]", f"{real}[2,{n}] fft(p0), fft_type=IRFFT, fft_length={{{n}}}")


@pytest.mark.parametrize(
    "operands, root",
    [
        ("f32[2,3,4,6]", "c64[2,3,4,4] fft(p0), fft_type=RFFT, fft_length={3,4,6}"),
        ("c64[2,3,4,4]", "f32[2,3,4,6] fft(p0), fft_type=IRFFT, fft_length={3,4,6}"),
        ("c64[2,3,4,4]", "f32[2,3,4,7] fft(p0), fft_type=IRFFT, fft_length={4,7}"),
        ("c64[0,4]", "c64[0,4] fft(p0), fft_type=FFT, fft_length={4}"),
    ],
)
def test_transforms_of_several_dimensions(operands, root):
    assert_same(operands, root)


@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("element", ["f32", "c128"])
def test_cholesky(lower, element):
    a = arguments(f"{element}[4,4]")[0]
    good = a @ a.conj().T + np.eye(4, dtype=a.dtype)
    bad = good.copy()
    bad[2, 2] = -1
    root = f"{element}[3,4,4] cholesky(p0), lower={lower}"
    assert_same(f"{element}[3,4,4]", root, np.stack([good, bad, good]))


@pytest.mark.parametrize("lower, left", list(itertools.product(["true", "false"], repeat=2)))
def test_triangular_solve(lower, left):
    b = "c64[2,4,3]" if left == "true" else "c64[2,3,4]"
    given = arguments(f"c64[2,4,4] {b}")
    given[0] = given[0] + 4 * np.eye(4, dtype=np.complex64)
    for transpose, unit in itertools.product(
        ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"], ["true", "false"]
    ):
        text = program(
            f"c64[2,4,4] {b}",
            f"{b} triangular-solve(p0, p1), left_side={left}, lower={lower}, "
            f"unit_diagonal={unit}, transpose_a={transpose}",
        )
        assert_near(ours(text, *given), xla_oracle.run(text, *given), 3e-4)


@pytest.mark.parametrize(
    "operands, root",
    [
        ("f32[2,3,4] f32[3] f32[3]",
         "(f32[2,3,4], f32[3], f32[3]) batch-norm-training(p0, p1, p2), epsilon=0.01, "
         "feature_index=1"),
        ("f32[2,3,4] f32[3] f32[3] f32[3] f32[3]",
         "f32[2,3,4] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=0.01, feature_index=1"),
        ("f32[2,3,4] f32[3] f32[3] f32[3] f32[2,3,4]",
         "(f32[2,3,4], f32[3], f32[3]) batch-norm-grad(p0, p1, p2, p3, p4), epsilon=0.01, "
         "feature_index=1"),
    ],
)  # fmt: skip
def test_batch_normalisation(operands, root):
    given = arguments(operands)
    if len(given) == 5:
        given[4 if "inference" in root else 3] = np.array([0.5, 1, 2], np.float32)
    assert_same(operands, root, *given)


# ---- Functions of scalars ----

OPCODES = "add subtract multiply maximum minimum and or xor".split()


def edges(dtype):
    if dtype == np.bool_:
        return np.array([True, False])
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, info.max // 3], dtype)
    values = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, np.finfo(dtype).max, 1e-5]
    return np.array(values, dtype)


@pytest.mark.parametrize("element", [t for t in TYPES if not t.startswith("c")])
def test_functions_of_scalars_give_the_bits_of_their_rules(element):
    dtype = TYPES[element]
    a, b = (side.ravel() for side in np.meshgrid(edges(dtype), edges(dtype)))
    lines = [(opcode, element, "") for opcode in OPCODES]
    if np.dtype(dtype).kind == "f":
        lines = lines[:5]
    if np.dtype(dtype).kind == "b":
        lines = [line for line in lines if line[0] != "subtract"]
    for direction in "EQ NE LT LE GT GE".split():
        lines.append(("compare", "pred", f", direction={direction}"))
        if np.dtype(dtype).kind == "f":
            lines.append(("compare", "pred", f", direction={direction}, type=TOTALORDER"))
    n = len(a)
    for opcode, result, more in lines:
        text = "HloModule m\n" + combiner(
            "f", element, f"ROOT r = {result}[] {opcode}(a, b){more}"
        ) + (
            f"ENTRY e {{\n  x = {element}[{n}] parameter(0)\n  y = {element}[{n}] parameter(1)\n"
            f"  m = {result}[{n}] map(x, y), dimensions={{0}}, to_apply=f\n"
            f"  d = {result}[{n}] {opcode}(x, y){more}\n"
            f"  ROOT t = ({result}[{n}], {result}[{n}]) tuple(m, d)\n}}\n"
        )  # fmt: skip
        mapped, direct = ours(text, a, b)
        assert mapped.tobytes() == direct.tobytes(), (opcode, more)


# ---- What XLA's CPU does not compile ----


def test_reduction_by_a_computation_with_a_loop():
    a, initial = arguments("f32[4,3] f32[]")
    root = "f32[4] reduce(p0, p1), dimensions={1}, to_apply=looped"
    assert_near(ours(program("f32[4,3] f32[]", root), a, initial), [initial + 8 * a.sum(1)])


def test_reduction_of_no_dimension_still_starts_from_the_initial_value():
    a, initial = arguments("f32[2,3] f32[]")
    root = "f32[2,3] reduce(p0, p1), dimensions={}, to_apply=sub"
    assert_near(ours(program("f32[2,3] f32[]", root), a, initial), [initial - a])


def test_ragged_dot_of_free_rows():
    a, b = arguments("f32[7,3] f32[3,3,4]")
    text = program(
        "f32[7,3] f32[3,3,4] s32[3]",
        "f32[7,4] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
    )
    got = ours(text, a, b, np.array([2, 0, 3], np.int32))
    want = np.concatenate([a[:2] @ b[0], a[2:5] @ b[2], np.zeros((2, 4), np.float32)])
    assert_near(got, [want])


def test_ragged_dot_of_sums_in_each_batch():
    a, b = arguments("f32[2,4,6] f32[2,6,3]")
    sizes = np.array([[2, 3], [1, 5]], np.int32)
    text = program(
        "f32[2,4,6] f32[2,6,3] s32[2,2]",
        "f32[2,2,4,3] ragged-dot(p0, p1, p2), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={2}",
    )
    want = np.zeros((2, 2, 4, 3), np.float32)
    for n in range(2):
        start = 0
        for g in range(2):
            part = slice(start, start + sizes[n, g])
            want[g, n] = a[n][:, part] @ b[n][part]
            start += sizes[n, g]
    assert_near(ours(text, a, b, sizes), [want])


def test_scaled_dot():
    a, b, s, t = arguments("f32[4,6] f32[6,2] f32[2,3] f32[2,1]")
    text = program(
        "f32[4,6] f32[6,2] f32[2,3] f32[2,1]",
        "f32[4,2] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    left = a * np.repeat(np.repeat(s, 2, 0), 2, 1)
    right = b * np.repeat(np.repeat(t, 3, 0), 2, 1)
    assert_near(ours(text, a, b, s, t), [left @ right])


def test_errors_name_the_instruction():
    assert (
        "hlo: 'r' (ragged-dot): expected operand 2 to list the sizes of the groups of f32[3,3,4], "
        "alike or for each index over {}, got s32[2]"
    ) in error_of(
        "f32[7,3] f32[3,3,4] s32[2]",
        "f32[7,4] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
    )
    assert (
        "hlo: 'r' (select-and-scatter): expected 'sub' to give pred[], got f32[]"
    ) in error_of(
        "f32[5] f32[5] f32[]",
        "f32[5] select-and-scatter(p0, p1, p2), window={size=1}, select=sub, scatter=add",
    )  # fmt: skip
    assert (
        "hlo: 'r' (scan): expected num_carries to be at most 2, got 3"
    ) in error_of(
        "f32[3,5] f32[3]",
        "(f32[3,5], f32[3]) scan(p0, p1), dimensions={1}, num_carries=3, to_apply=step",
    )  # fmt: skip
    assert (
        "hlo: 'r' (dot): expected operand 0 to hold integers as the result does, got f32"
    ) in error_of(
        "f32[2] f32[2]",
        "s32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        *arguments("f32[2] f32[2]"),
    )


# ---- Speed ----


@pytest.mark.parametrize(
    "operands, root, seconds",
    [
        ("f32[100000] f32[]", "f32[] reduce(p0, p1), dimensions={0}, to_apply=add", 0.05),
        ("f32[100000] f32[]", "f32[] reduce(p0, p1), dimensions={0}, to_apply=max", 0.05),
        ("f32[100000]", "f32[100000] sort(p0), dimensions={0}, to_apply=lt", 1.0),
    ],
)
def test_calls_per_element_are_bearable(operands, root, seconds):
    run = hlo.compile(program(operands, root))
    given = arguments(operands)
    taken = []
    for _ in range(3):
        start = time.process_time()
        run(*given)
        taken.append(time.process_time() - start)
    assert min(taken) < seconds
