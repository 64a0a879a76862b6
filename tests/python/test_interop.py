"""Memory shared with NumPy, PyTorch and Python, and pickles and copies."""

import copy
import gc
import pickle
import weakref

import pytest

import lamella


def test_buffers_without_numpy():
    data = bytearray(16)
    x = lamella.frombuffer(data, dtype=lamella.int32)
    x[1] = 258
    assert data[4:6] == b"\x02\x01" and x.tolist() == [0, 258, 0, 0]
    assert lamella.frombuffer(data, dtype=lamella.uint8, count=2, offset=4).tolist() == [2, 1]
    view = memoryview(x)
    assert view.format == "i" and view.tolist() == [0, 258, 0, 0] and not view.readonly
    with pytest.raises(BufferError):
        data.append(1)
    del x, view
    gc.collect()
    data.append(1)
    with pytest.raises(ValueError, match="expected the bytes after 'offset' to be whole elements"):
        lamella.frombuffer(data, dtype=lamella.int32)
    with pytest.raises(BufferError, match="expected a dtype that buffers have, got bfloat16"):
        memoryview(lamella.tensor([1.0], dtype=lamella.bfloat16))
    fixed = b"abc"
    text = "frombuffer: the buffer is read-only; the tensor has a copy of it"
    with pytest.warns(UserWarning, match=f"^{text}$"):
        x = lamella.frombuffer(fixed, dtype=lamella.uint8)
    x[0] = 0
    assert fixed == b"abc" and x.tolist() == [0, 98, 99]
    text = "frombuffer: the buffer has elements that are not aligned; the tensor has a copy of it"
    with pytest.warns(UserWarning, match=f"^{text}$"):
        x = lamella.frombuffer(bytearray(b"\0\1\0\0\0"), dtype=lamella.int32, offset=1)
    assert x.tolist() == [1]


def test_arrays():
    import array

    x = lamella.as_tensor(array.array("d", [1.5, 2.5]))
    assert x.dtype is lamella.float64 and x.tolist() == [1.5, 2.5]
    assert lamella.tensor(memoryview(bytearray(b"ab"))).tolist() == [97, 98]


NUMPY_TYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_both_ways(name):
    np = pytest.importorskip("numpy")
    array = np.arange(6).reshape(2, 3).astype(name)
    x = lamella.from_numpy(array)
    assert x.dtype is getattr(lamella, name) and x.data_ptr() == array.ctypes.data
    back = x.numpy()
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)
    turned = lamella.from_numpy(array.T)
    assert turned.stride() == (1, 3) and turned.numpy().strides == array.T.strides
    np.testing.assert_array_equal(np.asarray(turned), array.T)
    assert lamella.tensor(array).data_ptr() != array.ctypes.data
    assert lamella.as_tensor(array).data_ptr() == array.ctypes.data


def test_numpy_edges():
    np = pytest.importorskip("numpy")
    assert lamella.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert lamella.from_numpy(np.array(2.5)).shape == ()
    assert lamella.tensor(2.5).numpy().shape == ()
    assert lamella.empty(0, 2).numpy().shape == (0, 2)
    with pytest.raises(ValueError, match="expected strides of at least 0"):
        lamella.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError, match="native byte order"):
        lamella.from_numpy(np.arange(3, dtype=">i4"))
    with pytest.raises(TypeError):
        lamella.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError, match="from_numpy: expected a numpy.ndarray, got list"):
        lamella.from_numpy([1])
    x = lamella.tensor([1.5])
    assert np.asarray(x, dtype="int32").tolist() == [1]
    assert np.array(x, copy=True).ctypes.data != x.data_ptr()
    assert lamella.tensor([np.float32(1), np.float32(2)]).dtype is lamella.float32
    assert (np.ones(1) + x.numpy()).tolist() == [2.5]


