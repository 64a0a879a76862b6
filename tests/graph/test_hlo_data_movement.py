"""Data movement, gather, scatter and random bits in the reference evaluator, against XLA's own CPU
programs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="XLA is the oracle")
hlo = pytest.importorskip("lamella.hlo")
xla_oracle = pytest.importorskip("xla_oracle")


def program(*lines: str) -> str:
    return "\n".join(["HloModule m", "ENTRY e {", *("  " + line for line in lines), "}", ""])


def ours(text: str, *arrays) -> list[np.ndarray]:
    return [one.numpy() for one in hlo.evaluate(text, *arrays)]


def assert_same(text: str, *arrays) -> None:
    got, want = ours(text, *arrays), xla_oracle.run(text, *arrays)
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def numbers(*shape: int, dtype=np.float32) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) + 1).reshape(shape).astype(dtype)


UNARY = {
    "broadcast": ("f32[2,3]", "f32[4,2,5,3]", "broadcast(x), dimensions={1,3}"),
    "broadcast of a scalar": ("f32[]", "f32[3,2]", "broadcast(x), dimensions={}"),
    "broadcast, transposed": ("f32[2,3]", "f32[3,4,2]", "broadcast(x), dimensions={2,0}"),
    "transpose": ("f32[2,3,4]", "f32[4,2,3]", "transpose(x), dimensions={2,0,1}"),
    "reshape": ("f32[2,3,4]", "f32[4,6]", "reshape(x)"),
    "reverse": ("f32[2,3,4]", "f32[2,3,4]", "reverse(x), dimensions={0,2}"),
    "slice": ("f32[7,5]", "f32[3,2]", "slice(x), slice={[1:7:2], [2:4]}"),
    "slice of nothing": ("f32[7,5]", "f32[0,5]", "slice(x), slice={[7:7], [0:5]}"),
    "concatenate": ("f32[2,3]", "f32[2,6]", "concatenate(x, x), dimensions={1}"),
    "pad": ("f32[3,4]", "f32[11,3]", "pad(x, z), padding=1_3_2x-2_1_0"),
    "pad with gaps cut": ("f32[5]", "f32[6]", "pad(x, z), padding=-1_-2_1"),
    "pad that cuts all": ("f32[3]", "f32[2]", "pad(x, z), padding=-5_4_0"),
    "pad of one row": ("f32[1,2]", "f32[3,3]", "pad(x, z), padding=1_1_0x0_1_0"),
    "pad of nothing": ("f32[0,2]", "f32[3,2]", "pad(x, z), padding=1_2_4x0_0_0"),
    "pad of all but gaps": ("f32[4]", "f32[1]", "pad(x, z), padding=-1_-11_3"),
    "iota": ("f32[1]", "s16[3,4,2]", "iota(), iota_dimension=1"),
    "iota of complex numbers": ("f32[1]", "c64[3]", "iota(), iota_dimension=0"),
    "iota of u8, which wraps": ("f32[1]", "u8[300]", "iota(), iota_dimension=0"),
    "copy": ("f32[2,3]", "f32[2,3]{0,1}", "copy(x)"),
    "size of a dimension": ("f32[2,3]", "s32[]", "get-dimension-size(x), dimensions={1}"),
}


@pytest.mark.parametrize("name", UNARY)
def test_moves(name):
    operand, result, text = UNARY[name]
    dims = [int(n) for n in operand[4:-1].split(",") if n]
    assert_same(
        program(
            f"x = {operand} parameter(0)", "z = f32[] constant(-1)", f"ROOT r = {result} {text}"
        ),
        numbers(*dims),
    )


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.float16, np.int32, np.float64, np.complex128]
)
def test_moves_of_any_width(dtype):
    name = {"b": "pred", "i": "s", "f": "f", "c": "c"}[np.dtype(dtype).kind]
    if name != "pred":
        name += str(np.dtype(dtype).itemsize * 8)
    text = program(
        f"x = {name}[2,3] parameter(0)",
        f"z = {name}[] parameter(1)",
        f"t = {name}[3,2] transpose(x), dimensions={{1,0}}",
        f"ROOT r = {name}[4,5] pad(t, z), padding=0_1_0x1_1_1",
    )
    assert_same(text, numbers(2, 3, dtype=dtype), np.array(7, dtype))


@pytest.mark.parametrize("index", ["s32", "u8", "s64", "u64", "s8"])
def test_dynamic_slices_stay_inside(index):
    dtype = np.dtype(("int" if index[0] == "s" else "uint") + index[1:])
    text = program(
        "x = f32[5,4] parameter(0)",
        "u = f32[2,3] parameter(1)",
        f"i = {index}[] parameter(2)",
        f"j = {index}[] parameter(3)",
        "s = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}",
        "w = f32[5,4] dynamic-update-slice(x, u, i, j)",
        "ROOT r = (f32[2,3], f32[5,4]) tuple(s, w)",
    )
    starts = [(0, 0), (3, 1), (4, 2), (100, 0)]
    starts += [(-1, -5), (-100, 1)] if index[0] == "s" else [(np.iinfo(dtype).max, 1)]
    for i, j in starts:
        update = -numbers(2, 3)
        got = ours(text, numbers(5, 4), update, np.array(i, dtype), np.array(j, dtype))
        a, b = min(max(int(i), 0), 3), min(max(int(j), 0), 1)
        want = numbers(5, 4)
        np.testing.assert_array_equal(got[0], want[a : a + 2, b : b + 3])
        want[a : a + 2, b : b + 3] = update
        np.testing.assert_array_equal(got[1], want)


def test_a_bitcast_honours_layouts():
    text = program(
        "x = f32[2,3]{0,1} parameter(0)",
        "a = f32[6] bitcast(x)",
        "b = f32[3,2]{1,0} bitcast(x)",
        "c = f32[3,2]{0,1} bitcast(x)",
        "ROOT r = (f32[6], f32[3,2], f32[3,2]) tuple(a, b, c)",
    )
    x = numbers(2, 3)
    a, b, c = ours(text, x)
    memory = x.ravel(order="F")
    assert a.tolist() == memory.tolist()
    assert b.tolist() == x.T.tolist()
    assert c.tolist() == memory.reshape((3, 2), order="F").tolist()


def test_shuffle_rotates():
    text = program(
        "x = f32[3,4] parameter(0)",
        "ROOT r = f32[3,4] shuffle(x), dimensions={0,1}, mode=rotate, shifts={1,-1}",
    )
    want = np.roll(numbers(3, 4), (-1, 1), (0, 1))
    np.testing.assert_array_equal(ours(text, numbers(3, 4))[0], want)


TOP_K = """HloModule m
compare { a = f32[] parameter(0) b = f32[] parameter(1)
  i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER }
