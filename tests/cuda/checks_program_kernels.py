"""Regions of programs on a device: one kernel for each, with the CPU's bits where no sum is
reordered, and nothing that waits or runs on the CPU."""

import math

import pytest
from beside_cpu import FLOATS, INTEGERS, TOLERANCE, strided_copy, values

import lamella
import lamella.nn.functional as F
from lamella import hlo, nn

# Without the compiler operators compute the same results.
HAS_COMPILER = (
    "machine code"
    in hlo.compile(
        "HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }"
    ).explain()
)
# What would wait, copy or compile while a program runs.
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2")
WAITS += ("cuModuleLoadData",)


@pytest.fixture
def check(cuda, standin):
    """Compares a program with the CPU's, and counts its launches when it runs again."""

    def run(launches, program, *tensors, exact=True, copy=lambda x: x.cuda()):
        here, given = program(*tensors), [copy(tensor) for tensor in tensors]
        program(*given)
        cuda.synchronize()
        cuda.reset_fallbacks()
        standin.standin_reset_calls()
        there = program(*given)
        for function in HAS_COMPILER * WAITS:
            assert standin.calls(function) == 0, function
        assert not HAS_COMPILER or cuda.fallbacks() == {}
        if HAS_COMPILER and launches is not None:
            assert standin.calls("cuLaunchKernel") == launches
        if isinstance(here, lamella.Tensor):
            here, there = (here,), (there,)
        for n, (expected, got) in enumerate(zip(here, there, strict=True)):
            assert got.device.type == "cuda" and got.dtype == expected.dtype
            assert got.is_contiguous() and got.shape == expected.shape
            got = got.cpu()
            if exact:
                both_nan = (expected != expected) & (got != got)
                equal = (expected == got) & (expected.signbit() == got.signbit())
                assert (both_nan | equal).all().item(), f"result {n}"
            else:
                most = TOLERANCE[expected.dtype]
                assert lamella.allclose(expected, got, rtol=most, atol=most), f"result {n}"

    return run


def compiled(fn):
    return lamella.compile(fn, fullgraph=True)


# With AVX2 alone the CPU's gelu has other last bits: v_tail_quotient.
HAS_AVX512 = "avx512f" in open("/proc/cpuinfo").read()