def test_memory_outlives_its_maker():
    np = pytest.importorskip("numpy")
    array = np.arange(1000.0)
    watched = weakref.ref(array)
    x = lamella.from_numpy(array)[10:20]
    del array
    gc.collect()
    assert watched() is not None and x[0].item() == 10.0
    back = x.numpy()
    del x
    gc.collect()
    assert back[5] == 15.0
    del back
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize("lazy", [lamella.conj, lamella._neg_view])
def test_numpy_of_lazy_elements(lazy):
    numbers = lazy(lamella.tensor([1 + 2j, 3 - 1j]))
    with pytest.raises(RuntimeError) as error:
        numbers.numpy()
    assert str(error.value) == (
        "numpy: expected resolved elements, got a lazily conjugated or negated tensor; "
        "use numpy(force=True)"
    )
    assert numbers.numpy(force=True).tolist() == numbers.tolist()


def test_import_needs_no_numpy():
    import subprocess
    import sys

    code = (
        "import sys, lamella; x = lamella.tensor([1.]) + 1; repr(x); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


TORCH_TYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_torch_both_ways(name):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    ours = lamella.from_dlpack(theirs)
    assert ours.dtype is getattr(lamella, name) and ours.data_ptr() == theirs.data_ptr()
    assert ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours.T)
    assert back.dtype == theirs.dtype and back.data_ptr() == theirs.data_ptr()
    assert back.tolist() == theirs.T.tolist()
    assert repr(ours).replace("lamella", "torch") == repr(theirs)


def test_dlpack_arguments():
    x = lamella.tensor([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert 'capsule object "dltensor"' in repr(x.__dlpack__())
    capsule = x.__dlpack__()
    y = lamella.from_dlpack(capsule)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="expected a capsule that was not used before"):
        lamella.from_dlpack(capsule)
    assert lamella.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert lamella.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="expected 'stream' to be None"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="from_dlpack: expected an object with __dlpack__, got int"):
        lamella.from_dlpack(1)


def test_asarray():
    x = lamella.tensor([1.0])
    assert lamella.asarray(x) is x
    assert lamella.asarray(x, copy=True) is not x
    assert lamella.asarray([1, 2], dtype=lamella.float16).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="because of copy=False"):
        lamella.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="because of copy=False"):
        lamella.asarray(x, dtype=lamella.int64, copy=False)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    x = lamella.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = lamella.tensor([1, 2], dtype=lamella.bfloat16)
    a, b, c, d = pickle.loads(pickle.dumps((x, x.T, x[1], y), protocol))
    assert a.tolist() == x.tolist() and b.stride() == (1, 2) and c.storage_offset() == 2
    assert d.dtype is lamella.bfloat16 and d.tolist() == [1.0, 2.0]
    a[1, 0] = 9
    assert b[0, 1].item() == 9 and c[0].item() == 9 and x[1, 0].item() == 3
    meta = pickle.loads(pickle.dumps(lamella.empty(2, 3, device="meta"), protocol))
    assert meta.is_meta and meta.shape == (2, 3)


def test_pickle_of_values():
    for value in (
        lamella.float32,
        lamella.bool,
        lamella.device("cuda:1"),
        lamella.strided,
        lamella.channels_last,
        lamella.Size([1, 2]),
        lamella.add,
        lamella.ops.aten.add.Tensor,
    ):
        back = pickle.loads(pickle.dumps(value))
        assert back == value or repr(back) == repr(value)
    assert pickle.loads(pickle.dumps(lamella.float32)) is lamella.float32
    assert pickle.loads(pickle.dumps(lamella.Tensor.add)) is lamella.Tensor.add


def test_copies():
    x = lamella.tensor([1.0, 2.0, 3.0])
    pair = copy.deepcopy([x, x[1:], x])
    assert pair[0] is pair[2] and pair[0].data_ptr() != x.data_ptr()
    pair[0][1] = 7
    assert pair[1][0].item() == 7 and x[1].item() == 2
    shallow = copy.copy(x)
    assert shallow is not x and shallow.data_ptr() == x.data_ptr()


class Named(lamella.Tensor):
    pass


def test_subclasses_are_copied_as_such():
    x = Named([1.0, 2.0])
    x.name = "n"
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert type(y) is Named and y.name == "n" and y.tolist() == [1.0, 2.0]
    assert type(lamella.tensor([1.0]).as_subclass(Named)) is Named


def test_storages():
    x = lamella.tensor([1.0, 2.0])
    storage = x.untyped_storage()
    assert storage is x[1:].untyped_storage() and storage.nbytes() == 8 and len(storage) == 8
    assert storage.data_ptr() == x.data_ptr() and lamella.is_storage(storage)
    assert storage is not lamella.tensor([1.0]).untyped_storage()


