"""The array API namespace: its functions against NumPy's of the same name, and its own rules."""

import operator

import pytest

import lamella

np = pytest.importorskip("numpy", minversion="2.1")
xp = lamella.array_api

REAL = np.array([[1.5, -2.0, 0.0], [3.0, np.nan, -0.5]])
WHOLE = np.array([[3, 1, 2], [2, 2, 7]])
PAIR = np.array([1.0, 2.0])

# A name, arguments (arrays go to each library), keyword arguments.
ROWS = [
    *[(name, (np.abs(REAL),), {}) for name in "sqrt square negative sign floor exp log1p".split()],
    *[(name, (WHOLE,), {}) for name in "abs floor ceil trunc round sign square positive".split()],
    ("clip", (WHOLE, 2, 3), {}),
    ("clip", (REAL, None, 1.0), {}),
    ("where", (WHOLE > 2, WHOLE, 0), {}),
    ("add", (WHOLE, 2), {}),
    ("multiply", (2.0, REAL), {}),
    ("add", (np.ones(2, "float32"), np.float64(1.5).reshape(())), {}),
    ("bitwise_left_shift", (WHOLE, 1), {}),
    ("sum", (REAL[:, :1],), {}),
    ("sum", (WHOLE,), {"axis": (0, 1), "keepdims": True}),
    ("sum", (WHOLE,), {"axis": ()}),
    ("sum", (WHOLE.astype("uint8"),), {"axis": 0}),
    ("sum", (WHOLE.astype("int8"),), {}),
    ("prod", (WHOLE,), {"axis": (0, 1)}),
    ("prod", (WHOLE.astype("uint16"),), {}),
    ("mean", (PAIR,), {}),
    ("var", (WHOLE.astype("float64"),), {"axis": 1}),
    ("std", (PAIR,), {"correction": 1}),
    ("max", (WHOLE,), {"axis": 1}),
    ("min", (WHOLE,), {"axis": (0, 1)}),
    ("any", (WHOLE,), {"axis": 0}),
    ("all", (WHOLE > 1,), {"axis": (0, 1)}),
    ("argmax", (WHOLE,), {}),
    ("argmin", (WHOLE,), {"axis": 1, "keepdims": True}),
    ("count_nonzero", (REAL,), {"axis": 1}),
    ("nonzero", (WHOLE - 2,), {}),
    ("cumulative_sum", (WHOLE,), {"axis": 1, "include_initial": True}),
    ("cumulative_prod", (PAIR,), {}),
    ("diff", (WHOLE,), {"axis": 1, "n": 2}),
    ("diff", (WHOLE,), {"axis": 0, "prepend": WHOLE[:1]}),
    ("sort", (WHOLE,), {"axis": 0}),
    ("argsort", (WHOLE,), {"axis": 1, "stable": True}),
    ("searchsorted", (np.array([1, 2, 2, 5]), WHOLE), {"side": "right"}),
    ("isin", (WHOLE, np.array([2, 9])), {"invert": True}),
    ("unique_all", (WHOLE,), {}),
    ("unique_counts", (np.array([1 + 1j, 1, 1 + 1j]),), {}),
    ("unique_values", (np.array([], "float64"),), {}),
    ("concat", ([WHOLE, REAL],), {"axis": 1}),
    ("concat", ([WHOLE, PAIR],), {"axis": None}),
    ("stack", ([PAIR, PAIR],), {"axis": -1}),
    ("unstack", (WHOLE,), {"axis": 1}),
    ("expand_dims", (WHOLE,), {"axis": 1}),
    ("squeeze", (WHOLE[None],), {"axis": 0}),
    ("flip", (WHOLE,), {}),
    ("roll", (WHOLE, 1), {}),
    ("roll", (WHOLE, (1, -1)), {"axis": (0, 1)}),
    ("repeat", (WHOLE, 2), {"axis": 1}),
    ("repeat", (PAIR, np.array([1, 3])), {}),
    ("tile", (PAIR, (2, 2)), {}),
    ("moveaxis", (WHOLE, 0, 1), {}),
    ("permute_dims", (WHOLE, (1, 0)), {}),
    ("matrix_transpose", (WHOLE,), {}),
    ("broadcast_to", (PAIR, (3, 2)), {}),
    ("broadcast_arrays", (WHOLE, WHOLE[0]), {}),
    ("take", (WHOLE, np.array([-1, 0])), {"axis": 1}),
    ("take_along_axis", (WHOLE, np.array([[0], [-1]])), {"axis": 1}),
    ("matmul", (WHOLE, WHOLE.T.astype("float64")), {}),
    ("vecdot", (PAIR + 1j, PAIR), {}),
    ("tensordot", (WHOLE, WHOLE), {"axes": ((1,), (1,))}),
    ("linspace", (0, 1, 4), {"endpoint": False}),
    ("arange", (5, 1, -2), {}),
    ("arange", (3, 1), {}),
    ("eye", (3, 4), {"k": 1}),
    ("meshgrid", (PAIR, PAIR), {"indexing": "xy"}),
    ("tril", (WHOLE,), {"k": -1}),
    ("full", ((2, 2), 7), {}),
]