# ---- Elements ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_chains_of_floats(check, dtype):
    x, y, row, column = (values(dtype, *s, seed=n) for n, s in enumerate(
        [(6, 40), (6, 40), (40,), (6, 1)]))  # fmt: skip

    def arithmetic(x, y, row, column):
        return (
            (x * y + 1.5).relu() - y,
            x / y + y.reciprocal() * 3,
            (x + row) * column - column * row,
            lamella.where(x > y, x * 2, y - 1),
            (x < y) & (x != 0),
            lamella.maximum(x, y) + lamella.minimum(x, row).clamp(-1, 1),
            (x * 3).floor() + (y * 3).ceil() - (x * 3).round() + (y * 2).trunc(),
            (x * 2).float() + y.double(),
        )

    def functions(x, y, row, column):
        return (
            x.exp() + y.tanh() * x.sigmoid(),
            x.abs().log1p() - y.expm1(),
            x.erf() * 2 + (y.abs() + 1).sqrt().rsqrt(),
            *(HAS_AVX512 * (F.gelu(x + row) * 2,)),
            F.gelu(x + row, approximate="tanh") - F.silu(y * column),
            (x.abs() + 1).log() + (y.abs() + 2).log2() * x.exp2(),
        )

    check(1, compiled(arithmetic), x, y, row, column)
    check(1, compiled(functions), x, y, row, column)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(check, dtype):
    least = lamella.finfo(dtype).smallest_normal
    numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, least, -least / 2, 0.5]
    numbers += [-0.5, 1.5, 2.5, -2.5, 1e-3, 89.0, -105.0, lamella.finfo(dtype).max]
    x = lamella.tensor(numbers).to(dtype).repeat(16)
    y = lamella.tensor(numbers).to(dtype).repeat_interleave(16)

    def fn(x, y):
        return (
            x + y, x * y - x, x / y, lamella.maximum(x, y), lamella.minimum(x, y) * 1, -x.abs(),
            x.round() + 0, x.floor(), x.sqrt(), x.exp(), x.log(), x.tanh(), x.sign() * 2,
            (x * 2).to(lamella.int32), (x * 1).to(lamella.int64), x.isfinite() & (y == y),
            x.clamp(-1, 1), x.expm1(), x.log1p(), x.erf(),
            *(HAS_AVX512 * (F.gelu(x),)),
        )  # fmt: skip

    check(1, compiled(fn), x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_chains_of_integers(check, dtype):
    x, y = values(dtype, 5, 12), values(dtype, 5, 12, seed=1).abs() + 1

    def fn(x, y):
        return (
            ((x * y + 3) - (y << 1)) | x,
            ((x & y) ^ x) | 1,
            -x + y.abs() + ~x,
            x.float() * 0.5 + y.double(),
            (x.float() * 1.7).to(lamella.int32) + 1,
            lamella.maximum(x, y) * (x > y),
        )

    check(1, compiled(fn), x, y)
    check(1, compiled(lambda x, y: ((x * y).sum(-1), (x + y).amax(-1), (x - y).amin(1))), x, y)


def test_chains_of_bool(check):
    p, q = values(lamella.bool, 6, 10), values(lamella.bool, 6, 10, seed=1)
    check(1, compiled(lambda p, q: ((p & q) | ~p, (p ^ q).float() + 1)), p, q)
    check(1, compiled(lambda p, q: ((p & q).any(1), (p | q).all(-1))), p, q)


def test_integers_of_modules(check):
    text = """HloModule m
ENTRY e { a = s32[64] parameter(0) b = s32[64] parameter(1)
  d = s32[64] divide(a, b) r = s32[64] remainder(d, b) h = s32[64] mulhi(a, b)
  c = s32[64] count-leading-zeros(a) p = s32[64] popcnt(h) l = s32[64] shift-left(c, p)
  i = s32[64] iota(), iota_dimension=0 s = s32[64] subtract(l, i)
  f = f32[64] bitcast-convert(s) n = f32[64] negate(f)
  ROOT t = (s32[64], s32[64], s32[64], s32[64], f32[64]) tuple(d, r, p, s, n) }"""
    a = values(lamella.int32, 64) * 238609294
    a[:3] = lamella.tensor([-(2**31), 2**31 - 1, 0], dtype=lamella.int32)
    b = values(lamella.int32, 64, seed=1)
    b[0] = -1
    check(1, hlo.compile(text), a, b)


def test_movements(check):
    x, y = values(lamella.float32, 6, 40), values(lamella.float32, 6, 40, seed=1)
    check(1, compiled(lambda x, y: x.flip(1) * y + x), x, y)
    check(1, compiled(lambda x, y: x.t() * y.t() + 1), x, y)
    check(1, compiled(lambda x, y: x[1:, ::2] * 2 + y[1:, 1::2]), x, y)
    check(1, compiled(lambda x, y: x.reshape(40, 6) * y.view(40, 6) - 1), x, y)
    check(1, compiled(lambda x, y: (x[:, None] * y[None] + 1).exp()), x, y)
    check(1, compiled(lambda x, y: F.pad(x, (1, 2, 0, 3)) * 2 + 1), x, y)
    check(1, compiled(lambda x, y: x * lamella.arange(40, device=x.device) + 1), x, y)


def test_arguments_that_are_views(check):
    """Kernels take dense arrays at multiples of 16 bytes; others are copied first."""
    x, y = values(lamella.float32, 7, 9), values(lamella.float32, 9, 7, seed=1)
    fn = compiled(lambda x, y: x * y + 1)
    check(1, fn, x, y.t().contiguous())
    check(2, fn, x, y.t(), copy=strided_copy)
    whole = values(lamella.float32, 64)
    program = compiled(lambda x: x * x + 1)
    check(1, program, whole[4:20], copy=lambda x: whole.cuda()[4:20])
    check(1, program, whole[1:17], copy=lambda x: whole.cuda()[1:17])


def test_constants_and_empty_arrays(check):
    table = values(lamella.float32, 8)
    on_host, on_device = table, table.cuda()
    programs = {
        device: compiled(lambda x, table=table: (x * table + 0.5).relu())
        for device, table in (("cpu", on_host), ("cuda", on_device))
    }
    check(1, lambda x: programs[x.device.type](x), values(lamella.float32, 4, 8))
    check(0, compiled(lambda x: (x * 2 + 1).relu()), lamella.empty(0, 3))
    check(1, compiled(lambda x: (x * 2 + 1).relu()), lamella.tensor(-3.0))


# ---- Rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 8, 33, 100, 1000])
def test_rows(check, dtype, length):
    x, y, w = (values(dtype, *s, seed=n) for n, s in enumerate([(5, length)] * 2 + [(length,)]))

    def fn(x, y, w):
        z = x * y
        return z.softmax(-1), (z + 1).sum(-1), (z - 1).amax(-1), z.mean(-1, keepdim=True) * x

    def norm(x, y, w):
        return F.layer_norm(x + y, (length,), w, w)

    for program in (compiled(fn), compiled(norm)):
        check(1 if length > 1 else None, program, x, y, w, exact=False)


@pytest.mark.parametrize("length", [129, 3000, 9000, 50257])
def test_long_rows(check, length):
    """A block for a row; from some length on values are calculated again in later phases."""
    x = values(lamella.float32, 3, length)
    check(1, compiled(lambda x: (x * 2).softmax(-1) + 1), x, exact=False)
    check(1, compiled(lambda x: ((x * 2).amax(-1), (x > 3).any(-1), x.amin(1))), x)


def test_rows_of_several_dimensions(check):
    x = values(lamella.float32, 3, 4, 6, 7)
    check(1, compiled(lambda x: F.layer_norm(x * 2, (6, 7))), x, exact=False)
    check(1, compiled(lambda x: (x.transpose(1, 2) * 2).softmax(-1)), x, exact=False)
    check(1, compiled(lambda x: ((x * 2).sum(), (x + 1).amax())), x, exact=False)


def test_other_reductions_are_operators(check):
    """Sums of columns and of long rows; starts that change nothing are left out."""
    x = values(lamella.float32, 6, 40)
    check(1, compiled(lambda x: x.sum(0)), x, exact=False)
    check(3, compiled(lambda x: (x.amax(0), x.amin(0), x.prod(0))), x, exact=False)
    check(1, compiled(lambda x: x.sum(0)), x * 0 - 0.0)


# ---- Modules -------------------------------------------------------------------------------------


class Block(nn.Module):
    """A block of an encoder."""

    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        split = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        parts = self.qkv(self.before(x)).chunk(3, -1)
        q, k, v = (part.reshape(split).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.after(x))))