def test_a_hostile_pickle_is_refused():
    from lamella._storage import rebuild_tensor

    storage = lamella.tensor([1.0]).untyped_storage()
    with pytest.raises(ValueError, match="expected a view inside the storage's 1 elements"):
        rebuild_tensor(storage, lamella.float32, 0, (2,), (1,))
    with pytest.raises(ValueError):
        rebuild_tensor(storage, lamella.float32, -1, (1,), (1,))
    with pytest.raises(ValueError):
        rebuild_tensor(storage, lamella.float32, 0, (2**62, 4), (2**62, 1))


def test_objects():
    x = lamella.tensor([1.0])
    watched = weakref.ref(x)
    assert watched() is x and hash(x) == hash(x) and {x: 1}[x] == 1
    del x
    assert watched() is None


def test_read_only_memory_is_not_written():
    np = pytest.importorskip("numpy")
    for fixed in (np.arange(3.0), np.arange(6.0).reshape(2, 3).T, np.broadcast_to(np.ones(1), 4)):
        fixed.flags.writeable = False
        before = fixed.copy()
        text = "from_numpy: the array is read-only; the tensor has a copy of it"
        with pytest.warns(UserWarning, match=f"^{text}$"):
            made = [lamella.from_numpy(fixed)]
        made += [lamella.as_tensor(fixed), lamella.asarray(fixed), lamella.tensor(fixed)]
        made += [lamella.from_dlpack(fixed), lamella.from_dlpack(fixed, copy=True)]
        for x in made:
            assert x.tolist() == before.tolist()
            x.add_(1)
            assert x.tolist() == (before + 1).tolist() and fixed.tolist() == before.tolist()
    with pytest.raises(ValueError, match="because of copy=False"):
        lamella.asarray(fixed, copy=False)
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    with pytest.raises(BufferError):
        lamella.from_dlpack(fixed, copy=False)
    # Read alone, it is shared.
    x = lamella.zeros(3)
    x[np.broadcast_to(np.array([1]), 2)] = np.broadcast_to(np.ones(1), 2)
    assert x.tolist() == [0.0, 1.0, 0.0]


def test_constants_of_jax_are_not_written():
    jax = pytest.importorskip("jax")
    constant = jax.numpy.arange(4.0)
    x = lamella.from_dlpack(constant)
    x.zero_()
    with pytest.raises(BufferError) as error:
        lamella.from_dlpack(constant, copy=False)
    assert str(error.value) == (
        "from_dlpack: expected memory that may be written because of copy=False, "
        "got read-only memory"
    )
    assert constant.tolist() == [0.0, 1.0, 2.0, 3.0] and x.tolist() == [0.0] * 4
    assert jax.numpy.from_dlpack(lamella.ones(2)).tolist() == [1.0, 1.0]


EXPORTS = {
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: pytest.importorskip("numpy").asarray(x),
    "view of a view": lambda x: pytest.importorskip("numpy").asarray(x)[1:].reshape(-1)[::2],
    "memoryview": memoryview,
    "dlpack of NumPy": lambda x: pytest.importorskip("numpy").from_dlpack(x),
    "dlpack": lambda x: lamella.from_dlpack(x),
    "capsule": lambda x: x.__dlpack__(),
    "storage": lambda x: x.untyped_storage(),
    "part": lambda x: x[3:].numpy(),
}
CHANGES = {
    "data": lambda x: setattr(x, "data", lamella.zeros(3)),
    "set_": lambda x: x.set_(lamella.zeros(3)),
    "resize_": lambda x: x.resize_(100_000),
    "out": lambda x: lamella.add(lamella.zeros(100_000), 1, out=x.resize_(0)),
}


@pytest.mark.parametrize("size", [5, 40_000])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("export", EXPORTS)
def test_exports_keep_their_memory(export, change, size):
    def values(exported):
        if export == "storage":
            return bytes(exported.tolist())
        if export == "capsule":
            return lamella.from_dlpack(exported).tolist()
        return exported.tolist()

    expected = values(EXPORTS[export](lamella.arange(float(size))))
    x = lamella.arange(float(size))
    exported = EXPORTS[export](x)
    CHANGES[change](x)
    del x
    gc.collect()
    others = [lamella.full((size,), -1.0) for _ in range(20)]
    assert values(exported) == expected and len(others) == 20


