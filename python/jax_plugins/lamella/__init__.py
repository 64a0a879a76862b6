"""JAX on Lamella: finds liblamella_pjrt.so, and registers it with JAX.

JAX imports this module by itself where it is on the path. JAX_PLATFORMS=lamella selects the plugin;
LAMELLA_AS_CPU=1 puts it in the place of jaxlib's own CPU client. See docs/jax.md.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import threading
import traceback
from typing import Any

# The version of JAX that tests run with; others work as long as they have the names used below,
# as 0.9.2 does.
_TESTED = "0.10.2"


def _library() -> str:
    here = pathlib.Path(__file__).resolve()
    # In an installed tree the library is in lib; in a wheel, in the package lamella.
    places = [here.parents[3], here.parents[2] / "lamella" / "lib"]
    for place in places:
        if (place / "liblamella_pjrt.so").exists():
            return str(place / "liblamella_pjrt.so")
    raise RuntimeError(
        "jax_plugins.lamella: expected liblamella_pjrt.so in "
        + " or ".join(map(str, places))
        + "; install lamella again"
    )


class _Array(ctypes.Structure):
    """HostArray of lamella/pjrt/callback.cpp."""

    _fields_ = [
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    ]


class _Callbacks(ctypes.Structure):
    """jaxlib's user data of a run: the functions that its program calls."""

    _fields_ = [("functions", ctypes.POINTER(ctypes.c_void_p)), ("count", ctypes.c_size_t)]


_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(_Callbacks),
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.c_size_t,
    ctypes.POINTER(_Array),
    ctypes.c_size_t,
    ctypes.POINTER(_Array),
    ctypes.c_void_p,
)
_TOKEN = 17


def _dtypes() -> dict[int, Any]:
    """NumPy's dtypes by XLA's numbers."""
    import ml_dtypes
    import numpy as np

    names = {
        1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16",
        8: "uint32", 9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64",
        16: "bfloat16", 18: "complex128", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4",
        22: "uint4", 23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz",
        26: "int2", 27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4", 32: "float4_e2m1fn",
        33: "float8_e8m0fnu",
    }  # fmt: skip
    made = {}
    for number, name in names.items():
        kind = getattr(ml_dtypes, name, None)
        if kind is None:
            kind = getattr(np, name + "_" if name == "bool" else name, None)
        if kind is not None:
            made[number] = np.dtype(kind)
    return made


class _Buffer:
    """An operand or result of a buffer_callback: it is written in place, and ends with the call."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self.writeable = array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and dtype != self.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Execution:
    """What a buffer_callback is told about its run."""

    def __init__(self) -> None:
        from jax._src.lib import ffi

        self.stage = ffi.ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        import jax

        # As jaxlib says it.
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class _Plugin:
    """The library, and what Python does for it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.library = ctypes.CDLL(path)
        self.library.lamella_pjrt_register_target.restype = ctypes.c_char_p
        self.library.lamella_pjrt_register_type.restype = ctypes.c_char_p
        self.dtypes = _dtypes()
        self.callback = _FUNCTION(self.call)
        self.library.lamella_pjrt_set_callback(self.callback)

    def view(self, array: _Array) -> Any:
        """The elements, in memory that belongs to the run."""
        import numpy as np

        shape = tuple(array.dims[: array.rank])
        dtype = self.dtypes[array.type]
        size = dtype.itemsize
        for n in shape:
            size *= n
        if size == 0:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * size).from_address(array.data)
        return np.frombuffer(memory, dtype).reshape(shape)

    def call(
        self, callbacks, index, writes, argument_count, arguments, result_count, results, error
    ):
        """Calls a function of a program; an exception becomes the run's error."""
        try:
            function = ctypes.cast(callbacks[0].functions[index], ctypes.py_object).value
            given = []
            for i in range(argument_count):
                if arguments[i].type == _TOKEN:
                    given.append(None)
                    continue
                # Copied where a function may keep what it is given.
                array = self.view(arguments[i])
                if not writes:
                    array = array.copy()
                array.flags.writeable = False
                given.append(_Buffer(array) if writes else array)
            if writes:
                outs = [_Buffer(self.view(results[i])) for i in range(result_count)]
                function(_Execution(), *given, *outs)
                return 0
            made = function(*given)
            for i in range(result_count):
                if results[i].type != _TOKEN:
                    self.view(results[i])[...] = made[i]
        except BaseException:
            text = "CpuCallback error calling callback: " + traceback.format_exc()
            self.library.lamella_pjrt_callback_error(ctypes.c_void_p(error), text.encode())
            return 1
        return 0

    def register_target(self, name, fn, platform, api_version=0, traits=0) -> None:
        """Registers a custom call's function: a capsule, or one for each stage."""
        stages = ("execute", "instantiate", "prepare", "initialize")
        functions = [fn.get(stage) for stage in stages] if isinstance(fn, dict) else [fn]
        pointers = (ctypes.c_void_p * 4)(*[_pointer(one) for one in functions])
        if isinstance(name, bytes):
            name = name.decode()
        # LAPACK's functions are Lamella's own.
        own = int(name.startswith("lapack_"))
        self.check(
            self.library.lamella_pjrt_register_target(
                name.encode(), platform.encode(), int(api_version), int(traits), pointers, own
            )
        )

    def register_type(self, name, type_id) -> None:
        """Registers a type of states: a capsule of its number, or a dictionary with more."""
        info = None
        if isinstance(type_id, dict):
            info = type_id.get("type_info")
            type_id = type_id["type_id"]
        number = ctypes.cast(_pointer(type_id), ctypes.POINTER(ctypes.c_int64))
        deleter = None
        if info is not None:
            # XLA_FFI_TypeInfo: its size, an extension, the deleter.
            words = ctypes.cast(_pointer(info), ctypes.POINTER(ctypes.c_void_p))
            deleter = words[2]
        self.check(
            self.library.lamella_pjrt_register_type(
                str(name).encode(), number, ctypes.c_void_p(deleter)
            )
        )

    def check(self, error: bytes | None) -> None:
        if error is not None:
            raise ValueError(error.decode())