def made(kind, device):
    lamella.manual_seed(1)
    if kind is Block:
        return Block().to(device)
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)).to(device)


# Launches beside the libraries' products. Operator by operator the block took 69, and with its
# gradient 128.
@pytest.mark.parametrize(("kind", "forward", "both"), [(Block, 5, 25), ("mlp", 1, 7)])
def test_modules(cuda, standin, kind, forward, both):
    x = values(lamella.float32, 2, 8, 32)
    results = {}
    for device in ("cpu", "cuda"):
        module, given = made(kind, device), x.to(device)
        with lamella.no_grad():
            program = compiled(module)
            program(given)
            cuda.synchronize()
            standin.standin_reset_calls()
            results[device] = [program(given)]
            if device == "cuda" and HAS_COMPILER:
                assert standin.calls("cuLaunchKernel") == forward
                assert standin.calls("cuStreamSynchronize") == 0
        loss = compiled(lambda x, module=module: module(x).pow(2).mean())
        loss(given).backward()
        module.zero_grad(set_to_none=True)
        cuda.synchronize()
        standin.standin_reset_calls()
        loss(given).backward()
        if device == "cuda" and HAS_COMPILER:
            assert standin.calls("cuLaunchKernel") == both
        results[device] += [p.grad for p in module.parameters()]
    assert not HAS_COMPILER or cuda.fallbacks() == {}
    for expected, got in zip(results["cpu"], results["cuda"], strict=True):
        assert lamella.allclose(expected, got.cpu(), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not HAS_COMPILER, reason="there is no compiler")
def test_steps_are_explained(cuda):
    text = """HloModule m
ENTRY e { a = f32[4,8] parameter(0) b = f32[4,8] exponential(a) c = f32[4,8] add(b, a)
  ROOT r = f32[4,8] sine(c) }"""
    program = hlo.compile(text)
    program(values(lamella.float32, 4, 8).cuda())
    shown = program.explain()
    assert "  kernel, elements: c\n  call of aten::sin: " in shown, shown


# ---- One block -----------------------------------------------------------------------------------


def allocations(cuda, standin, program, *given):
    """How many times a second run asks the device's allocator, but for workspaces of a library's
    products; and its results."""

    def count():
        products = standin.calls("cublasLtMatmul")
        return cuda.memory_stats()["allocation.all.allocated"] - products

    program(*given)
    before = count()
    results = program(*given)
    return count() - before, results