def test_exports_end():
    x = lamella.ones(100)
    storage = x._storage_info()[0]
    views = [memoryview(x), memoryview(x), memoryview(x[3:])]
    x.data = lamella.zeros(1)
    views[0].release()
    views[2].release()
    assert views[1].tolist() == [1.0] * 100 and x._storage_info()[0] != storage


def lazy_tensors():
    z = lamella.tensor([1 + 2j, 3 - 4j])
    return {"conj": z.conj(), "neg": z.conj().imag, "both": z.conj()[1:], "plain": z}


@pytest.mark.parametrize("name", lazy_tensors())
def test_lazy_tensors_are_copied_as_they_are(name):
    def check(y, x):
        assert y.tolist() == x.tolist() and y.dtype is x.dtype
        assert (y + 0).tolist() == (x + 0).tolist()
        assert (y.is_conj(), y.is_neg()) == (x.is_conj(), x.is_neg())

    x = lazy_tensors()[name]
    check(copy.deepcopy(x), x)
    check(copy.copy(x), x)
    check(pickle.loads(pickle.dumps(x)), x)
    one, other = copy.deepcopy([x, x])
    assert one is other
    storage = x.untyped_storage()
    raw = lazy_tensors()["plain"].untyped_storage()
    assert storage.tolist() == raw.tolist() == storage.clone().tolist()
    assert [storage[i] for i in range(16)] == raw.tolist()
    assert pickle.loads(pickle.dumps(storage)).tolist() == raw.tolist()
    assert x.numpy(force=True).tolist() == x.tolist()


def test_lazy_tensors_in_files(tmp_path):
    for name, x in lazy_tensors().items():
        lamella.save({"x": x}, tmp_path / "x")
        assert lamella.load(tmp_path / "x")["x"].tolist() == x.tolist(), name


NUMPY_NUMBERS = [name for name in NUMPY_TYPES if name != "bool"] + ["bool_"]


@pytest.mark.parametrize("name", NUMPY_NUMBERS)
def test_dtypes_of_numpy_scalars(name):
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    one = getattr(np, name)(1)
    for data in (
        one,
        [one],
        (one, one),
        [[one], [one]],
        [one, 2.5],
        [[one], [2.5]],
        [one, 1j],
        [one, np.float32(2)],
        [np.float16(1), one],
        [np.array([one, one]), np.array([one, one])],
        [np.array([one])],
        [],
    ):
        try:
            theirs = torch.tensor(data)
        except (RuntimeError, TypeError):  # of uint16 and its like with others
            assert name.startswith("uint")
            continue
        for ours in (lamella.tensor(data), lamella.as_tensor(data), lamella.asarray(data)):
            assert str(ours.dtype) == str(theirs.dtype).replace("torch", "lamella"), data
            assert ours.tolist() == theirs.tolist() and ours.shape == theirs.shape, data
    # PyTorch refuses these.
    for data in ([np.array(one)], [one, np.array(one)], [[np.array(one)]]):
        assert lamella.tensor(data).dtype is lamella.tensor(one).dtype
    if name not in ("uint16", "uint32", "uint64"):
        assert lamella.tensor([one, True]).dtype is lamella.tensor(one).dtype
    assert lamella.tensor([one], dtype=lamella.float16).dtype is lamella.float16
    assert lamella.Tensor([one]).dtype is lamella.float32


def test_numpy_numbers_keep_their_digits():
    np = pytest.importorskip("numpy")
    third = np.float64(1 / 3)
    assert lamella.tensor([third]).tolist() == [1 / 3]
    assert lamella.tensor([np.complex128(third)]).tolist() == [complex(1 / 3)]
    assert lamella.tensor([np.uint64(2**63 + 1)]).tolist() == [2**63 + 1]
    assert lamella.tensor([np.array(1 / 3)]).tolist() == [1 / 3]
    with pytest.raises(TypeError) as error:
        lamella.tensor([np.longdouble(1)])
    assert str(error.value) == (
        "tensor: expected numbers of a dtype that tensors have, got numpy.longdouble"
    )
    with pytest.raises(TypeError):
        lamella.tensor([np.datetime64("2020-01-01")])


