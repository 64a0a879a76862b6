"""Dimensions below a bound, "<=N": evaluated and compiled programs give the valid elements alone,
and ignore the others. Values are those of NumPy on the valid elements, and XLA's where its result
has a static size."""

from __future__ import annotations

import numpy as np
import pytest

hlo = pytest.importorskip("lamella.hlo")

HEAD = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
mul { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] multiply(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
greater { a = f32[] parameter(0) b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT }
write { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
twice { a = f32[<=6] parameter(0) ROOT r = f32[<=6] add(a, a) }
"""
X = np.array([3, 1, 4, 1, 5, 9], np.float32)
M = np.arange(24, dtype=np.float32).reshape(6, 4)


def both(text: str, *arrays) -> list[np.ndarray]:
    """The results of the evaluator, which the compiled program must give as well."""
    evaluated = [np.asarray(one) for one in hlo.evaluate(text, *arrays)]
    for one, other in zip(evaluated, hlo.compile(text)(*arrays), strict=True):
        np.testing.assert_array_equal(one, np.asarray(other))
    return evaluated


def program(shape: str, line: str) -> str:
    """A program of x = f32[6] and m = f32[6,4], of whose first dimensions n elements are valid in d
    and e, and its text."""
    return f"""{HEAD}ENTRY e {{
  x = f32[6] parameter(0)
  m = f32[6,4] parameter(1)
  n = s32[] parameter(2)
  k = s32[] parameter(3)
  z = f32[] constant(0)
  one = f32[] constant(1)
  d = f32[<=6] set-dimension-size(x, n), dimensions={{0}}
  e = f32[<=6,4] set-dimension-size(m, n), dimensions={{0}}
  d2 = f32[<=6] set-dimension-size(x, k), dimensions={{0}}
  ROOT r = {shape} {line}
}}
"""


# The shape and the line, and what NumPy gives for the valid parts (x, m, n).
CASES = {
    "the size": ("s32[]", "get-dimension-size(d), dimensions={0}", lambda x, m, n: n),
    "elementwise": ("f32[<=6]", "negate(d)", lambda x, m, n: -x),
    "with a static operand": ("f32[<=6]", "add(d, x)", lambda x, m, n: 2 * x),
    "a copy": ("f32[<=6]", "copy(d)", lambda x, m, n: x),
    "another type": ("s32[<=6]", "convert(d)", lambda x, m, n: x.astype(np.int32)),
    "sum": ("f32[]", "reduce(d, z), dimensions={0}, to_apply=add", lambda x, m, n: x.sum()),
    "product": ("f32[]", "reduce(d, one), dimensions={0}, to_apply=mul", lambda x, m, n: x.prod()),
    "sum of columns": (
        "f32[4]",
        "reduce(e, z), dimensions={0}, to_apply=add",
        lambda x, m, n: m.sum(0),
    ),
    "sum of rows": (
        "f32[<=6]",
        "reduce(e, z), dimensions={1}, to_apply=add",
        lambda x, m, n: m.sum(1),
    ),
    "broadcast": (
        "f32[2,<=6]",
        "broadcast(d), dimensions={1}",
        lambda x, m, n: np.stack([x, x]),
    ),
    "transpose": ("f32[4,<=6]", "transpose(e), dimensions={1,0}", lambda x, m, n: m.T),
    "dot over the size": (
        "f32[]",
        "dot(d, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        lambda x, m, n: (x * x).sum(),
    ),
    "dot of matrices": (
        "f32[<=6,6]",
        "dot(e, m), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        lambda x, m, n: m @ M.T,
    ),
    "slice": ("f32[<=3]", "slice(d), slice={[0:6:2]}", lambda x, m, n: x[::2]),
    "slice of the rest": ("f32[<=4]", "slice(d), slice={[2:6]}", lambda x, m, n: x[2:]),
    "one row": ("f32[<=6,1]", "slice(e), slice={[0:6], [1:2]}", lambda x, m, n: m[:, 1:2]),
    "concatenate": (
        "f32[<=18]",
        "concatenate(d, x, d), dimensions={0}",
        lambda x, m, n: np.concatenate([x, X, x]),
    ),
    "concatenate columns": (
        "f32[<=6,8]",
        "concatenate(e, m), dimensions={1}",
        lambda x, m, n: np.concatenate([m, m], 1),
    ),
    "reshape to one dimension": ("f32[<=24]", "reshape(e)", lambda x, m, n: m.ravel()),
    "reshape that adds a dimension": (
        "f32[<=6,2,2]",
        "reshape(e)",
        lambda x, m, n: m.reshape(-1, 2, 2),
    ),
    "reshape that splits": (
        "f32[<=3,2]",
        "reshape(d)",
        lambda x, m, n: x[: n // 2 * 2].reshape(-1, 2),
    ),
    "pad": (
        "f32[<=14]",
        "pad(d, one), padding=1_2_1",
        lambda x, m, n: np.array([1, *sum(([v, 1] for v in x), [])[:-1], 1, 1], np.float32),
    ),
    "reverse": ("f32[<=6]", "reverse(d), dimensions={0}", lambda x, m, n: x[::-1]),
    "sort": (
        "f32[<=6]",
        "sort(d), dimensions={0}, to_apply=greater",
        lambda x, m, n: np.sort(x)[::-1],
    ),
    "windows": (
        "f32[<=5]",
        "reduce-window(d, z), window={size=2}, to_apply=add",
        lambda x, m, n: x[1:] + x[:-1],
    ),
    "a call": ("f32[<=6]", "call(d), to_apply=twice", lambda x, m, n: x + x),
    "an update of columns": (
        "f32[<=6,4]",
        "dynamic-update-slice(e, e, k, k)",
        lambda x, m, n: m,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [6, 4, 1])
def test_valid_elements(name, n):
    shape, line, expected = CASES[name]
    (made,) = both(program(shape, line), X, M, np.int32(n), np.int32(0))
    want = np.asarray(expected(X[:n], M[:n], n))
    assert made.shape == want.shape
    np.testing.assert_allclose(made, want, rtol=1e-6)


def squared(name: str) -> str:
    """The program, with the sum of the squares of its result, which has a static size."""
    shape, line, _ = CASES[name]
    dimensions = ",".join(str(d) for d in range(shape.count(",") + 1))
    return program(shape, line).replace(
        f"ROOT r = {shape} {line}",
        f"r = {shape} {line}\n  q = {shape} multiply(r, r)\n"
        f"  ROOT s = f32[] reduce(q, z), dimensions={{{dimensions}}}, to_apply=add",
    )


# XLA reaches its backends through StableHLO here, which loses the size of a split dimension.
DYNAMIC = [
    name
    for name, case in CASES.items()
    if "f32" in case[0] and "<=" in case[0] and name != "reshape that splits"
]


@pytest.mark.parametrize("name", DYNAMIC)
def test_valid_elements_as_in_xla(name):
    xla_oracle = pytest.importorskip("xla_oracle")
    for n in (6, 3, 1):
        arguments = (X, M, np.int32(n), np.int32(0))
        want = xla_oracle.run(squared(name), *arguments)
        np.testing.assert_allclose(both(squared(name), *arguments), want)


STATIC = [name for name, case in CASES.items() if "<=" not in case[0]]


@pytest.mark.parametrize("name", STATIC)
def test_as_in_xla(name):
    xla_oracle = pytest.importorskip("xla_oracle")
    text = program(*CASES[name][:2])
    for n in (6, 3, 0):
        arguments = (X, M, np.int32(n), np.int32(0))
        np.testing.assert_allclose(both(text, *arguments), xla_oracle.run(text, *arguments))


def test_of_two_sizes_the_lesser_counts_and_one_is_repeated():
    text = program("f32[<=6]", "add(d, d2)")
    for n, k, want in ((4, 3, 2 * X[:3]), (2, 5, 2 * X[:2]), (1, 4, X[0] + X[:4])):
        np.testing.assert_array_equal(both(text, X, M, np.int32(n), np.int32(k))[0], want)


def test_elements_beyond_a_size_are_kept_for_a_later_one():
    text = program("f32[6]", "set-dimension-size(g, k), dimensions={0}")
    text = text.replace("  ROOT r = f32[6]", "  g = f32[<=6] negate(d)\n  ROOT r = f32[6]")
    np.testing.assert_array_equal(both(text, X, M, np.int32(2), np.int32(6))[0], -X)


def test_scatter_ignores_indices_beyond_the_size():
    text = f"""{HEAD}ENTRY e {{
  x = f32[4] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] parameter(2)
  n = s32[] parameter(3)
  j = s32[<=3,1] set-dimension-size(i, n), dimensions={{0}}
  v = f32[<=3] set-dimension-size(u, n), dimensions={{0}}
  s = f32[4] scatter(x, j, v), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  g = f32[<=3] gather(x, j), offset_dims={{}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
  ROOT t = (f32[4], f32[<=3]) tuple(s, g)
}}"""
    x, u = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 40], np.float32)
    scattered, gathered = both(text, x, np.array([[2], [0], [2]], np.int32), u, np.int32(2))
    assert scattered.tolist() == [21, 2, 13, 4] and gathered.tolist() == [3, 1]


def test_loops_and_branches_carry_sizes():
    text = (
        HEAD
        + """
goes { s = (s32[], f32[<=4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(3) ROOT r = pred[] compare(i, l), direction=LT }"""
    )
    text += """
body { s = (s32[], f32[<=4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1) j = s32[] add(i, one) v = f32[<=4] get-tuple-element(s), index=1
  w = f32[<=4] add(v, v) u = f32[<=4] set-dimension-size(w, j), dimensions={0}
  ROOT r = (s32[], f32[<=4]) tuple(j, u) }
same { ROOT a = f32[<=4] parameter(0) }
less { a = f32[<=4] parameter(0) n = s32[] constant(1)
  ROOT r = f32[<=4] set-dimension-size(a, n), dimensions={0} }
ENTRY e {
  x = f32[<=4] parameter(0)
  p = pred[] parameter(1)
  i = s32[] constant(0)
  t = (s32[], f32[<=4]) tuple(i, x)
  w = (s32[], f32[<=4]) while(t), condition=goes, body=body
  v = f32[<=4] get-tuple-element(w), index=1
  ROOT c = f32[<=4] conditional(p, v, v), true_computation=same, false_computation=less
}"""
    assert both(text, X[:4], np.bool_(True))[0].tolist() == [24, 8, 32]
    assert both(text, X[:4], np.bool_(False))[0].tolist() == [24]
    assert both(text, X[:3], np.bool_(True))[0].tolist() == [24, 8, 32]


def test_arguments_have_any_size_below_the_bound():
    text = f"{HEAD}ENTRY e {{\n  x = f32[<=8] parameter(0)\n  z = f32[] constant(0)\n"
    text += "  s = f32[] reduce(x, z), dimensions={0}, to_apply=add\n"
    text += "  ROOT t = (f32[], f32[<=8]) tuple(s, x)\n}"
    run = hlo.compile(text)
    for size in (0, 3, 8):
        total, same = run(np.ones(size, np.float32))
        assert float(total) == size and same.shape == (size,)
    with pytest.raises(RuntimeError, match=r"argument 0 \('x'\) to be f32\[<=8\], got f32\[9\]"):
        run(np.ones(9, np.float32))
    assert "sizes are dynamic" in run.explain()


def test_what_has_no_meaning_is_refused_by_name():
    wrong = {
        "from 0 to 6, got 7": ("f32[<=6]", "copy(d)", 7),
        "to take the size of the operand's": ("f32[2,3]", "reshape(d)", 4),
        "whole dynamic dimension 0": ("f32[2]", "dynamic-slice(d, k), dynamic_slice_sizes={2}", 4),
    }
    for message, (shape, line, n) in wrong.items():
        for run in (hlo.evaluate, lambda text, *given: hlo.compile(text)(*given)):
            with pytest.raises(RuntimeError, match=message):
                run(program(shape, line), X, M, np.int32(n), np.int32(0))
    with pytest.raises(RuntimeError, match="to have a static size"):
        hlo.as_operator(hlo.parse(program("f32[<=6]", "copy(d)")), "dynamic::sizes")
