"""Typed handlers from Python: one library in JAX and in Lamella, and jaxlib's own LAPACK."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from build_tree import BUILD

import lamella

jax = pytest.importorskip("jax", reason="JAX is the oracle")
import jax.numpy as jnp  # noqa: E402
import jax.scipy.linalg as jsl  # noqa: E402
import ml_dtypes  # noqa: E402
from jax import lax  # noqa: E402


def evaluate_as_jax(function, *arguments):
    """The results of JAX's module for the function, by Lamella and by JAX."""
    text = jax.jit(function).lower(*arguments).as_text("hlo")
    ours = [one.numpy() for one in lamella.hlo.evaluate(text, *jax.tree.leaves(arguments))]
    theirs = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*arguments))]
    return ours, theirs


# ---- One library, two runtimes ------------------------------------------------------------------


@pytest.fixture(scope="session")
def library():
    path = BUILD / "tests" / "graph" / "libffi_library.so"
    assert path.exists(), f"{path} is not built"
    loaded = ctypes.CDLL(str(path))
    for name, symbol in [
        ("ffi.describe", "Describe"),
        ("ffi.add_places", "AddPlaces"),
        ("ffi.positive", "Positive"),
        ("ffi.later", "Later"),
    ]:
        capsule = jax.ffi.pycapsule(getattr(loaded, symbol))
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
        lamella.hlo.register_ffi_target(name, capsule, platform="cpu")
    kind = {
        "type_id": jax.ffi.pycapsule(address(loaded.CallsTypeId)),
        "type_info": jax.ffi.pycapsule(address(loaded.CallsTypeInfo)),
    }
    jax.ffi.register_ffi_type("ffi.Calls", kind, platform="cpu")
    lamella.hlo.register_ffi_type("ffi.Calls", kind)
    stages = {
        "instantiate": jax.ffi.pycapsule(loaded.CallsInstantiate),
        "execute": jax.ffi.pycapsule(loaded.CallsExecute),
    }
    jax.ffi.register_ffi_target("ffi.calls", stages, platform="cpu")
    lamella.hlo.register_ffi_target("ffi.calls", stages, platform="cpu")
    return loaded


def address(function):
    """The pointer that a function without arguments returns."""
    function.restype = ctypes.c_void_p
    return ctypes.c_void_p(function())


def describe(*arrays, **attributes):
    """A function whose result is the text of the handler's arguments."""
    result = jax.ShapeDtypeStruct((10000,), np.uint8)
    return jax.ffi.ffi_call("ffi.describe", result)(*arrays, **attributes)


ATTRIBUTES = [
    True,
    False,
    np.bool_(True),
    np.int8(-1),
    np.int16(-300),
    np.int32(2**31 - 1),
    np.int64(-(2**63)),
    7,
    np.uint8(255),
    np.uint16(65535),
    np.uint32(2**32 - 1),
    np.uint64(2**63 - 1),
    1.5,
    0.1,
    1e300,
    float("inf"),
    float("nan"),
    np.float32(1.5),
    np.float32("-inf"),
    "text",
    "",
    'q"\\\n\t\x01é}',
    b"bytes",
    np.array([1, -2], np.int8),
    np.array([1, -2], np.int16),
    np.array([1, -2], np.int32),
    np.array([1, -2], np.int64),
    np.array([1, 255], np.uint8),
    np.array([1, 65535], np.uint16),
    np.array([1, 2**32 - 1], np.uint32),
    np.array([1, 2**64 - 1], np.uint64),
    np.array([1.5, -2], np.float32),
    np.array([0.1, np.inf, -np.inf, 1e-300], np.float64),
    np.array([np.nan, 1e-30], np.float32),
    np.array([[1, 2], [3, 4]], np.int32),
    np.array([5, 5, 5], np.int32),
    np.array(3, np.int32),
    np.array([], np.float32),
    np.arange(300, dtype=np.int16),
    np.linspace(0, 1, 300),
    {},
    {"z": np.int32(1), "a": "s", "b": 1.5},
]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=lambda value: repr(value)[:30])
def test_attributes_arrive_as_with_jax(library, value):
    def function(x):
        return describe(x, value=value, other=np.int32(1))

    (ours,), (theirs,) = evaluate_as_jax(function, np.zeros((2, 3), np.float32))
    assert bytes(ours).rstrip(b"\0") == bytes(theirs).rstrip(b"\0")
    assert bytes(ours).startswith(b"F32(2,3,) {other=S32 1, value=")


