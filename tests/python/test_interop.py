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
    with pytest.raises(ValueError, match="expected the bytes behind 'offset' to be whole elements"):
        lamella.frombuffer(data, dtype=lamella.int32)
    with pytest.raises(BufferError, match="expected a dtype that buffers have, got bfloat16"):
        memoryview(lamella.tensor([1.0], dtype=lamella.bfloat16))
    with pytest.warns(UserWarning, match="read-only"):
        assert lamella.frombuffer(b"abc", dtype=lamella.uint8).tolist() == [97, 98, 99]


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
    fixed = np.arange(3)
    fixed.flags.writeable = False
    with pytest.warns(UserWarning, match="the array is read-only"):
        lamella.from_numpy(fixed)
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
