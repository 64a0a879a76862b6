"""Programs in which thousands of values depend on each other: no stage needs stack for them."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

COUNT = 3000
STEPS = {
    "concatenate": "f32[{to}] concatenate(v{before}, u), dimensions={{0}}",
    "convert": "{kind}[8] convert(v{before})",
    "copy": "f32[8] copy(v{before})",
    "tanh": "f32[8] tanh(v{before})",
    "function": "f32[8] {function}(v{before})",
    "pad": "f32[{to}] pad(v{before}, z), padding=1_0",
    "select": "f32[8] select(c, v{before}, v0)",
    "slice": "f32[{rest}] slice(v{before}), slice={{[1:{end}]}}",
    "sum": "f32[8] subtract(v{before}, v{earlier})",
}


def chain(step: str, count: int) -> str:
    size = count + 8 if step == "slice" else 8
    lines = [
        f"v0 = f32[{size}] parameter(0)",
        "z = f32[] constant(0.25)",
        "u = f32[1] reshape(z)",
        f"c = pred[{size}] compare(v0, v0), direction=EQ",
    ]
    for n in range(1, count + 1):
        text = STEPS[step].format(
            before=n - 1, earlier=max(0, n - 2), to=n + 8, rest=size - n, end=size - n + 1,
            kind="s32" if n % 2 else "f32", function="tanh" if n % 2 else "negate",
        )  # fmt: skip
        lines.append(f"v{n} = {text}")
    lines[-1] = f"ROOT {lines[-1]}"
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def chains(step: str) -> None:
    count = {"concatenate": 500, "convert": 1000, "pad": 500}.get(step, COUNT)
    text = chain(step, count)
    x = np.linspace(-1, 1, count + 8 if step == "slice" else 8, dtype=np.float32)
    expected = hlo.evaluate(text, x)[0].numpy()
    assert str(hlo.parse(str(hlo.parse(text)))) == str(hlo.parse(text))
    got = hlo.compile(text)(x)[0].numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-30)


def nested(kind: str, depth: int) -> str:
    """Doubles in each of `depth` computations that call each other."""
    text = ["HloModule m", "c0 { ROOT p0 = f32[8] parameter(0) }"]
    for n in range(1, depth + 1):
        call = {
            "call": f"call(a{n}), to_apply=c{n - 1}",
            "fusion": f"fusion(a{n}), kind=kLoop, calls=c{n - 1}",
            "conditional": f"conditional(t{n}, a{n}, a{n}), true_computation=c{n - 1}, "
            f"false_computation=c{n - 1}",
        }[kind]
        text.append(
            f"c{n} {{\n p{n} = f32[8] parameter(0)\n a{n} = f32[8] add(p{n}, p{n})\n"
            f" t{n} = pred[] constant(true)\n ROOT r{n} = f32[8] {call}\n}}"
        )
    entry = f"p = f32[8] parameter(0)\n ROOT r = f32[8] call(p), to_apply=c{depth}"
    return "\n".join([*text, f"ENTRY e {{\n {entry}\n}}"])


@pytest.mark.parametrize("kind", ["call", "fusion", "conditional"])
def test_nested_calls(kind):
    depth = {"conditional": 1200}.get(kind, 4000)
    text = nested(kind, depth)
    module = hlo.parse(text)
    assert str(hlo.parse(str(module))) == str(module)
    x = np.ones(8, np.float32)
    expected = np.full(8, np.inf, np.float32)
    program = hlo.compile(module)
    for got in (hlo.evaluate(module, x), program(x)):
        np.testing.assert_array_equal(got[0].numpy(), expected)
    assert program.explain() and module.to_json() and str(program.plan)


@pytest.mark.parametrize("step", ["function", "convert", "tanh"])
def test_long_chains_take_time_by_their_length(step):
    """Each compiles in a few seconds; times by the square of the length are a minute and more."""
    text = chain(step, 12000)
    begin = time.process_time()
    hlo.compile(text.replace("0.25", "0.125"))
    assert time.process_time() - begin < 15


def joined(count: int) -> list[str]:
    """Pieces that are calculated where they are joined."""
    lines = [f"x = f32[{count},20] parameter(0)"]
    for n in range(count):
        lines.append(f"a{n} = f32[1,20] slice(x), slice={{[{n}:{n + 1}],[0:20]}}")
        lines.append(f"b{n} = f32[1,20] sine(a{n})")
    all_pieces = ", ".join(f"b{n}" for n in range(count))
    return [*lines, f"r = f32[{count},20] concatenate({all_pieces}), dimensions={{0}}"]


def replaced(count: int) -> list[str]:
    """Rows that are written one after the other."""
    lines = [f"x = f32[{count},20] parameter(0)", "z = s32[] constant(0)"]
    for n in range(count):
        lines.append(f"i{n} = s32[] constant({n})")
        lines.append(f"a{n} = f32[1,20] slice(x), slice={{[{n}:{n + 1}],[0:20]}}")
        lines.append(f"b{n} = f32[1,20] sine(a{n})")
        before = f"r{n - 1}" if n > 0 else "x"
        lines.append(f"r{n} = f32[{count},20] dynamic-update-slice({before}, b{n}, i{n}, z)")
    return lines


def totals(count: int) -> list[str]:
    """A sum of each step, all of them joined."""
    lines = ["x0 = f32[20] parameter(0)", "z = f32[] constant(0)"]
    for n in range(count):
        lines.append(f"x{n + 1} = f32[20] multiply(x{n}, x0)")
        lines.append(f"a{n} = f32[] reduce(x{n + 1}, z), dimensions={{0}}, to_apply=sum")
        lines.append(f"b{n} = f32[1] reshape(a{n})")
    all_sums = ", ".join(f"b{n}" for n in range(count))
    return [*lines, f"r = f32[{count}] concatenate({all_sums}), dimensions={{0}}"]


def parameters(count: int) -> list[str]:
    """As many parameters and results."""
    lines = [f"x{n} = f32[20] parameter({n})" for n in range(count)]
    lines += [f"a{n} = f32[20] multiply(x{n}, x{(n + 1) % count})" for n in range(count)]
    shapes = ", ".join(["f32[20]"] * count)
    return [*lines, f"r = ({shapes}) tuple({', '.join(f'a{n}' for n in range(count))})"]


def branches(count: int) -> list[str]:
    lines = ["x0 = f32[20] parameter(0)", "a = f32[1] slice(x0), slice={[0:1]}"]
    lines += ["b = f32[] reshape(a)", "z = f32[] constant(0)"]
    lines.append("p = pred[] compare(b, z), direction=LT")
    for n in range(count):
        lines.append(
            f"x{n + 1} = f32[20] conditional(p, x{n}, x{n}), true_computation=twice, "
            "false_computation=square"
        )
    return lines


def windows(count: int) -> list[str]:
    """Short loops, of which LLVM makes straight code."""
    lines = ["x0 = f32[20] parameter(0)", "z = f32[] constant(0)"]
    for n in range(count):
        lines.append(
            f"a{n} = f32[20] reduce-window(x{n}, z), window={{size=3 pad=1_1}}, to_apply=sum"
        )
        lines.append(f"x{n + 1} = f32[20] multiply(a{n}, x0)")
    return lines


WIDE = {joined: (500, 4), replaced: (1600, 5), totals: (3000, 12), parameters: (3000, 8),
        branches: (1600, 8), windows: (1000, 4)}  # fmt: skip
CALLED = """HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
twice { a = f32[20] parameter(0)
 ROOT r = f32[20] add(a, a) }
