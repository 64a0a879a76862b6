"""Handlers of jax.ffi on the plugin. usage: custom_calls.py LIBRARY"""

import ctypes
import sys

import jax
import jax.numpy as jnp
import numpy as np

library = ctypes.CDLL(sys.argv[1])
library.counter_type_id.restype = library.counter_type_info.restype = ctypes.c_void_p


def wrapped(address):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(address, None, None)


capsule = jax.ffi.pycapsule
jax.ffi.register_ffi_target("scale", capsule(library.Scale), platform="cpu")
jax.ffi.register_ffi_target("refuse", capsule(library.Refuse), platform="cpu")
jax.ffi.register_ffi_type(
    "counter",
    {
        "type_id": wrapped(library.counter_type_id()),
        "type_info": wrapped(library.counter_type_info()),
    },
    platform="cpu",
)
jax.ffi.register_ffi_target(
    "count",
    {"instantiate": capsule(library.MakeCounter), "execute": capsule(library.Count)},
    platform="cpu",
)

x = np.arange(6, dtype=np.float32).reshape(2, 3)
scaled = jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype))
for device in jax.devices()[0], jax.devices("cpu")[0]:
    with jax.default_device(device):
        found = jax.jit(lambda x: scaled(x + 1, factor=np.float32(2.5)) - 1)(x)
        assert found.devices() == {device}
        np.testing.assert_array_equal(np.asarray(found), (x + 1) * np.float32(2.5) - 1)
batched = jax.vmap(
    lambda x: jax.ffi.ffi_call(
        "scale", jax.ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all"
    )(x, factor=np.float32(2))
)
np.testing.assert_array_equal(np.asarray(batched(x)), x * 2)

try:
    refused = jax.ffi.ffi_call("refuse", jax.ShapeDtypeStruct(x.shape, x.dtype))
    jax.block_until_ready(jax.jit(refused)(x))
except Exception as error:
    assert "refused by the handler" in str(error), error
else:
    raise AssertionError("expected an error")

calls = jax.jit(
    lambda: jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), jnp.int32), has_side_effect=True)()
)
assert [int(calls()) for _ in range(3)] == [1, 2, 3]
print("done")