def _pointer(capsule: Any) -> int | None:
    if capsule is None or isinstance(capsule, int):
        return capsule
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


_lock = threading.Lock()
_plugin: _Plugin | None = None


def plugin() -> _Plugin:
    """The library, with handlers of JAX's custom calls registered."""
    global _plugin
    with _lock:
        if _plugin is None:
            _plugin = _Plugin(_library())
            _take_custom_calls(_plugin)
        return _plugin


def _take_custom_calls(to: _Plugin) -> None:
    """Custom calls of the platform cpu, of jaxlib and of users, go to Lamella as well as to jaxlib.

    JAX keeps one handler for each platform, and sets its own when it makes a CPU client.
    """
    from jaxlib import _jax, xla_client

    def both(name, fn, platform, api_version=0, traits=0):
        _jax.register_custom_call_target(name, fn, platform, api_version, traits)
        to.register_target(name, fn, platform, api_version, traits)

    def both_types(name, type_id):
        _jax.register_custom_type(name, type_id)
        to.register_type(name, type_id)

    # jaxlib may have set its handler already, in a process that made a CPU client before.
    platform = xla_client.xla_platform_names.get("cpu", "cpu")
    with xla_client._custom_callback_lock:
        xla_client._custom_callback_handler.pop(platform, None)
        xla_client._custom_type_id_handler.pop(platform, None)
    # Types come before the handlers that use them.
    xla_client.register_custom_type_handler("cpu", both_types)
    xla_client.register_custom_call_handler("cpu", both)


def _device_count() -> int:
    """As many devices as JAX's own CPU client would have."""
    from jax._src import xla_bridge

    wanted = xla_bridge.num_cpu_devices.value
    if wanted >= 1:
        return wanted
    flag = "--xla_force_host_platform_device_count="
    for word in os.environ.get("XLA_FLAGS", "").split():
        if word.startswith(flag):
            return int(word[len(flag) :])
    return 1


def _make_client() -> Any:
    from jax._src import xla_bridge

    try:
        plugin()
        devices = _device_count()
    except (ImportError, AttributeError, TypeError) as error:
        raise _refusal(error) from error
    client = xla_bridge.make_pjrt_c_api_client("lamella", {"num_devices": devices})
    # JAX's callbacks ask for devices of cpu by name; jaxlib's client replaces this if it is made.
    xla_bridge._backends.setdefault("cpu", client)
    return client


def _refusal(error: Exception) -> RuntimeError:
    import jaxlib

    return RuntimeError(
        f"jax_plugins.lamella: expected a jaxlib such as {_TESTED}, got {jaxlib.__version__},"
        f" where {error}; run `pip install jax=={_TESTED}`"
    )


def initialize() -> None:
    """Registers the plugin; JAX calls it."""
    try:
        _register()
    except (ImportError, AttributeError, TypeError) as error:
        # JAX reports what the factory raises when a program asks for this client.
        from jax._src import xla_bridge

        refusal = _refusal(error)

        def refuse() -> None:
            raise refusal

        xla_bridge.register_backend_factory("lamella", refuse, priority=-100, fail_quietly=True)


def _register() -> None:
    from jax._src import xla_bridge

    # Below JAX's own CPU client, so that it is the default only where it is asked for. The plugin
    # is not announced as experimental.
    xla_bridge._nonexperimental_plugins.add("lamella")
    xla_bridge.register_plugin(
        "lamella", priority=-100, library_path=_library(), factory=_make_client
    )
    if os.environ.get("LAMELLA_AS_CPU", "0") in ("", "0"):
        return
    for table in (xla_bridge._backend_factories, xla_bridge._topology_factories):
        table["cpu"] = table["lamella"]
    own = xla_bridge._backend_factories["lamella"]
    xla_bridge._backend_factories["cpu"] = dataclasses.replace(own, priority=0)