def test_attributes_are_sorted_by_their_bytes(library):
    names = ["z", "a", "we ird", "A", "x-y", "x.y", "0", "é", "Z", "aa"]
    (ours,), (theirs,) = evaluate_as_jax(lambda: describe(**{name: 1 for name in names}))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "dtype",
    [
        *[np.bool_, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32],
        *[np.float16, np.float32, np.complex64, ml_dtypes.bfloat16],
        *[ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
    ],
    ids=lambda dtype: np.dtype(dtype).name,
)
def test_buffers_arrive_as_with_jax(library, dtype):
    arrays = [np.zeros(shape, dtype) for shape in [(), (3,), (2, 0), (1, 2, 3)]]
    (ours,), (theirs,) = evaluate_as_jax(describe, *arrays)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(2, 3, 4), (17, 3, 40), (33, 16, 1)])
def test_layouts_are_those_of_jax(library, shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    layouts = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1), (1, 2, 0)]
    for given, wanted in zip(layouts, [*layouts[2:], *layouts[:2]]):
        call = jax.ffi.ffi_call(
            "ffi.add_places", result, input_layouts=[given], output_layouts=wanted
        )
        (ours,), (theirs,) = evaluate_as_jax(call, x)
        np.testing.assert_array_equal(ours, theirs)


def test_errors_reach_the_caller(library):
    x = np.array([1, -2], np.float32)
    call = jax.ffi.ffi_call("ffi.positive", jax.ShapeDtypeStruct(x.shape, x.dtype))
    ours, theirs = evaluate_as_jax(call, np.abs(x))
    np.testing.assert_array_equal(ours, theirs)
    text = jax.jit(call).lower(x).as_text("hlo")
    with pytest.raises(RuntimeError) as caught:
        lamella.hlo.evaluate(text, x)
    said = "OUT_OF_RANGE: expected positive numbers, got -2.000000"
    assert str(caught.value) == f"hlo: 'ffi_call.1' (custom-call): 'ffi.positive' failed: {said}"
    with pytest.raises((RuntimeError, ValueError), match=said):
        jax.block_until_ready(jax.jit(call)(x))


def test_runs_wait_for_futures(library):
    x = np.arange(5, dtype=np.float32)
    call = jax.ffi.ffi_call("ffi.later", jax.ShapeDtypeStruct(x.shape, x.dtype))
    ours, theirs = evaluate_as_jax(lambda x: call(call(x, failing=False), failing=False), x)
    np.testing.assert_array_equal(ours, theirs)
    text = jax.jit(lambda x: call(x, failing=True)).lower(x).as_text("hlo")
    with pytest.raises(RuntimeError, match="'ffi.later' failed: DATA_LOSS: too late"):
        lamella.hlo.evaluate(text, x)


def test_states_belong_to_compiled_modules(library):
    call = jax.ffi.ffi_call("ffi.calls", jax.ShapeDtypeStruct((), np.int32), has_side_effect=True)

    def function():
        return call(first=10), call(first=20)

    text = jax.jit(function).lower().as_text("hlo")
    for _ in range(2):
        compiled = lamella.hlo.compile(text)
        assert [one.item() for one in compiled()] == [10, 20]
        assert [one.item() for one in compiled()] == [11, 21]
    jitted = jax.jit(function).lower().compile()
    assert [int(one) for one in jitted()] == [10, 20]
    assert [int(one) for one in jitted()] == [11, 21]


def test_calls_in_loops(library):
    x = np.arange(1, 5, dtype=np.float32)
    call = jax.ffi.ffi_call("ffi.later", jax.ShapeDtypeStruct(x.shape, x.dtype))

    def function(x):
        return lax.fori_loop(0, 6, lambda i, y: call(y, failing=False) + 1, x)

    ours, theirs = evaluate_as_jax(function, x)
    np.testing.assert_array_equal(ours, theirs)