square { a = f32[20] parameter(0)
 ROOT r = f32[20] multiply(a, a) }
"""


@pytest.mark.parametrize("make", WIDE, ids=lambda make: make.__name__)
def test_wide_programs_take_time_by_their_size(make):
    """The limits are twice what each takes; times by the square of the size are above them."""

    def program(count):
        lines = make(count)
        return CALLED + "ENTRY e {\n" + "\n".join([*lines[:-1], "ROOT " + lines[-1]]) + "\n}"

    few = program(40)
    count = 40 if make is parameters else 1
    shape = (40, 20) if make in (joined, replaced) else (20,)
    x = [np.linspace(-0.9, 0.9, np.prod(shape), dtype=np.float32).reshape(shape)] * count
    for got, want in zip(hlo.compile(few)(*x), hlo.evaluate(few, *x)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-30)
    count, limit = WIDE[make]
    module = hlo.parse(program(count))
    begin = time.process_time()
    hlo.compile(module)
    assert time.process_time() - begin < limit


def loop(steps: int) -> None:
    def function(x):
        for _ in range(steps):
            x = lamella.tanh(x * 1.01 + 0.1)
        return x

    results = []
    for one in (function, lamella.compile(function)):
        x = lamella.linspace(-1, 1, 9).requires_grad_()
        y = one(x)
        y.sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for expected, got in zip(*results):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("what", [*STEPS, "loop"])
def test_with_little_stack(what):
    command = ["sh", "-c", 'ulimit -s 512 && exec "$@"', "sh", sys.executable, __file__, what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_constant_of_a_tuple():
    text = """HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  c = ((f32[2], s32[]), pred[3]) constant((({1, 2}, 3), {1, 0, 1}))
  g = (f32[2], s32[]) get-tuple-element(c), index=0
  h = f32[2] get-tuple-element(g), index=0
  i = s32[] get-tuple-element(g), index=1CONTROL
  f = f32[] convert(i)
  b = f32[2] broadcast(f), dimensions={}
  a = f32[2] add(h, b)
  m = f32[2] multiply(a, p)
  ROOT r = (f32[2], (f32[2], s32[])) tuple(m, g)
}"""
    p = np.array([2, 3], np.float32)
    for control in ("", ", control-predecessors={c}"):
        for run in (hlo.evaluate, lambda text, *x: hlo.compile(text)(*x)):
            values = [one.tolist() for one in run(text.replace("CONTROL", control), p)]
            assert values == [[8, 15], [1, 2], 3]


def test_gather_of_slices_without_elements():
    text = """HloModule m
ENTRY e {
  x = f32[3,4] parameter(0)
  i = s32[2,1] parameter(1)
  ROOT g = f32[2,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={0,4}
}"""
    x, i = np.ones((3, 4), np.float32), np.zeros((2, 1), np.int32)
    for run in (hlo.evaluate, lambda text, *x: hlo.compile(text)(*x)):
        assert run(text, x, i)[0].tolist() == [[0] * 4] * 2  # as XLA's


def test_iota_of_pred():
    text = "HloModule m\nENTRY e {\n  ROOT c = pred[4] iota(), iota_dimension=0\n}"
    with pytest.raises(
        RuntimeError, match=r"'c' \(iota\): expected iota of numbers, got pred\[4\]"
    ):
        hlo.parse(text)


if __name__ == "__main__":
    loop(800) if sys.argv[1] == "loop" else chains(sys.argv[1])
