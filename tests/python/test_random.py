"""Random numbers: PyTorch's stream for the same seed, half-open ranges, and refusals."""

import math

import pytest

import lamella
from lamella import nn

torch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
SHAPES = [(5,), (16,), (17,), (40,), (3, 35), (2, 3, 4)]


def both(draw, seed=3):
    """draw(module) with each library, from the same seed; also compares the next numbers."""
    results = []
    for module in (torch, lamella):
        module.manual_seed(seed)
        results.append((draw(module), module.rand(3)))
    (expected, after), (got, got_after) = results
    assert got_after.tolist() == after.tolist()
    return torch.from_dlpack(got.detach()), expected.detach()


def same(draw, exact=True):
    got, expected = both(draw)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if exact:
        assert torch.equal(got, expected)
    else:
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_of_each_type(dtype, shape):
    def fill(name, *args):
        return lambda m: getattr(m.empty(shape, dtype=getattr(m, dtype)), name)(*args)

    same(fill("uniform_"))
    same(fill("uniform_", 0.1, 0.7))
    same(fill("uniform_", -3.0, 5.0))
    same(fill("random_"))
    same(fill("random_", 3, 100))
    same(fill("bernoulli_", 0.3))
    same(fill("geometric_", 0.2))
    # float32 is computed as PyTorch's vectors do; elsewhere the logarithm and the cosine of either
    # library may differ in the last bit.
    same(fill("normal_", 0.5, 2.0), exact=dtype == "float32")
    same(fill("log_normal_", 0.5, 0.7), exact=False)
    same(fill("exponential_", 1.5), exact=False)
    same(fill("cauchy_", 0.5, 2.0), exact=False)


@pytest.mark.parametrize("size", [511, 512, 623, 624, 625, 1249, 5000, (1 << 20) + 21])
def test_numbers_across_refills(size):
    """The state has 624 words, kernels draw 512 elements at a time and lock for 2^20."""
    for dtype in ("float32", "float64", "bfloat16") if size <= 5000 else ("float32",):

        def fill(name, *args, dtype=dtype):
            return lambda m: getattr(m.empty(size, dtype=getattr(m, dtype)), name)(*args)

        def after_one(name, *args, dtype=dtype):
            """Begins inside of a refill, at an odd word."""
            return lambda m: (m.rand(1), fill(name, *args, dtype=dtype)(m))[1]

        for begin in (fill, after_one):
            same(begin("uniform_", -1.0, 2.0))
            same(begin("random_", -7, 90))
            same(begin("bernoulli_", 0.7))
            same(begin("normal_"), exact=dtype == "float32")
            same(begin("exponential_", 0.5), exact=dtype == "bfloat16")
    chances = torch.linspace(0, 1, size)
    same(lambda m: m.bernoulli(chances if m is torch else lamella.from_numpy(chances.numpy())))
    same(lambda m: m.randint(5, 2**40, (size,)))
    same(lambda m: m.randperm(size))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "bool"])