# ---- Registering --------------------------------------------------------------------------------


def test_mistakes_in_registration(library):
    register = lamella.hlo.register_ffi_target
    good = jax.ffi.pycapsule(library.Positive)
    with pytest.raises(ValueError) as caught:
        register("ffi.new", {"run": good})
    assert str(caught.value) == (
        "register_ffi_target: expected the stages 'instantiate', 'prepare', 'initialize' and "
        "'execute', got 'run'"
    )
    with pytest.raises(TypeError) as caught:
        register("ffi.new", "text")
    assert str(caught.value) == (
        "register_ffi_target: expected the handler of 'execute' to be a capsule, a function or an "
        "address, got str"
    )
    with pytest.raises(RuntimeError) as caught:
        register("ffi.new", {"instantiate": good})
    assert str(caught.value) == (
        "hlo: expected the handler 'ffi.new' to have a function for execute, got none"
    )
    with pytest.raises(ValueError) as caught:
        register("ffi.new", good, api_version=3)
    assert str(caught.value) == "register_ffi_target: expected 'api_version' to be 0 or 1, got 3"
    with pytest.raises(RuntimeError, match="expected the custom-call target 'ffi.positive' to be"):
        register("ffi.positive", jax.ffi.pycapsule(library.Later))
    register("ffi.positive", good)  # the same again
    register("ffi.replaced", good)
    register("ffi.replaced", library.AddPlaces, platform="Host", replace=True)
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            "  x = f32[2] parameter(0)",
            '  ROOT c = f32[2] custom-call(x), custom_call_target="ffi.replaced", '
            "api_version=API_VERSION_TYPED_FFI, backend_config={}",
            "}",
        ]
    )
    x = np.array([-5, -5], np.float32)
    np.testing.assert_array_equal(lamella.hlo.evaluate(text, x)[0].numpy(), [-5, -4])


def test_functions_of_the_older_convention():
    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_void_p))
    def minus(out, operands):
        out[0] = -ctypes.cast(operands[0], ctypes.POINTER(ctypes.c_float))[0]

    # As jaxlib names its capsules.
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = make(ctypes.cast(minus, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)
    lamella.hlo.register_ffi_target("ffi.minus", capsule, platform="cpu", api_version=0)
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            "  x = f32[1] parameter(0)",
            '  ROOT c = f32[1] custom-call(x), custom_call_target="ffi.minus"',
            "}",
        ]
    )
    assert lamella.hlo.evaluate(text, np.array([3], np.float32))[0].item() == -3
    lamella.hlo.remove_custom_call_target("ffi.minus")


def test_mistakes_in_types(library):
    kind = {"type_id": jax.ffi.pycapsule(address(library.CallsTypeId))}
    with pytest.raises(RuntimeError) as caught:
        lamella.hlo.register_ffi_type("ffi.Other", kind)
    assert str(caught.value).startswith(
        "hlo: expected the type 'ffi.Other' of handlers to have a number of its own, got "
    )
    with pytest.raises(ValueError, match="expected 'type_id', got none"):
        lamella.hlo.register_ffi_type("ffi.Other", {})
    number = ctypes.c_int64(0)
    given = {"type_id": ctypes.addressof(number)}
    assert lamella.hlo.register_ffi_type("ffi.Another", given) == number.value != 0
    # JAX keeps the number that Lamella gave, as Lamella does with the numbers of JAX.
    before = number.value
    capsule = jax.ffi.pycapsule(ctypes.c_void_p(ctypes.addressof(number)))
    jax.ffi.register_ffi_type("ffi.Another", {"type_id": capsule}, platform="cpu")
    assert number.value == before


# ---- jaxlib's LAPACK ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lapack():
    """jaxlib's own handlers in place of ours; ours again afterwards."""
    lapack = pytest.importorskip("jaxlib.lapack")
    lapack._lapack.initialize()
    names = []
    for platform, entries in lapack.registrations().items():
        for name, target, version in entries:
            lamella.hlo.register_ffi_target(name, target, platform, version, replace=True)
            names.append(name)
    assert len(names) >= 50
    yield names
    for name in names:
        lamella.hlo.remove_custom_call_target(name)


