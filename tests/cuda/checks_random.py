"""Random numbers of the device: PyTorch's streams on CUDA, against Philox4x32-10 in Python.

The Box-Muller transform and logarithms of the device are fast ones, so normal numbers and those
made by logarithms are compared within a tolerance."""

import math

import numpy
import pytest

import lamella
import lamella.nn.functional as F

THREADS = 4 * 2048  # that the stand-in's device runs at once: 4 multiprocessors
MASK = 0xFFFFFFFF


def philox(counter, key):
    """J. Salmon et al., 2011, figure and constants of Philox4x32-10."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & MASK, (a >> 32) ^ c[3] ^ k1, a & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c


def test_philox_itself():
    """The known answers that Random123 publishes for it."""
    assert philox([0] * 4, (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([MASK] * 4, (MASK, MASK)) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert philox(pi, (0xA4093822, 0x299F31D0)) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def words(seed, subsequence, index):
    counter = [index & MASK, index >> 32, subsequence & MASK, subsequence >> 32]
    return philox(counter, (seed & MASK, seed >> 32))


def threads_of(n):
    return min(-(-n // 256) * 256, THREADS)


def draws(n, each, seed, offset, make):
    """Element i of n, each draw of a thread giving `each` that lie a launch's threads apart."""
    threads, made = threads_of(n), {}
    result = []
    for i in range(n):
        thread, step = i % threads, i // threads
        key = (thread, step // each)
        if key not in made:
            made[key] = make(words(seed, thread, offset // 4 + key[1]))
        result.append(made[key][step % each])
    return result


def units(w):
    return [numpy.float32(x) * numpy.float32(2**-32) + numpy.float32(2**-33) for x in w]


def wide_units(w):
    return [(w[k] ^ (w[k + 1] << 21)) * 2.0**-53 + 2.0**-54 for k in (0, 2)]


def state(cuda):
    return numpy.frombuffer(bytes(cuda.get_rng_state().tolist()), dtype="<u8").tolist()


@pytest.mark.parametrize("n", [1, 5, 300, 20000])
def test_uniform(cuda, n):
    cuda.manual_seed(12345)
    x = lamella.rand(n, device="cuda")
    expected = [float(v) if v != 1 else 0.0 for v in draws(n, 4, 12345, 0, units)]
    assert x.tolist() == expected
    assert state(cuda) == [12345, 4 * ((n - 1) // (threads_of(n) * 4) + 1)]
    offset = state(cuda)[1]
    y = lamella.empty(n, dtype=lamella.float64, device="cuda").uniform_(-1, 3)
    assert y.tolist() == [
        math.fma(u, 4, -1) if hasattr(math, "fma") else u * 4 - 1
        for u in draws(n, 2, 12345, offset, wide_units)
    ]
    assert cuda.fallbacks() == {}


def test_uniform_of_halves(cuda):
    cuda.manual_seed(3)
    x = lamella.empty(500, dtype=lamella.bfloat16, device="cuda").uniform_(1, 2)
    numbers = [float(u) + 1.0 for u in draws(500, 4, 3, 0, units)]
    rounded = lamella.tensor(numbers, dtype=lamella.float32).to(lamella.bfloat16)
    assert x.tolist() == lamella.where(rounded == 2, 1, rounded).tolist()
    assert float(x.max()) < 2


def normals(w):
    found = []
    for a, b in (w[:2], w[2:]):
        radius = math.sqrt(-2 * math.log(float(units([a])[0])))
        angle = (b + 0.5) * 2.0**-32 * 2 * math.pi
        found += [radius * math.sin(angle), radius * math.cos(angle)]
    return found


def wide_normals(w):
    u, v = wide_units(w)
    radius = math.sqrt(-2 * math.log(u))
    return [radius * math.sin(2 * math.pi * v), radius * math.cos(2 * math.pi * v)]


def test_normal(cuda):
    cuda.manual_seed(7)
    x = lamella.randn(20000, device="cuda")
    assert numpy.allclose(x.tolist(), draws(20000, 4, 7, 0, normals), atol=2e-5)
    cuda.manual_seed(7)
    y = lamella.empty(900, dtype=lamella.float64, device="cuda").normal_(2, 3)
    expected = [2 + 3 * v for v in draws(900, 2, 7, 0, wide_normals)]
    assert numpy.allclose(y.tolist(), expected, rtol=0, atol=1e-12)
    z = lamella.randn(4, dtype=lamella.complex64, device="cuda")
    assert z.dtype == lamella.complex64 and cuda.fallbacks() == {}


@pytest.mark.parametrize("dtype", [lamella.int64, lamella.uint8, lamella.int32, lamella.float32])
def test_integers(cuda, dtype):
    cuda.manual_seed(99)
    x = lamella.randint(2, 90, (3000,), dtype=dtype, device="cuda")
    assert x.tolist() == [w % 88 + 2 for w in draws(3000, 4, 99, 0, list)]
    assert state(cuda)[1] == 4

    def wide(w):
        return [w[0] << 32 | w[1], w[2] << 32 | w[3]]

    if dtype == lamella.int64:
        y = lamella.randint(-5, 2**40, (3000,), device="cuda")
        assert y.tolist() == [w % (2**40 + 5) - 5 for w in draws(3000, 2, 99, 4, wide)]
    cuda.manual_seed(99)
    z = lamella.empty(100, dtype=dtype, device="cuda").random_()
    end = {lamella.uint8: 2**8, lamella.int32: 2**31, lamella.float32: 2**24 + 1}.get(dtype)
    expected = [w % 2**63 for w in draws(100, 2, 99, 0, wide)]
    if end is not None:
        expected = [w % end for w in draws(100, 4, 99, 0, list)]
    assert z.tolist() == expected and cuda.fallbacks() == {}


def test_bernoulli(cuda):
    cuda.manual_seed(5)
    for dtype in (lamella.float32, lamella.bool, lamella.int32):
        offset = state(cuda)[1]
        x = lamella.empty(1000, dtype=dtype, device="cuda").bernoulli_(0.3)
        assert x.tolist() == [u < numpy.float32(0.3) for u in draws(1000, 4, 5, offset, units)]
    offset = state(cuda)[1]
    chances = lamella.rand(1003).cuda()
    x = lamella.bernoulli(chances)
    expected = []
    for i, p in enumerate(chances.tolist()):
        expected.append(float(units(words(5, i // 4, offset // 4))[i % 4]) <= p)
    assert x.tolist() == expected and state(cuda)[1] == offset + 12
    assert cuda.fallbacks() == {}


def test_distributions_by_logarithms(cuda):
    n = 2000

    def drawn(fill):
        cuda.manual_seed(11)
        return fill(lamella.empty(n, device="cuda")).tolist()

    u = [float(v) for v in draws(n, 4, 11, 0, units)]
    assert numpy.allclose(
        drawn(lambda x: x.exponential_(2)), [-math.log(v) / 2 for v in u], rtol=1e-4, atol=1e-6
    )
    z = draws(n, 4, 11, 0, normals)
    assert numpy.allclose(
        drawn(lambda x: x.log_normal_(0, 0.5)), numpy.exp(numpy.array(z) / 2), rtol=1e-4
    )
    middle = [(a, b) for a, b in zip(drawn(lambda x: x.cauchy_(1, 2)), u) if 0.01 < b < 0.99]
    for a, b in middle:
        assert a == pytest.approx(1 + 2 * math.tan(math.pi * (b - 0.5)), rel=1e-3, abs=1e-4)
    geometric = numpy.ceil(numpy.log(u) / math.log1p(-0.25))
    assert numpy.mean(numpy.array(drawn(lambda x: x.geometric_(0.25))) == geometric) > 0.999
    assert min(drawn(lambda x: x.exponential_())) > 0 and cuda.fallbacks() == {}


@pytest.mark.parametrize("n,side", [(4096, 4), (1002, 2), (1001, 1)])
@pytest.mark.parametrize("dtype", [lamella.float32, lamella.bfloat16, lamella.float64], ids=str)
def test_dropout(cuda, n, side, dtype):
    """PyTorch's layout: a thread takes neighbours where the size allows."""
    cuda.manual_seed(21)
    x = lamella.randn(n, dtype=dtype).cuda().requires_grad_()
    result, mask = lamella.native_dropout(x, 0.25, True)
    if side == 1:
        numbers = draws(n, 4, 21, 0, units)
    else:
        threads = threads_of(n)
        numbers = []
        for i in range(n):
            piece = i // side
            numbers.append(units(words(21, piece % threads, piece // threads))[i % side])
    expected = [bool(u < 0.75) for u in numbers]
    assert mask.tolist() == expected
    scale = numpy.float32(1 / 0.75) if dtype != lamella.float64 else 1 / 0.75
    wide = x.detach().cpu().to(lamella.float64 if dtype == lamella.float64 else lamella.float32)
    kept = (wide * lamella.tensor(expected) * float(scale)).to(dtype)
    assert result.tolist() == kept.tolist()
    result.sum().backward()
    assert (x.grad != 0).tolist() == expected
    cuda.manual_seed(21)
    again = F.dropout(x, 0.25, training=True)
    assert again.tolist() == result.tolist() and again.grad_fn is not None
    assert not {name for name in cuda.fallbacks() if "dropout" in name or "bernoulli" in name}


def test_dropout_without_drawing(cuda):
    cuda.manual_seed(1)
    x = lamella.randn(10).cuda()
    assert lamella.native_dropout(x, 0.5, False)[0].tolist() == x.tolist()
    assert lamella.native_dropout(x, 1.0, True)[0].tolist() == [0] * 10
    assert state(cuda) == [1, 0]


def test_strided_results(cuda):
    """Numbers follow memory where it is dense, and are copied elsewhere."""
    cuda.manual_seed(4)
    dense = lamella.empty(30, 20, device="cuda").t().uniform_()
    cuda.manual_seed(4)
    assert dense.t().flatten().tolist() == lamella.rand(600, device="cuda").tolist()
    holes = lamella.zeros(10, 10, device="cuda")
    version = holes._version
    holes[:, ::2].uniform_()
    assert holes._version > version and float(holes[:, 1::2].sum()) == 0
    assert (holes[:, ::2] > 0).all()


def test_states(cuda):
    cuda.manual_seed(42)
    first = lamella.rand(10, device="cuda")
    kept = cuda.get_rng_state()
    assert kept.numel() == 16 and kept.dtype == lamella.uint8 and state(cuda) == [42, 4]
    second = lamella.rand(10, device="cuda")
    assert second.tolist() != first.tolist()
    cuda.set_rng_state(kept)
    assert lamella.rand(10, device="cuda").tolist() == second.tolist()
    own = lamella.Generator("cuda")
    own.manual_seed(42)
    assert lamella.rand(10, device="cuda", generator=own).tolist() == first.tolist()
    copy = own.clone_state()
    assert (
        lamella.rand(10, device="cuda", generator=own).tolist()
        == lamella.rand(10, device="cuda", generator=copy).tolist()
    )
    with pytest.raises(RuntimeError, match="set_state: expected a state of 16 bytes, got 5056"):
        own.set_state(lamella.get_rng_state())
    bad = kept.clone()
    bad[8] = 3
    with pytest.raises(
        RuntimeError, match="set_state: expected an offset that is a multiple of 4, got 3"
    ):
        own.set_state(bad)
    with pytest.raises(
        RuntimeError, match="uniform_: expected 'generator' on cuda:0, got one on cpu"
    ):
        lamella.empty(3, device="cuda").uniform_(generator=lamella.Generator())
    with pytest.raises(
        RuntimeError, match="uniform_: expected 'from' of at most 'to', got 2 and 1"
    ):
        lamella.empty(3, device="cuda").uniform_(2, 1)
    # An operator that runs on the CPU draws a seed from the device's generator.
    cuda.set_rng_state(kept)
    a = lamella.poisson(lamella.full((20,), 5.0, device="cuda"))
    cuda.set_rng_state(kept)
    b = lamella.poisson(lamella.full((20,), 5.0, device="cuda"))
    assert a.tolist() == b.tolist() and cuda.fallbacks() and state(cuda) == [42, 8]