def test_integers(dtype):
    def fill(name, *args):
        return lambda m: getattr(m.empty(40, dtype=getattr(m, dtype)), name)(*args)

    same(fill("random_"))
    same(fill("random_", 0, 2))
    same(fill("random_", 1, None))
    same(fill("bernoulli_", 0.5))
    if dtype != "bool":
        same(fill("geometric_", 0.1))
    if dtype == "int64":
        same(fill("random_", -(2**63), None))
        same(fill("random_", -(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    "layout",
    [
        lambda m: m.empty(4, 6).t(),
        lambda m: m.empty(2, 3, 4, 5).permute(0, 2, 3, 1),
        lambda m: m.empty(8, 12)[:, ::2],
        lambda m: m.empty(40)[3:37],
    ],
)
def test_layouts(layout):
    for name in ("uniform_", "normal_", "random_", "cauchy_"):
        same(lambda m, name=name: getattr(layout(m), name)(), exact=False)


def test_complex_numbers():
    same(lambda m: m.empty(20, dtype=m.complex64).uniform_(0, 1))
    same(lambda m: m.randn(20, dtype=m.complex128), exact=False)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges_are_half_open(dtype):
    lamella.manual_seed(0)
    kind = getattr(lamella, dtype)
    assert lamella.rand(300_000, dtype=kind).max().item() < 1
    numbers = lamella.empty(300_000, dtype=kind).uniform_(1, 2)
    assert numbers.min().item() >= 1 and numbers.max().item() < 2
    assert lamella.randn(300_000, dtype=kind).isfinite().all()


WEIGHTS = {
    "one row": [0.1, 0.0, 3.0, 0.4, 0.0],
    "rows": [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_multinomial(weights, dtype):
    def draw(count, replacement):
        return lambda m: m.multinomial(
            m.tensor(WEIGHTS[weights], dtype=getattr(m, dtype)), count, replacement
        )

    same(draw(50, True))
    same(draw(1, True))
    same(draw(1, False))
    same(draw(3, False))


def test_multinomial_writes_whole_numbers():
    weights = lamella.tensor([0.5, 0.5])
    with pytest.raises(RuntimeError) as caught:
        lamella.multinomial(weights, 2, out=lamella.empty(2))
    assert str(caught.value) == "multinomial: expected 'out' to have dtype int64, got float32"
    out = lamella.empty(0, dtype=lamella.int64)
    assert lamella.multinomial(weights, 2, out=out) is out
    assert sorted(out.tolist()) == [0, 1]


def test_multinomial_never_draws_a_weight_of_zero():
    lamella.manual_seed(0)
    for dtype in FLOATS:
        weights = lamella.tensor([0.0, 0.1, 0.0, 0.7, 0.0], dtype=getattr(lamella, dtype))
        drawn = lamella.multinomial(weights, 100_000, replacement=True)
        assert set(drawn.tolist()) == {1, 3}
        rows = lamella.multinomial(weights.expand(20_000, 5), 2)
        assert set(rows.flatten().tolist()) == {1, 3}


REFUSED = {
    "a negative weight": (lambda: lamella.multinomial(lamella.tensor([1.0, -1.0]), 1),
     "multinomial: expected the weights in 'self' to be finite and at least 0, got -1"),
    "a weight that is no number": (lambda: lamella.multinomial(lamella.tensor([1.0, math.nan]),
      2, True),
     "multinomial: expected the weights in 'self' to be finite and at least 0, got nan"),
    "an infinite weight": (lambda: lamella.multinomial(lamella.tensor([math.inf, 1.0]), 1),
     "multinomial: expected the weights in 'self' to be finite and at least 0, got inf"),
    "no weight above zero": (lambda: lamella.multinomial(lamella.tensor([[1.0, 1.0],
        [0.0, 0.0]]), 1),
     "multinomial: expected the weights in each row of 'self' to have a positive, finite sum, "
     "got 0"),
    "no categories": (lambda: lamella.multinomial(lamella.ones(3, 0), 1, True),
     "multinomial: expected between 1 and 2^24 categories, got 0"),
    "more draws than categories": (lambda: lamella.multinomial(lamella.ones(3), 4),
     "multinomial: expected 'num_samples' to be positive and no more than the categories, "
     "got 4 of 3"),
    "a range that ends before it begins": (lambda: lamella.empty(2).uniform_(1, 0),
     "uniform_: expected 'from' of at most 'to', got 1 and 0"),
    "a range that the type cannot hold": (lambda: lamella.empty(2,
      dtype=lamella.float16).uniform_(0, 1e6),
     "uniform_: expected 'from', 'to' and 'to' - 'from' within float16, got 0 and 1e+06"),
    "an integer that the type cannot hold": (lambda: lamella.empty(2,
      dtype=lamella.uint8).random_(-1, 5), "random_: expected 'from' within uint8, got -1"),
    "an end that the type cannot hold": (lambda: lamella.empty(2,
      dtype=lamella.int8).random_(0, 300), "random_: expected 'to' - 1 within int8, got 299"),
    "a permutation that the type cannot hold": (lambda: lamella.randperm(300,
      dtype=lamella.uint8), "randperm: expected 'n' of at most 256 for uint8, got 300"),
    "a bad deviation among many": (lambda: lamella.normal(lamella.zeros(2),
      lamella.tensor([1.0, -1.0])),
     "normal: expected every number of 'std' to be at least 0, got -1"),
    "log_normal_ of integers": (lambda: lamella.empty(2, dtype=lamella.int64).log_normal_(),
     "log_normal_: expected 'self' to be floating point, got int64"),
    "a chance of one": (lambda: lamella.empty(2).geometric_(1.0),
     "geometric_: expected 'p' in (0, 1), got 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, text = REFUSED[case]
    with pytest.raises((RuntimeError, NotImplementedError)) as error:
        call()
    assert str(error.value) == text


def test_geometric_ends_at_the_largest_integer():
    assert lamella.empty(4, dtype=lamella.uint8).geometric_(1e-9).tolist() == [255] * 4
    assert lamella.empty(4, dtype=lamella.int64).geometric_(1e-300).tolist() == [2**63 - 1] * 4


def test_rrelu():
    def draw(m):
        x = ((m.arange(21.0) - 10) / 5).reshape(3, 7)
        return m.nn.functional.rrelu(x, 0.2, 0.6, training=True)

    # The product is rounded once there, the slope and the product here.
    same(draw, exact=False)

    def gradient(m):
        x = ((m.arange(21.0) - 10) / 5).requires_grad_()
        m.nn.functional.rrelu(x, 0.2, 0.6, training=True).sum().backward()
        return x.grad

    same(gradient, exact=False)


INIT = {
    "trunc_normal_": lambda m, w: m.nn.init.trunc_normal_(w, std=0.02),
    "trunc_normal_, wide": lambda m, w: m.nn.init.trunc_normal_(w, mean=0.5, std=2.0, a=-1, b=1),
    "trunc_normal_, far": lambda m, w: m.nn.init.trunc_normal_(w, mean=0.0, std=1.0, a=1, b=2),
    "orthogonal_": lambda m, w: m.nn.init.orthogonal_(w, gain=1.5),
    "xavier_normal_": lambda m, w: m.nn.init.xavier_normal_(w),
    "kaiming_uniform_": lambda m, w: m.nn.init.kaiming_uniform_(w),
    "sparse_": lambda m, w: m.nn.init.sparse_(w, 0.3),
}


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (30, 40)], ids=str)
@pytest.mark.parametrize("name", INIT)
def test_init(name, shape):
    same(lambda m: INIT[name](m, m.empty(shape)), exact=False)


MODULES = {
    "dropout": lambda m: m.nn.functional.dropout(m.ones(100), 0.3),
    "alpha_dropout": lambda m: m.nn.functional.alpha_dropout(m.ones(100), 0.3, training=True),
    "dropout2d": lambda m: m.nn.functional.dropout2d(m.ones(2, 30, 3, 3), 0.3),
    "feature_alpha_dropout": lambda m: m.nn.functional.feature_alpha_dropout(
        m.ones(2, 30, 3, 3), 0.3, training=True
    ),
    "Linear": lambda m: m.nn.Linear(7, 5).weight,
    "Conv2d": lambda m: m.nn.Conv2d(3, 4, 3).bias,
    "Embedding": lambda m: m.nn.Embedding(7, 5).weight,
    "normal of tensors": lambda m: m.normal(m.zeros(3, 1), m.ones(1, 20)),
    "normal of means": lambda m: m.normal(m.arange(20.0), 2.0),
    "normal of deviations": lambda m: m.normal(1.0, m.arange(20.0)),
    "bernoulli": lambda m: m.bernoulli(m.linspace(0, 1, 30)),
    "randint_like": lambda m: m.randint_like(m.ones(30), 3, 90),
    "randn_like": lambda m: m.randn_like(m.ones(30)),
    "randperm": lambda m: m.randperm(1000),
}


@pytest.mark.parametrize("name", MODULES)
def test_functions(name):
    same(MODULES[name], exact=False)


def test_init_leaves_meta_tensors():
    w = lamella.empty(3, 4, device="meta")
    assert nn.init.trunc_normal_(w) is w and nn.init.orthogonal_(w) is w


def test_seeds_of_64_bits():
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError) as error:
            lamella.manual_seed(seed)
        assert str(error.value) == (
            f"manual_seed: expected 'seed' from -2**63 to 2**64 - 1, got {seed}"
        )
    assert lamella.manual_seed(-1).initial_seed() == 2**64 - 1


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(name):
    dtype = getattr(lamella, name)
    made = lamella.randint(3, 9, (1000,), dtype=dtype)
    assert made.dtype == dtype and set(made.tolist()) == set(range(3, 9))
    largest = min(2 ** (8 * dtype.itemsize) - 1, 2**63 - 1)
    drawn = lamella.empty(1000, dtype=dtype).random_().tolist()
    assert 0 <= min(drawn) and largest // 2 < max(drawn) <= largest
    with pytest.raises(RuntimeError, match=r"random_: expected 'from' within uint"):
        lamella.empty(1, dtype=dtype).random_(-1, 3)