def given(value, made):
    if isinstance(value, np.ndarray):
        return made(value)
    if isinstance(value, list):
        return [given(v, made) for v in value]
    return value


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    assert isinstance(got, lamella.Tensor) and got.shape == want.shape
    # Made from nothing, floating-point arrays are float32 as everywhere in Lamella.
    kinds = {str(want.dtype), "float32" if want.dtype.kind == "f" else ""}
    assert str(got.dtype).partition(".")[2] in kinds
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_rows(row):
    name, args, kwargs = ROWS[row]
    made = lambda array: lamella.from_numpy(np.array(array))  # noqa: E731
    got = getattr(xp, name)(
        *[given(a, made) for a in args], **{k: given(v, made) for k, v in kwargs.items()}
    )
    same(got, getattr(np, name)(*args, **kwargs))


def test_arguments_as_numpy_takes_them():
    x = xp.asarray([1, 4, 9, 16])
    assert xp.diff(x, 2).tolist() == [2, 2]
    assert xp.diff(xp.reshape(x, (2, 2)), 1, 0).tolist() == [[8, 12]]
    (places,) = xp.where(x > 5)
    assert places.tolist() == [2, 3]


@pytest.mark.parametrize(
    "name",
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128".split(),
)
def test_dtypes_are_numpys(name):
    dtype = getattr(lamella, name)
    assert dtype.__numpy_dtype__ == np.dtype(name)
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4):
        assert np.dtype(dtype) == np.dtype(name) and np.empty(2, dtype=dtype).dtype == name


def test_dtypes_that_numpy_lacks():
    for dtype in (lamella.bfloat16, lamella.complex32, lamella.float8_e4m3fn):
        assert not hasattr(dtype, "__numpy_dtype__")
        with pytest.raises(TypeError):
            np.dtype(dtype)


def test_what_differs_from_operators():
    inf = lamella.tensor([float("inf"), 1.0, -1.0])
    by = lamella.tensor([1.0, float("inf"), float("inf")])
    assert xp.floor_divide(inf, by).tolist() == [float("inf"), 0.0, 0.0]
    assert xp.signbit(xp.floor_divide(inf, by)).tolist() == [False, False, True]
    zero = xp.remainder(lamella.tensor([-0.0, 0.0]), lamella.tensor([1.0, -1.0]))
    assert xp.signbit(zero).tolist() == [False, True]
    wide = xp.add(lamella.ones(2), lamella.tensor(1.0, dtype=lamella.float64))
    assert wide.dtype is lamella.float64
    assert xp.isnan(xp.sign(lamella.tensor([float("nan")]))).tolist() == [True]
    assert xp.expm1(lamella.tensor([complex("-inf+infj")])).tolist() == [-1 + 0j]
    large = lamella.tensor([1, 2**63 + 1], dtype=lamella.uint64)
    assert xp.searchsorted(large, large).tolist() == [0, 1]
    assert xp.full((1,), 2**64 - 1, dtype=xp.uint64).tolist() == [2**64 - 1]