def test_sequences_that_do_not_fit():
    x = lamella.tensor
    for data in ([1, [2]], [[1], 2], [[1, 2], [3]], [[], [1]], [[1, 2, 3], x([1])], [[1], x(1)]):
        with pytest.raises(ValueError, match="tensor: expected sequences of "):
            lamella.tensor(data)
    made = []
    made += [made, made]
    with pytest.raises(ValueError, match="^tensor: expected at most 64 nested sequences$"):
        lamella.tensor(made)
    with pytest.raises(ValueError, match="^tensor: expected at most 64 nested sequences$"):
        lamella.ones(3)[made]
    # A tensor of one element is a number, or a sequence of length 1 where another one is.
    assert lamella.tensor([x([1]), x([2])]).tolist() == [1, 2]
    assert lamella.tensor([x([1]), 2]).tolist() == [1, 2]
    assert lamella.tensor([[2.0], x([1])]).tolist() == [[2.0], [1.0]]
    assert lamella.tensor([x(1), 2.5]).tolist() == [1.0, 2.5]


class Number:
    """A number that does something when it is read."""

    def __init__(self, act):
        self.act = act

    def __index__(self):
        self.act()
        return 5


def test_sequences_that_change_while_they_are_read():
    rows = [[1, 2], [3, 4], [5, 6]]
    rows[1][0] = Number(rows.clear)
    with pytest.raises(RuntimeError, match="^tensor: a sequence changed while it was read$"):
        lamella.tensor(rows)
    # While elements are converted it is too late to matter.
    row = [1, 2, 3]
    row[0] = Number(row.clear)
    assert lamella.tensor([row], dtype=lamella.int64).tolist() == [[5, 2, 3]]
    grows = [1, 2]
    grows[0] = Number(lambda: grows.extend([7] * 1000))
    assert lamella.tensor(grows, dtype=lamella.int16).tolist() == [5, 2]
    one = lamella.tensor([1])
    with pytest.raises(RuntimeError, match="expected a tensor of one element, got one of 9"):
        lamella.tensor([[Number(lambda: one.resize_(9))], one], dtype=lamella.int64)


@pytest.mark.parametrize("name", "float double half bfloat16 int long short char byte bool cfloat "
                         "cdouble chalf cpu".split())  # fmt: skip
def test_conversions_take_a_memory_format(name):
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "int64", "complex64"):
        x = lamella.ones(2, 3, 4, 5, dtype=getattr(lamella, dtype))
        y = torch.ones(2, 3, 4, 5, dtype=getattr(torch, dtype))
        for fmt in ("contiguous_format", "preserve_format", "channels_last"):
            ours = getattr(x, name)(memory_format=getattr(lamella, fmt))
            theirs = getattr(y, name)(memory_format=getattr(torch, fmt))
            assert ours.stride() == theirs.stride() and (ours is x) == (theirs is y), (dtype, fmt)
            assert str(ours.dtype)[8:] == str(theirs.dtype)[6:]
        assert getattr(x, name)(memory_format=None).stride() == x.stride()
    with pytest.raises(TypeError) as error:
        getattr(x, name)(memory_format="channels_last")
    assert str(error.value).endswith(": expected 'memory_format' to be a memory_format, got str")
    with pytest.raises(TypeError, match="expected no positional arguments, got 1"):
        getattr(x, name)(lamella.channels_last)
    with pytest.raises(TypeError, match="expected no argument but 'memory_format', got 'copy'"):
        getattr(x, name)(copy=True)


def test_numbers_stand_for_tensors_in_overloads():
    x = lamella.tensor([1.0, 2.0])
    add, mul = lamella.ops.aten.add.Tensor, lamella.ops.aten.mul.Tensor
    assert add(x, 1).tolist() == add(1, x).tolist() == [2.0, 3.0]
    assert add(x, 1, alpha=2).tolist() == [3.0, 4.0] and add(x, True).tolist() == [2.0, 3.0]
    result = mul(lamella.tensor([3]), 1.5)
    assert result.tolist() == [4.5] and result.dtype is lamella.float32