ENTRY e {
  x = f32[2,7] parameter(0)
  ROOT r = (f32[2,4], s32[2,4]) custom-call(x), custom_call_target="TopK",
    called_computations={compare}
}"""


def test_custom_calls_of_the_greatest_elements():
    x = np.array(
        [[1, np.nan, 3, -np.inf, 3, -0.0, 0], [5, 5, -np.nan, np.inf, 4, 5, 2]], np.float32
    )
    x[1, 2] = np.copysign(np.nan, -1)
    for values, places in (hlo.evaluate(TOP_K, x), hlo.compile(TOP_K)(x)):
        want = [[np.nan, 3, 3, 1], [np.inf, 5, 5, 5]]
        np.testing.assert_array_equal(values.numpy(), np.array(want, np.float32))
        assert places.numpy().tolist() == [[1, 2, 4, 0], [3, 0, 1, 5]]
    assert_same(TOP_K, x)
    with pytest.raises(RuntimeError, match=r"finds the greater element, got direction=LT"):
        hlo.compile(TOP_K.replace("=GT", "=LT"))
    with pytest.raises(RuntimeError, match=r"'r' \(custom-call\): expected an array, and its k"):
        hlo.compile(TOP_K.replace("f32[2,4]", "f32[2,9]").replace("s32[2,4]", "s32[2,9]"))


def test_custom_calls_that_mark_shards_give_their_operand():
    for target in ("ShardBarrierFrom", "ShardBarrierTo"):
        text = program(
            "x = f32[2,3] parameter(0)",
            f'ROOT r = f32[2,3] custom-call(x), custom_call_target="{target}"',
        )
        for result in (hlo.evaluate(text, numbers(2, 3)), hlo.compile(text)(numbers(2, 3))):
            np.testing.assert_array_equal(result[0].numpy(), numbers(2, 3))


GATHERS = {
    "rows": (
        (6, 4),
        (3, 1),
        "f32[3,4]",
        "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,4}",
    ),
    "points without a vector dimension": (
        (9,),
        (2, 3),
        "f32[2,3]",
        "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
        "slice_sizes={1}",
    ),
    "windows": (
        (6, 5),
        (2, 4),
        "f32[3,4,2]",
        "offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, "
        "slice_sizes={3,2}",
    ),
    "batches": (
        (3, 6, 4),
        (3, 2, 1),
        "f32[3,2,4]",
        "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
        "slice_sizes={1,1,4}",
    ),
    "batches behind the vector": (
        (3, 6, 4),
        (2, 1, 3),
        "f32[2,3,4]",
        "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={2}, index_vector_dim=1, "
        "slice_sizes={1,1,4}",
    ),
}


def dims_of(shape) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name):
    operand, indices, result, attributes = GATHERS[name]
    text = program(
        f"x = f32{dims_of(operand)} parameter(0)",
        f"i = s32{dims_of(indices)} parameter(1)",
        f"ROOT r = {result} gather(x, i), {attributes}",
    )
    generator = np.random.default_rng(11)
    where = generator.integers(-2, 9, indices).astype(np.int32)
    assert_same(text, numbers(*operand), where)


COMBINERS = {
    "set": "ROOT r = f32[] copy(b)",
    "the update and a constant": "ROOT r = f32[] add(b, z)",
    "add": "ROOT r = f32[] add(a, b)",
    "subtract, swapped": "ROOT r = f32[] subtract(b, a)",
    "multiply": "ROOT r = f32[] multiply(b, a)",
    "maximum": "ROOT r = f32[] maximum(a, b)",
    "two steps": "t = f32[] multiply(a, b)\n  ROOT r = f32[] add(t, b)",
}
SCATTERS = {
    "rows": (
        (6, 4),
        (5, 1),
        (5, 4),
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1",
    ),
    "points": (
        (4, 5),
        (6, 2),
        (6,),
        "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, "
        "index_vector_dim=1",
    ),
    "windows": (
        (6, 5),
        (2, 4),
        (4, 3, 2),
        "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, "
        "index_vector_dim=0",
    ),
    "batches": (
        (3, 6, 4),
        (3, 2, 1),
        (3, 2, 4),
        "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
        "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2",
    ),
}


def scatter_program(name: str, combiner: str) -> str:
    operand, indices, updates, attributes = SCATTERS[name]
    return "\n".join(
        [
            "HloModule m",
            "combine {",
            "  a = f32[] parameter(0)",
            "  b = f32[] parameter(1)",
            "  z = f32[] constant(0)",
            "  " + combiner,
            "}",
            "ENTRY e {",
            f"  x = f32{dims_of(operand)} parameter(0)",
            f"  i = s32{dims_of(indices)} parameter(1)",
            f"  u = f32{dims_of(updates)} parameter(2)",
            f"  ROOT r = f32{dims_of(operand)} scatter(x, i, u), {attributes}, to_apply=combine",
            "}",
            "",
        ]
    )


EACH_COMBINER = [("rows", combiner) for combiner in COMBINERS]
OTHER_SCATTERS = [(name, c) for name in SCATTERS if name != "rows" for c in ("add", "two steps")]


@pytest.mark.parametrize(("name", "combiner"), EACH_COMBINER + OTHER_SCATTERS)
def test_scatter(name, combiner):
    operand, indices, updates, _ = SCATTERS[name]
    generator = np.random.default_rng(13)
    where = generator.integers(-2, 8, indices).astype(np.int32)
    text = scatter_program(name, COMBINERS[combiner])
    assert_same(text, numbers(*operand), where, -numbers(*updates))


def test_scatter_that_replaces_is_a_parameter():
    text = scatter_program("rows", "").replace("  b = f32[] p", "  ROOT b = f32[] p")
    where = np.array([[1], [9], [0], [1], [5]], np.int32)
    assert_same(text, numbers(6, 4), where, -numbers(5, 4))


def test_scatter_of_several_arrays():
    text = """HloModule m