@pytest.mark.parametrize("number", [2**63, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("name", ["int64", "int8", "uint8", "uint64"])
def test_comparisons_with_large_numbers(name, number):
    info = np.iinfo(name)
    numbers = np.array([0, 1, info.max, info.min, info.max - 1], name)
    x = lamella.from_numpy(numbers)
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        assert compare(x, number).tolist() == compare(numbers, number).tolist()
        assert compare(number, x).tolist() == compare(number, numbers).tolist()
    for function in ("less", "greater_equal", "not_equal"):
        expected = getattr(np, function)(numbers, number).tolist()
        assert getattr(lamella, function)(x, number).tolist() == expected


def test_dtypes():
    assert xp.result_type(xp.uint16, xp.int16) is xp.int32
    assert xp.result_type(lamella.ones(1), 1.5) is xp.float32
    assert xp.result_type(xp.int64, 1j) is xp.complex64
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.uint64, xp.int64)
    assert xp.isdtype(xp.uint8, ("signed integer", "unsigned integer"))
    assert not xp.isdtype(xp.float32, "integral") and xp.isdtype(xp.bool, xp.bool)
    assert xp.finfo(lamella.ones(1)).dtype is xp.float32 and xp.iinfo(xp.int8).max == 127
    assert xp.astype(lamella.ones(1), xp.int8).dtype is xp.int8
    with pytest.raises(TypeError, match="got lamella.uint64 and lamella.int64"):
        xp.result_type(xp.uint64, xp.int64)
    with pytest.raises(ValueError, match="^isdtype: expected a kind of dtypes, got 'number'$"):
        xp.isdtype(xp.int8, "number")


def test_namespace():
    x = lamella.ones(2, 3)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    text = "^__array_namespace__: expected a version up to 2025.12, got '2030.12'$"
    with pytest.raises(ValueError, match=text):
        x.__array_namespace__(api_version="2030.12")
    assert x.to_device("cpu").device == x.device and xp.__array_api_version__ == "2025.12"
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() == x.device
    assert info.default_dtypes()["integral"] is xp.int64
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert x.device in info.devices()
    assert set(xp.__all__) >= {"add", "linalg", "fft", "unique_all", "float32"}


def test_creation_copies():
    x = lamella.arange(3)
    assert xp.asarray(x) is x and xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    array = np.arange(3)
    assert xp.asarray(array).data_ptr() == array.ctypes.data
    assert xp.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert xp.asarray(array[::-1]).tolist() == [2, 1, 0]
    assert xp.asarray([[1, 2.5]]).dtype is xp.float32
    for value, kwargs in (([1], {"copy": False}), (x, {"copy": False, "dtype": xp.float32})):
        with pytest.raises(ValueError, match="^asarray: expected copy to be allowed"):
            xp.asarray(value, **kwargs)
    assert xp.from_dlpack(array, copy=True).tolist() == [0, 1, 2]


def test_linalg():
    a = lamella.tensor([[4.0, 1.0], [1.0, 3.0]])
    same(xp.linalg.solve(a, lamella.ones(2)), np.linalg.solve(a.numpy(), np.ones(2, "float32")))
    assert xp.linalg.eigh(a).eigenvalues.shape == (2,) and xp.linalg.svd(a).Vh.shape == (2, 2)
    assert xp.linalg.trace(lamella.ones(2, 2, dtype=lamella.int8)).dtype is xp.int64
    assert xp.linalg.vector_norm(a, axis=(0, 1), keepdims=True).shape == (1, 1)
    assert xp.linalg.matrix_rank(a).item() == 2 and xp.linalg.cross(
        lamella.tensor([1.0, 0, 0]), lamella.tensor([0.0, 1, 0])
    ).tolist() == [0, 0, 1]


def test_operators_and_infinite_numbers():
    inf = float("inf")
    pairs = [
        (inf, 1.0),
        (inf, -1.0),
        (-inf, 2.5),
        (1.0, inf),
        (-1.0, inf),
        (1.0, -inf),
        (-0.0, inf),
    ]
    x, y = (lamella.tensor(column) for column in zip(*pairs))
    want = [inf, -inf, -inf, 0.0, -0.0, -0.0, -0.0]
    for got in (x // y, lamella.floordiv(x, y), x.double() // y.double(), x.half() // y.half()):
        assert repr(got.tolist()) == repr(want)
    assert (
        repr((x // 2).tolist()[:2]) == "[inf, inf]"
        and repr((-1.0 // y).tolist()[3:5]) == "[-0.0, -0.0]"
    )
    z = x.clone()
    z //= y
    assert repr(z.tolist()) == repr(want)
    # Elsewhere it is floor_divide(), which is PyTorch's.
    a, b = lamella.randn(500), lamella.randn(500)
    assert lamella.equal(a // b, lamella.floor_divide(a, b))
    assert lamella.equal((a * 9).int() // 2, lamella.floor_divide((a * 9).int(), 2))
    assert lamella.isnan(lamella.floor_divide(x, y)).tolist()[:3] == [True] * 3
    with pytest.raises(RuntimeError) as caught:
        lamella.tensor([1]) // 0
    assert str(caught.value) == "floordiv: expected integers in 'other' other than zero, got 0"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_of_remainders_have_the_sign_of_the_divisor(dtype):
    dtype = getattr(lamella, dtype)
    x = lamella.tensor([-0.0, 0.0, -4.0, 4.0, -4.0, 6.0] * 5, dtype=dtype)
    y = lamella.tensor([1.0, -1.0, 2.0, -2.0, -2.0, 3.0] * 5, dtype=dtype)
    compiled = lamella.compile(lambda a, b: lamella.remainder(a, b))
    for got in (x % y, lamella.remainder(x, y), compiled(x, y), lamella.fmod(y, y) % y):
        assert not got.any() and lamella.equal(lamella.signbit(got), y < 0)
    assert lamella.signbit(x % -1).all() and not lamella.signbit(x % 1).any()


def test_asarray_requires_gradients_as_asked():
    x = lamella.ones(2, requires_grad=True)
    assert lamella.asarray(x) is x
    for given in (x, x * 2):
        made = lamella.asarray(given, requires_grad=False)
        assert not made.requires_grad and made.data_ptr() == given.data_ptr()
    assert lamella.asarray([1.0], requires_grad=True).requires_grad
    assert not lamella.asarray([1.0]).requires_grad
