"""NumPy's arrays and functions beside tensors, and bfloat16 by ml_dtypes."""

import pickle

import pytest

import lamella

np = pytest.importorskip("numpy")

OPERATORS = [
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b", "a @ b", "a == b", "a < b",
    "a >= b", "a != b",
]  # fmt: skip


@pytest.mark.parametrize("text", OPERATORS)
def test_operators(text):
    a, b = np.arange(1.0, 5).reshape(2, 2), np.arange(2.0, 6).reshape(2, 2)
    want = eval(text, {"a": a, "b": b})
    for x, y in ((a, lamella.from_numpy(b)), (lamella.from_numpy(a), b)):
        got = eval(text, {"a": x, "b": y})
        assert isinstance(got, lamella.Tensor) and np.array_equal(got.numpy(), want)


def test_shapes_of_tensors_that_require_gradients():
    x = lamella.ones(2, 3, requires_grad=True)
    assert np.shape(x) == (2, 3) and np.ndim(x * 2) == 2 and np.size(x) == 6
    assert np.shape(x.detach()) == (2, 3) and np.size(x.detach(), 1) == 3
    with pytest.raises(RuntimeError, match="expected a tensor that does not require grad"):
        np.concatenate([x, x])


def test_operators_edges():
    x = lamella.ones(3)
    x += np.ones(3, dtype="float32")
    assert x.tolist() == [2, 2, 2]
    assert (np.array(2.0) * x).tolist() == [4, 4, 4] and (np.float64(2) * x).tolist() == [4, 4, 4]
    with pytest.raises(ValueError, match="expected strides of at least 0; copy the array first"):
        np.ones((2, 3), dtype="float32")[::-1] + x
    array = np.ones(3)
    array += x.double()
    assert array.tolist() == [3, 3, 3] and isinstance(array, lamella.Tensor)
    with pytest.raises(TypeError):
        x + np.array(["a", "b", "c"])
    y = lamella.ones(3, requires_grad=True)
    (y * np.arange(3, dtype="float32")).sum().backward()
    assert y.grad.tolist() == [0, 1, 2]


def test_functions_give_arrays():
    x = lamella.arange(6.0).reshape(2, 3)
    assert np.max(x) == 5 and np.var(x) == np.var(x.numpy())
    for got in (
        np.max(x, axis=0),
        np.sum(x, axis=0),
        np.concatenate([x, x]),
        np.where(x > 2, x, 0),
    ):
        assert isinstance(got, np.ndarray)
    assert np.max(x, axis=0).tolist() == [3, 4, 5]
    assert np.linalg.norm(x) == np.linalg.norm(x.numpy())
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2
    # Functions of each element compute in NumPy, too, and give tensors, as with PyTorch.
    assert isinstance(np.exp(x), lamella.Tensor)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = lamella.tensor([1.5, -2.0, 0.25]).to(getattr(lamella, name))
    array = x.numpy()
    assert array.dtype == getattr(ml_dtypes, name) and array.astype("float32").tolist() == [
        1.5, -2.0, 0.25,
    ]  # fmt: skip
    for made in (lamella.from_numpy, lamella.as_tensor, lamella.tensor):
        back = made(array)
        assert back.dtype is x.dtype and back.float().tolist() == [1.5, -2.0, 0.25]
    assert lamella.from_numpy(array).view(lamella.uint8).data_ptr() == x.data_ptr()


def unaligned(dtype="int32"):
    return np.frombuffer(bytearray(13), dtype=np.uint8)[1:].view(dtype)


def test_unaligned():
    array = unaligned()
    array[...] = [1, 2, 3]
    assert not array.flags.aligned
    with pytest.warns(UserWarning, match="elements that are not aligned; the tensor has a copy"):
        assert lamella.from_numpy(array).tolist() == [1, 2, 3]
    for made in (lamella.as_tensor, lamella.tensor, lamella.array_api.asarray):
        assert made(array).tolist() == [1, 2, 3]
    with pytest.warns(UserWarning, match="elements that are not aligned; the tensor has a copy"):
        assert lamella.from_dlpack(array).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="expected data aligned to its elements of 4 bytes"):
        lamella.from_dlpack(array, copy=False)
    assert (lamella.zeros(3, dtype=lamella.int32) + array).tolist() == [1, 2, 3]


PUBLIC = {
    "dtype": lambda: lamella.bfloat16,
    "device": lambda: lamella.device("cpu"),
    "layout": lambda: lamella.strided,
    "memory_format": lambda: lamella.channels_last,
    "Size": lambda: lamella.Size([2, 3]),
    "Tensor": lambda: lamella.arange(3),
    "bfloat16": lambda: lamella.ones(2, dtype=lamella.bfloat16),
    "Parameter": lambda: lamella.nn.Parameter(lamella.ones(2)),
    "Generator": lambda: lamella.Generator().manual_seed(3),
    "Linear": lambda: lamella.nn.Linear(2, 3),
    "finfo": lambda: lamella.finfo(lamella.float32),
    "iinfo": lambda: lamella.iinfo(lamella.int8),
    "array API finfo": lambda: lamella.array_api.finfo(lamella.float32),
    "unique_counts": lambda: lamella.array_api.unique_counts(lamella.ones(3)),
    "function": lambda: lamella.array_api.add,
    "operator": lambda: lamella.add,
}


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickles(name, protocol):
    value = PUBLIC[name]()
    back = pickle.loads(pickle.dumps(value, protocol))
    assert type(back) is type(value)
    if name == "Generator":
        assert lamella.rand(3, generator=back).tolist() == lamella.rand(3, generator=value).tolist()
    else:
        assert repr(back) == repr(value)