combine {
  a = f32[] parameter(0)
  n = s32[] parameter(1)
  b = f32[] parameter(2)
  k = s32[] parameter(3)
  s = f32[] add(a, b)
  t = s32[] maximum(n, k)
  ROOT r = (f32[], s32[]) tuple(s, t)
}
ENTRY e {
  x = f32[5] parameter(0)
  y = s32[5] parameter(1)
  i = s32[4,1] parameter(2)
  u = f32[4] parameter(3)
  v = s32[4] parameter(4)
  ROOT r = (f32[5], s32[5]) scatter(x, y, i, u, v), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=combine
}
"""
    where = np.array([[1], [3], [1], [7]], np.int32)
    updates = np.array([9, -1, 30, 4], np.int32)
    x, y = numbers(5), numbers(5, dtype=np.int32)
    assert_same(text, x, y, where, numbers(4), updates)
    assert x.tolist() == [1, 2, 3, 4, 5]  # arguments are not written


GENERATORS = [("rng_philox", 2), ("rng_philox", 3), ("rng_three_fry", 2), ("rng_default", 2)]


@pytest.mark.parametrize(("algorithm", "words"), GENERATORS)
def test_random_bits(algorithm, words):
    shapes = ["u32[5]", "u64[2,3]", "u8[7]", "u16[]", "u32[3,5]", "u16[5,4,2]", "u64[]"]
    lines = [f"state0 = u64[{words}] parameter(0)"]
    for n, shape in enumerate(shapes):
        lines.append(
            f"both{n} = (u64[{words}], {shape}) rng-bit-generator(state{n}), algorithm={algorithm}"
        )
        lines.append(f"state{n + 1} = u64[{words}] get-tuple-element(both{n}), index=0")
        lines.append(f"bits{n} = {shape} get-tuple-element(both{n}), index=1")
    names = ", ".join([f"state{len(shapes)}", *(f"bits{n}" for n in range(len(shapes)))])
    lines.append(f"ROOT r = (u64[{words}], {', '.join(shapes)}) tuple({names})")
    for state in ([7, 0, 0], [2**64 - 1, 2**64 - 3, 5], [123, 456, 2**64 - 1]):
        assert_same(program(*lines), np.array(state[:words], np.uint64))


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_bits_of_a_jax_key(algorithm, kind):
    jax = pytest.importorskip("jax")
    by = getattr(jax.lax.RandomAlgorithm, algorithm)

    for shape in ((4, 3), (7,), (0, 2), ()):

        def draw(key, shape=shape):
            return jax.lax.rng_bit_generator(key, shape, dtype=kind, algorithm=by)

        for key in ([1, 2, 3, 4], [2**32 - 2, 2**32 - 1, 2**32 - 1, 2**32 - 1]):
            key = np.array(key, np.uint32)
            text = jax.jit(draw).lower(key).as_text("hlo")
            for got, want in zip(ours(text, key), draw(key), strict=True):
                np.testing.assert_array_equal(got, want)


def test_random_numbers_have_their_distribution():
    lines = []
    for element, low, high in [("f32", -2, 3), ("bf16", 0, 1), ("s32", -5, 5), ("u8", 250, 255)]:
        lines += [
            f"{element}a = {element}[] constant({low})",
            f"{element}b = {element}[] constant({high})",
            f"{element}r = {element}[20000] rng({element}a, {element}b), distribution=rng_uniform",
        ]
    lines += [
        "bf16c = f32[20000] convert(bf16r)",
        "mean = f64[] constant(3)",
        "deviation = f64[] constant(0.5)",
        "normal = f64[20000] rng(mean, deviation), distribution=rng_normal",
        "ROOT r = (f32[20000], f32[20000], s32[20000], u8[20000], f64[20000]) "
        "tuple(f32r, bf16c, s32r, u8r, normal)",
    ]
    f32, bf16, s32, u8, normal = ours(program(*lines))
    assert f32.min() >= -2 and f32.max() < 3 and abs(f32.mean() - 0.5) < 0.05
    assert abs(f32.std() - 5 / 12**0.5) < 0.05
    assert bf16.min() >= 0 and bf16.max() < 1 and abs(bf16.mean() - 0.5) < 0.02
    assert np.bincount(s32 + 5).min() > 1700 and s32.min() == -5 and s32.max() == 4
    assert sorted(set(u8.tolist())) == [250, 251, 252, 253, 254]
    assert abs(normal.mean() - 3) < 0.02 and abs(normal.std() - 0.5) < 0.02


def test_the_state_of_random_numbers_moves_on():
    text = program("ROOT r = u64[2] rng-get-and-update-state(), delta=5")
    first, second = ours(text)[0], ours(text)[0]
    assert int(second[0]) - int(first[0]) == 5 and first[1] == second[1] == 0
