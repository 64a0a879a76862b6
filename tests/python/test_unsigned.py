"""Computation with uint16, uint32 and uint64: values equal NumPy's, including the largest."""

import pytest

import lamella

np = pytest.importorskip("numpy")

NAMES = ["uint16", "uint32", "uint64"]
BINARY = (
    "add sub mul floor_divide remainder fmod maximum minimum fmax fmin bitwise_and bitwise_or "
    "bitwise_xor eq ne lt le gt ge logical_and logical_or logical_xor gcd"
).split()
NUMPY = {
    "sub": "subtract",
    "mul": "multiply",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "bitwise_not": "invert",
    "amax": "max",
    "amin": "min",
}
UNARY = "neg abs sign square bitwise_not logical_not amax amin argmax argmin sort unique".split()


def operands(name):
    top = np.iinfo(name).max
    a = np.array([0, 1, 2, 7, top, top - 1, top // 2, top // 2 + 1, 100], dtype=name)
    b = np.array([1, 3, 2, top, top, 2, 5, top // 2, 7], dtype=name)
    return a, b


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", BINARY)
def test_binary(name, op):
    a, b = operands(name)
    want = getattr(np, NUMPY.get(op, op))(a, b)
    function = getattr(lamella, op)
    x, y = lamella.from_numpy(a), lamella.from_numpy(b)
    got = function(x, y)
    assert str(got.dtype) == f"lamella.{want.dtype}" and got.tolist() == want.tolist()
    wide = function(lamella.from_numpy(np.repeat(a, 2))[::2], y)  # with gaps
    assert wide.tolist() == want.tolist()
    many = function(x.repeat(200), y.repeat(200))
    assert many.tolist() == want.tolist() * 200
    assert (
        function(x[:, None], y).tolist() == getattr(np, NUMPY.get(op, op))(a[:, None], b).tolist()
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", UNARY)
def test_unary(name, op):
    a, _ = operands(name)
    got = getattr(lamella, op)(lamella.from_numpy(a))
    got = got[0] if isinstance(got, tuple) else got
    assert got.tolist() == getattr(np, NUMPY.get(op, op))(a).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_reductions(name):
    a, _ = operands(name)
    x = lamella.from_numpy(a.reshape(3, 3))
    for dim in (0, 1):
        assert x.amax(dim).tolist() == a.reshape(3, 3).max(dim).tolist()
        assert x.max(dim).indices.tolist() == a.reshape(3, 3).argmax(dim).tolist()
        assert x.argmin(dim).tolist() == a.reshape(3, 3).argmin(dim).tolist()
    low, high = lamella.aminmax(x)
    assert (low.item(), high.item()) == (a.min(), a.max())


@pytest.mark.parametrize("name", NAMES)
def test_others(name):
    a, b = operands(name)
    dtype = getattr(lamella, name)
    x, y = lamella.from_numpy(a.copy()), lamella.from_numpy(b)
    top = int(np.iinfo(name).max)
    assert x.clamp(y, lamella.full_like(y, 50).maximum(y)).tolist() == [
        min(max(int(i), int(j)), max(int(j), 50)) for i, j in zip(a, b)
    ]
    assert x.clamp(2, 100).tolist() == np.clip(a, 2, 100).tolist()
    assert (x << lamella.ones_like(x)).tolist() == (a << np.ones_like(a)).tolist()
    assert (x >> lamella.ones_like(x)).tolist() == (a >> np.ones_like(a)).tolist()
    assert (x**2).tolist() == (a**2).tolist() and (x ** y[:1]).tolist() == a.tolist()
    assert lamella.arange(3, 9, 2, dtype=dtype).tolist() == [3, 5, 7]
    assert (x.reshape(3, 3) @ y.reshape(3, 3)).tolist() == (
        a.reshape(3, 3) @ b.reshape(3, 3)
    ).tolist()
    assert (x @ y).item() == a @ b
    x += 1
    assert x.tolist() == (a + a.dtype.type(1)).tolist() and x[4].item() == 0
    assert (-lamella.tensor([1], dtype=dtype)).tolist() == [top]


PROMOTED = [
    ("uint8", "uint16", "uint16"),
    ("uint16", "int8", "int32"),
    ("uint16", "int16", "int32"),
    ("uint16", "int64", "int64"),
    ("uint32", "int32", "int64"),
    ("uint32", "uint64", "uint64"),
    ("uint64", "uint8", "uint64"),
    ("uint64", "float32", "float32"),
]


@pytest.mark.parametrize(("a", "b", "want"), PROMOTED)
def test_promotion(a, b, want):
    x, y = (lamella.tensor([3], dtype=getattr(lamella, name)) for name in (a, b))
    for one, other in ((x, y), (y, x)):
        total = one + other
        assert total.dtype is getattr(lamella, want) and total.tolist() == [6]


HIGH, MOST = 2**63, 2**64 - 1
LARGE = [
    (lambda x: lamella.full((2,), MOST, dtype=lamella.uint64), [MOST, MOST]),
    (lambda x: lamella.full((2,), HIGH, dtype=lamella.float64), [2.0**63] * 2),
    (lambda x: lamella.full_like(x[:1], HIGH + 1), [HIGH + 1]),
    (lambda x: lamella.full_like(x[:1].float(), MOST, dtype=lamella.uint64), [MOST]),
    (lambda x: x.new_full((1,), HIGH + 5), [HIGH + 5]),
    (lambda x: lamella.scalar_tensor(MOST, dtype=lamella.uint64)[None], [MOST]),
    (lambda x: x.clone().fill_(HIGH + 3), [HIGH + 3] * 3),
    (lambda x: lamella.arange(HIGH, HIGH + 3, dtype=lamella.uint64), [HIGH, HIGH + 1, HIGH + 2]),
    (lambda x: x == MOST, [False, False, True]),
    (lambda x: MOST != x, [True, True, False]),
    (lambda x: x < HIGH + 1, [True, True, False]),
    (lambda x: HIGH <= x, [False, True, True]),
    (lambda x: x + HIGH, [HIGH + 1, 0, HIGH - 1]),
    (lambda x: x - HIGH, [HIGH + 1, 0, HIGH - 1]),
    (lambda x: MOST - x, [MOST - 1, HIGH - 1, 0]),
    (lambda x: x * HIGH, [HIGH, 0, HIGH]),
    (lambda x: x // HIGH, [0, 1, 1]),
    (lambda x: x % (HIGH + 1), [1, HIGH, HIGH - 2]),
    (lambda x: MOST % x, [0, HIGH - 1, 0]),
    (lambda x: lamella.fmod(x, HIGH), [1, 0, HIGH - 1]),
    (lambda x: x & HIGH, [0, HIGH, HIGH]),
    (lambda x: x | HIGH, [HIGH + 1, HIGH, MOST]),
    (lambda x: x ^ MOST, [MOST - 1, HIGH - 1, 0]),
    (lambda x: x.clamp(2, HIGH), [2, HIGH, HIGH]),
    (lambda x: x.clamp(min=HIGH), [HIGH, HIGH, MOST]),
    (lambda x: lamella.add(x, x, alpha=HIGH), [HIGH + 1, HIGH, HIGH - 1]),
    (lambda x: lamella.addcmul(x, x, x, value=HIGH), [HIGH + 1, HIGH, HIGH - 1]),
    (lambda x: lamella.where(x > 1, x, MOST), [MOST, HIGH, MOST]),
    (lambda x: lamella.where(x > 1, HIGH, x), [1, HIGH, HIGH]),
    (lambda x: x.masked_fill(x == 1, MOST), [MOST, HIGH, MOST]),
    (lambda x: x.index_fill(0, lamella.tensor([0]), HIGH), [HIGH, HIGH, MOST]),
    (lambda x: x.scatter(0, lamella.tensor([2]), HIGH), [1, HIGH, HIGH]),
    (lambda x: lamella.isin(x, MOST), [False, False, True]),
    (lambda x: lamella.tensor([2.0**63], dtype=lamella.float64) == HIGH, [True]),
    (lambda x: lamella.ones(1, dtype=lamella.float64) + HIGH, [2.0**63]),
]


@pytest.mark.parametrize("case", range(len(LARGE)))
def test_ints_above_int64(case):
    function, expected = LARGE[case]
    x = lamella.tensor([1, HIGH, MOST], dtype=lamella.uint64)
    assert function(x).tolist() == expected
    assert x.tolist() == [1, HIGH, MOST] and x[2].item() == MOST and int(x[1]) == HIGH


def test_assigned_ints_above_int64():
    x = lamella.zeros(3, dtype=lamella.uint64)
    x[0], x[1:2] = MOST, HIGH
    x[lamella.tensor([2])] = HIGH + 1
    assert x.tolist() == [MOST, HIGH, HIGH + 1]
    y = lamella.zeros(1)
    y[0] = HIGH
    assert y.tolist() == [2.0**63]


def test_ints_that_no_tensor_holds():
    x = lamella.tensor([1], dtype=lamella.uint64)
    for function in (
        lambda: x == 2**64,
        lambda: lamella.full((1,), HIGH),
        lambda: x.sum(HIGH),
    ):
        with pytest.raises(OverflowError, match="expected an int that fits 64 bits"):
            function()


def test_no_promotion():
    x = lamella.tensor([1], dtype=lamella.uint64)
    text = "add: expected types with a common type, got uint64 and int64"
    with pytest.raises(RuntimeError, match=text):
        x + lamella.tensor([1])
