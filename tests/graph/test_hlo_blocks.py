"""Programs without machine code: operators' kernels, and chains of them in blocks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import hlo_random_programs
import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
from hlo_difference import difference, is_steep  # noqa: E402

SIZE = 40_000  # some blocks and a part of one


def in_process(body: str, **settings: str) -> str:
    """The output of a program without the compiler, which is looked up on first use."""
    program = "import lamella\nimport numpy as np\nfrom lamella import hlo\n" + textwrap.dedent(
        body
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LAMELLA_COMPILER": "0", **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


CHAIN = f"""
    text = '''HloModule chain
    add {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }}
    ENTRY e {{
      x = f32[{SIZE}] parameter(0)
      y = f32[{SIZE}] parameter(1)
      two = f32[] constant(2)
      twos = f32[{SIZE}] broadcast(two), dimensions={{}}
      zero = f32[] constant(0)
      a = f32[{SIZE}] multiply(x, twos)
      b = f32[{SIZE}] tanh(a)
      c = pred[{SIZE}] compare(b, y), direction=LT
      d = f32[{SIZE}] select(c, b, y)
      s = f32[] reduce(d, zero), dimensions={{0}}, to_apply=add
      t = f32[{SIZE}] broadcast(s), dimensions={{}}
      u = f32[{SIZE}] subtract(d, t)
      ROOT out = (f32[{SIZE}], f32[{SIZE}], pred[{SIZE}]) tuple(u, a, c)
    }}
    '''
    lamella.manual_seed(0)
    x, y = lamella.randn({SIZE}), lamella.randn({SIZE})
"""


def test_chains_are_blocks():
    printed = in_process(
        CHAIN
        + """
    program = hlo.compile(text)
    print(program.explain())
    got, expected = program(x, y), hlo.evaluate(text, x, y)
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-2)
    """
    )
    lines = [line.strip() for line in printed.splitlines()]
    assert (
        "blocks of 4 calls: aten::mul.Tensor aten::tanh aten::lt.Tensor aten::where.self" in lines
    )
    assert any(line.startswith("custom call of aten::sum.dim_IntList: s.") for line in lines)


def test_arguments_stay_as_they_are():
    in_process(
        CHAIN
        + """
    before = x.clone(), y.clone()
    hlo.compile(text)(x, y)
    assert lamella.equal(x, before[0]) and lamella.equal(y, before[1])
    """
    )


def test_the_number_of_threads_changes_no_bit():
    body = """
    program = hlo.compile(text)
    import hashlib
    data = b"".join(one.numpy().tobytes() for one in program(x, y))
    print(hashlib.sha256(data).hexdigest())
    """
    digests = {in_process(CHAIN + body, OMP_NUM_THREADS=str(n)) for n in (1, 2, 3, 8)}
    assert len(digests) == 1


def test_operators_of_other_libraries_join():
    printed = in_process(
        f"""
    m = lamella.library.Library("blocks", "DEF")
    m.define("half(Tensor x) -> Tensor", tags=("pointwise",))
    m.impl("half", lambda x: x * 0.5, "CPU")
    m.impl("half", lambda x: lamella.empty_like(x), "Meta")
    text = '''HloModule m
    ENTRY e {{
      x = f32[{SIZE}] parameter(0)
      a = f32[{SIZE}] cosine(x)
      ROOT b = f32[{SIZE}] custom-call(a), custom_call_target="blocks::half"
    }}
    '''
    x = lamella.randn({SIZE})
    program = hlo.compile(text)
    print(program.explain())
    assert lamella.equal(program(x)[0], x.cos() * 0.5)
    """
    )
    assert "blocks of 2 calls: aten::cos blocks::half" in printed


def test_what_is_not_elementwise_is_said_to_be_so():
    printed = in_process(
        f"""
    m = lamella.library.Library("blocks", "DEF")
    m.define("wrong(Tensor x) -> Tensor", tags=("pointwise",))
    m.impl("wrong", lambda x: x[1:].clone(), "CPU")
    m.impl("wrong", lambda x: lamella.empty_like(x), "Meta")
    text = '''HloModule m
    ENTRY e {{
      x = f32[{SIZE}] parameter(0)
      a = f32[{SIZE}] cosine(x)
      ROOT b = f32[{SIZE}] custom-call(a), custom_call_target="blocks::wrong"
    }}
    '''
    try:
        hlo.compile(text)(lamella.randn({SIZE}))
    except RuntimeError as error:
        print(error)
    """
    )
    assert printed.strip() == (
        "hlo: 'b' (custom-call): expected blocks::wrong to give 8192 elements of f32, because it "
        "has the tag pointwise"
    )


@pytest.mark.parametrize("seed", range(4))
def test_large_random_programs(seed, monkeypatch):
    # With the compiler, so that what it leaves to operators stands between machine code.
    for n in range(6):
        text, arguments = hlo_random_programs.program(500 + 10 * seed + n, large=True)
        wrong = difference(text, arguments)
        assert wrong is None or is_steep(text, arguments), f"{wrong}\n{text}"


@pytest.mark.parametrize("element", ["c64", "c128"])
def test_complex_numbers_are_the_operators(element):
    part = {"c64": "f32", "c128": "f64"}[element]
    text = f"""HloModule m
ENTRY e {{
  x = {element}[64,40] parameter(0)
  y = {element}[40,50] parameter(1)
  d = {element}[64,50] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e = {element}[64,50] exponential(d)
  f = {element}[64,50] multiply(e, d)
  r = {part}[64,50] real(f)
  ROOT out = ({element}[64,50], {part}[64,50]) tuple(f, r)
}}
"""
    dtype = {"c64": np.complex64, "c128": np.complex128}[element]
    random = np.random.default_rng(3)
    x, y = (
        (random.normal(size=s) + 1j * random.normal(size=s)).astype(dtype) * 0.1
        for s in ((64, 40), (40, 50))
    )
    program = hlo.compile(text)
    assert "custom call of aten::bmm" in program.explain()
    f, r = (one.numpy() for one in program(x, y))
    expected = np.exp(x @ y) * (x @ y)
    np.testing.assert_allclose(f, expected, rtol=1e-5)
    np.testing.assert_array_equal(r, f.real)


def test_functions_have_the_bits_of_the_operators_at_every_length():
    in_process("""
    random = np.random.default_rng(0)
    operators = {"power": lamella.pow, "atan2": lamella.atan2, "tanh": lamella.tanh}
    for element, kind in (("f32", np.float32), ("f64", np.float64)):
        for count in (1, 7, 31, 100):
            x = np.exp(random.normal(size=count) * 3).astype(kind)
            y = (random.normal(size=count) * 3).astype(kind)
            for opcode, operator in operators.items():
                operands = "x" if opcode == "tanh" else "x, y"
                shape = f"{element}[{count}]"
                program = (f"HloModule m\\nENTRY e {{ x = {shape} parameter(0)\\n"
                           f" y = {shape} parameter(1)\\n ROOT r = {shape} {opcode}({operands}) }}")
                given = [lamella.from_numpy(one) for one in (x, y)]
                got = hlo.compile(program)(*given)[0]
                assert lamella.equal(got, operator(*given[: len(operands.split(","))])), opcode
    """)