def square(dtype, *batch, size=4):
    rng = np.random.default_rng(size + len(batch))
    made = rng.standard_normal((*batch, size, size))
    if np.issubdtype(dtype, np.complexfloating):
        made = made + 1j * rng.standard_normal(made.shape)
    return made.astype(dtype)


def positive(x):
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + 2 * jnp.eye(x.shape[-1], dtype=x.dtype)


LAPACK = {
    "cholesky": lambda x: jnp.linalg.cholesky(positive(x)),
    "cholesky_of_indefinite": jnp.linalg.cholesky,
    "eigh": lambda x: jnp.linalg.eigh(positive(x)),
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(positive(x)),
    "svd": jnp.linalg.svd,
    "svd_thin": lambda x: jnp.linalg.svd(x[..., :2], full_matrices=False),
    "svd_values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "svd_qr": lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR),
    "qr": jnp.linalg.qr,
    "qr_wide": lambda x: jnp.linalg.qr(x[..., :2, :], mode="complete"),
    "qr_pivoting": lambda x: lax.linalg.qr(x, pivoting=True),
    "lu": lax.linalg.lu,
    "lu_of_singular": lambda x: lax.linalg.lu(x - x),
    "solve": lambda x: jnp.linalg.solve(x, jnp.ones((*x.shape[:-1], 2), x.dtype)),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "eig": jnp.linalg.eig,
    "eigvals": jnp.linalg.eigvals,
    "triangular_solve": lambda x: lax.linalg.triangular_solve(positive(x), x, lower=True),
    "triangular_solve_right": lambda x: lax.linalg.triangular_solve(
        positive(x), x, transpose_a=True, conjugate_a=True, unit_diagonal=True
    ),
    "schur": lax.linalg.schur,
    "hessenberg": lax.linalg.hessenberg,
    "tridiagonal": lambda x: lax.linalg.tridiagonal(positive(x)),
    "tridiagonal_solve": lambda x: lax.linalg.tridiagonal_solve(
        x[..., 0], x[..., 1] + 4, x[..., 2], x[..., :2]
    ),
    "householder_product": lambda x: lax.linalg.householder_product(x, x[..., 0]),
    "pinv": jnp.linalg.pinv,
    "expm": jsl.expm,
}


@pytest.mark.parametrize("name", LAPACK)
def test_handlers_of_jaxlib(lapack, name):
    check_lapack(name, np.float32, 2)


@pytest.mark.parametrize(
    "name", ["cholesky", "eigh", "svd", "qr", "lu", "eig", "schur", "tridiagonal"]
)
def test_complex_handlers_of_jaxlib(lapack, name):
    check_lapack(name, np.complex64)


def check_lapack(name, dtype, *batch):
    ours, theirs = evaluate_as_jax(LAPACK[name], square(dtype, *batch))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_handlers_of_jaxlib_in_double_precision(lapack):
    with jax.enable_x64(True):
        names = ["cholesky", "eigh", "svd", "qr", "lu", "eig"]
        for name, dtype in zip(names, [np.float64, np.complex128] * 3):
            ours, theirs = evaluate_as_jax(LAPACK[name], square(dtype, 2))
            for one, other in zip(ours, theirs):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_handlers_of_jaxlib_check_what_they_get(lapack):
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            "  x = f32[2,2] parameter(0)",
            "  ROOT c = (f32[2,2], s32[]) custom-call(x), "
            'custom_call_target="lapack_spotrf_ffi", api_version=API_VERSION_TYPED_FFI, '
            "backend_config={uplo = 76 : i64}",
            "}",
        ]
    )
    with pytest.raises(RuntimeError) as caught:
        lamella.hlo.evaluate(text, np.eye(2, dtype=np.float32))
    assert "'lapack_spotrf_ffi' failed: INVALID_ARGUMENT: " in str(caught.value)
    assert "Wrong scalar data type: expected U8 but got S64" in str(caught.value)
