"""DLPack with wrong arguments, inconsistent producers and hostile capsules."""

import pytest

import lamella

DLPACK_ARGUMENTS = [
    ({"dl_device": "cpu"}, TypeError, "'dl_device' to be a tuple of two ints, got 'cpu'"),
    ({"dl_device": 1}, TypeError, "'dl_device' to be a tuple of two ints, got 1"),
    ({"dl_device": (1,)}, TypeError, "'dl_device' to be a tuple of two ints, got (1,)"),
    ({"dl_device": (1, 0, 0)}, TypeError,
     "'dl_device' to be a tuple of two ints, got (1, 0, 0)"),
    ({"dl_device": (1, "0")}, TypeError, "'dl_device' to be a tuple of two ints, got (1, '0')"),
    ({"dl_device": [1, 0]}, TypeError, "'dl_device' to be a tuple of two ints, got [1, 0]"),
    ({"dl_device": (2, 0)}, BufferError,
     "'dl_device' to be (1, 0), where the tensor is, got (2, 0)"),
    ({"dl_device": (1, 2**70)}, BufferError,
     f"'dl_device' to be (1, 0), where the tensor is, got (1, {2**70})"),
    ({"max_version": 1}, TypeError, "'max_version' to be a tuple of two ints, got 1"),
    ({"max_version": (1.0, 0)}, TypeError,
     "'max_version' to be a tuple of two ints, got (1.0, 0)"),
    ({"max_version": ()}, TypeError, "'max_version' to be a tuple of two ints, got ()"),
    ({"copy": 1}, TypeError, "'copy' to be a bool or None, got int"),
    ({"stream": 1}, BufferError, "'stream' to be None for a tensor on cpu"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "kind", "text"), DLPACK_ARGUMENTS)
def test_wrong_arguments_of_dlpack(arguments, kind, text):
    with pytest.raises(kind) as error:
        lamella.ones(1).__dlpack__(**arguments)
    assert str(error.value) == f"__dlpack__: expected {text}"


def test_what_dlpack_cannot_say():
    z = lamella.tensor([1j])
    for x, text in (
        (z.conj(), "expected a tensor without a pending conjugation or negation"),
        (z.conj().imag, "expected a tensor without a pending conjugation or negation"),
        (lamella.ones(1, device="meta"), "expected a device that DLPack knows, got meta"),
        (lamella.ones(1, requires_grad=True), "expected a tensor that does not require grad"),
    ):
        for version in (None, (1, 0)):
            with pytest.raises(BufferError, match=text):
                x.__dlpack__(max_version=version)
    with pytest.raises(BufferError, match="expected a device that DLPack knows, got meta"):
        lamella.ones(1, device="meta").__dlpack_device__()


def test_producers_that_lie():
    class Producer:
        def __init__(self, result):
            self.result = result

        def __dlpack__(self, **kwargs):
            if isinstance(self.result, BaseException):
                raise self.result
            return self.result

    with pytest.raises(TypeError) as error:
        lamella.from_dlpack(Producer(3))
    assert str(error.value) == (
        "from_dlpack: expected __dlpack__ of Producer to return a capsule, got int"
    )
    with pytest.raises(ZeroDivisionError):
        lamella.from_dlpack(Producer(ZeroDivisionError()))
    used = lamella.ones(1).__dlpack__()
    lamella.from_dlpack(used)
    with pytest.raises(RuntimeError, match="from_dlpack: expected a capsule that was not used"):
        lamella.from_dlpack(Producer(used))

    class Raises:
        def __getattr__(self, name):
            raise KeyError(name)

    with pytest.raises(KeyError, match="__dlpack__"):
        lamella.from_dlpack(Raises())


# Contents of foreign capsules; the C++ tests have more of them.
def test_hostile_capsules():
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device_type", ctypes.c_int32),
            ("device_id", ctypes.c_int32),
            ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("byte_offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    kept = []

    def capsule(**changes):
        memory = (ctypes.c_double * 8)()
        pair = ctypes.c_int64 * 2
        shape = pair(*changes.pop("shape", (2, 2)))
        strides = pair(*changes.pop("strides", (2, 1)))
        given = Tensor(
            ctypes.addressof(memory), 1, 0, 2, 2, 64, 1, ctypes.addressof(shape),
            ctypes.addressof(strides), 0, None, None,
        )  # fmt: skip
        for name, value in changes.items():
            setattr(given, name, value)
        kept.append((memory, shape, strides, given))
        return make(ctypes.addressof(given), b"dltensor", None)

    assert lamella.from_dlpack(capsule()).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    for changes in (
        {"strides": (2**60, 1)},
        {"strides": (2**63 - 1, 1)},
        {"strides": (-2, 1)},
        {"shape": (2**62, 2), "strides": (0, 1)},
        {"shape": (2**62, 4), "strides": (0, 0)},
        {"shape": (-1, 2)},
        {"byte_offset": 2**64 - 8},
        {"byte_offset": 4},
        {"ndim": 2**31 - 1},
        {"ndim": -1},
        {"ndim": 65},
        {"data": None},
        {"shape": (2, 2), "code": 77},
        {"bits": 63},
        {"lanes": 4},
        {"device_type": 99},
        {"device_type": 2, "device_id": 4000},
    ):
        refused = capsule(**changes)
        try:
            made = lamella.from_dlpack(refused)
        except (RuntimeError, TypeError, ValueError) as error:
            assert str(error).startswith("from_dlpack: ")
        else:
            raise AssertionError((changes, made.shape, made.stride()))
        assert "dltensor" in repr(refused) and "used" not in repr(refused)