def test_intermediate_arrays_are_one_allocation(cuda, standin):
    """A run takes one block for its intermediate arrays, and memory for each result."""
    x = values(lamella.float32, 2, 8, 32)
    with lamella.no_grad():
        expected = made(Block, "cpu")(x)
        program = compiled(made(Block, "cuda"))
        count, result = allocations(cuda, standin, program, x.cuda())
    assert lamella.allclose(expected, result.cpu(), rtol=1e-4, atol=1e-5)
    assert "  one block of " in program.explanation(steps=True)
    assert not HAS_COMPILER or count == 2


MODULE_OF_PRODUCTS = """HloModule m
ENTRY e {{ a = f32[8,8] parameter(0)
  b = f32[8,8] dot(a, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c = f32[8,8] {view}
  d = f32[8,8] dot(a, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e = f32[8,8] dot(d, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  f = f32[8,8] dot(a, e), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT g = f32[8,8] dot(f, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"""


def test_places_of_views_and_of_operands_that_are_returned(cuda, standin):
    """A view keeps its array's place. An operator that gives its operand without saying so does as
    well: the steps for which the plan has that place, of d and f, get memory of their own."""
    library = lamella.library.Library("checks_blocks", "DEF")
    library.define("same(Tensor self) -> Tensor")
    library.impl("same", lambda self: self, "CompositeExplicitAutograd")
    a = values(lamella.float32, 8, 8) / 8
    b = a @ a
    for view, c, wanted in (
        ("transpose(b), dimensions={1,0}", b.t(), 2),
        ('custom-call(b), custom_call_target="checks_blocks::same"', b, 4),
    ):
        program = hlo.compile(MODULE_OF_PRODUCTS.format(view=view))
        count, (result,) = allocations(cuda, standin, program, a.cuda())
        expected = (a @ (a @ c @ c)) @ c
        assert lamella.allclose(result.cpu(), expected, rtol=1e-5, atol=1e-6)
        assert count == wanted
        shown = program.explain()
        # b, c, d and e at first; f takes the place of d.
        assert "  one block of 1536 bytes for 4 arrays of e\n" in shown or "same" in shown, shown


def test_blocks_of_loops_and_results_that_stay(cuda):
    """Each computation has a block of its own, and no result is in one, whatever becomes of it."""
    text = """HloModule m
cond { s = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1 o = s32[] constant(1) j = s32[] add(i, o)
  p = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[8,8] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[8,8] dot(q, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,8]) tuple(j, r) }
ENTRY e { a = f32[8,8] parameter(0) z = s32[] constant(0)
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[8,8] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = (s32[], f32[8,8]) tuple(z, c) w = (s32[], f32[8,8]) while(s), condition=cond, body=body
  x = f32[8,8] get-tuple-element(w), index=1
  u = f32[8,8] transpose(b), dimensions={1,0} f = f32[64] reshape(b)
  ROOT t = (f32[8,8], f32[8,8], f32[64]) tuple(x, u, f) }"""
    program = hlo.compile(text)
    a = values(lamella.float32, 8, 8) / 4
    kept = []
    for n in range(4):
        kept.append((n, program((a + n / 8).cuda())))
    before = cuda.memory_allocated()
    for n, made in kept:
        for expected, got in zip(program(a + n / 8), made, strict=True):
            assert lamella.allclose(expected, got.cpu(), rtol=1e-4, atol=1e-5)
    del kept, made, got
    assert cuda.memory_allocated() == before - 12 * 512


# ---- Code for the host ---------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_COMPILER, reason="there is no compiler")
def test_a_program_of_the_device_has_no_code_for_the_host_before_it_runs_there(cuda):
    x = values(lamella.float32, 4, 8)
    on_device = x.cuda()
    text = """HloModule host_code
ENTRY e { a = f32[4,8] parameter(0) b = f32[4,8] exponential(a) ROOT c = f32[4,8] add(b, a) }"""

    def compiles(act):
        with lamella.profiler.profile() as profile:
            result = act()
        return result, [e.name for e in profile.events() if e.name.endswith("machine code")]

    program, names = compiles(lambda: hlo.compile(text))
    assert names == []
    (there,), names = compiles(lambda: program(on_device))
    assert names == []
    (here,), names = compiles(lambda: program(x))
    assert names == ["host_code: machine code"]
    assert compiles(lambda: program(x))[1] == []
    assert (here == there.cpu()).all().item()
