"""Programs of JAX on the plugin, each beside jaxlib's own CPU client in the same process.

usage: programs.py [NAME...]     prints a line of JSON for each: its name, and what went wrong
"""

import gc
import json
import sys
import threading
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

OWN = jax.devices("cpu")[0]
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def both(f, *args, **kwargs):
    """The results on Lamella and on jaxlib."""
    found = jax.jit(f)(*args, **kwargs)
    with jax.default_device(OWN):
        expected = jax.jit(f)(*args, **kwargs)
    return found, expected


def close(f, *args, rtol=2e-6, atol=1e-6):
    found, expected = both(f, *args)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(
            np.asarray(a).astype(np.complex128 if jnp.iscomplexobj(a) else np.float64),
            np.asarray(b).astype(np.complex128 if jnp.iscomplexobj(b) else np.float64),
            rtol=rtol,
            atol=atol,
        ),
        found,
        expected,
    )
    jax.tree.map(
        lambda a, b: check((a.dtype, a.shape) == (b.dtype, b.shape), a, b), found, expected
    )


def equal(f, *args):
    found, expected = both(f, *args)
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), found, expected
    )
    jax.tree.map(lambda a, b: check(a.dtype == b.dtype, a, b), found, expected)


def check(good, *what):
    assert good, what


def raises(text, f):
    try:
        f()
    except Exception as error:
        assert text in str(error), f"expected {text!r} in {error!s}"
    else:
        raise AssertionError("expected an exception with " + text)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, Y = normal(8, 8), normal(8, 8, seed=1)


# ---- Transforms and control flow -----------------------------------------------------------------


@program
def the_plugin_is_used():
    device = jax.devices()[0]
    check(
        device.client.platform_version.split("\n")[-1].startswith("lamella "),
        device.client.platform_version,
    )
    check("LamellaDevice" in str(device), str(device))
    check(jnp.zeros(3).devices() == {device})


@program
def jit_and_grad():
    def f(w, x):
        return jnp.tanh(x @ w).sum()

    close(jax.value_and_grad(f), X, Y, rtol=1e-5)
    close(jax.hessian(lambda x: jnp.sin(x).prod()), X[0], rtol=1e-4)
    close(jax.jacfwd(lambda x: x**3), X[0])


@program
def vmap_of_programs():
    close(jax.vmap(lambda a, b: a @ b, (0, None)), normal(4, 8, 8), Y, rtol=1e-5)
    close(jax.vmap(jax.vmap(jnp.dot, (0, None)), (None, 0)), X, Y, rtol=1e-5, atol=1e-5)


@program
def scan_and_loops():
    close(lambda x: lax.scan(lambda c, r: (c * 0.9 + r, c.sum()), x[0], x), X, rtol=1e-5)
    close(lambda x: lax.fori_loop(0, 10, lambda i, c: c * 0.5 + i, x), X)
    equal(lambda n: lax.while_loop(lambda c: c < 100, lambda c: c * 2 + 1, n), jnp.int32(1))
    close(jax.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c + r), None), x[0], x)[0].sum()), X)
    equal(lambda x: lax.associative_scan(jnp.add, x), np.arange(10))


@program
def conditionals():
    def f(p, x):
        return lax.cond(p, lambda x: x + 1, lambda x: x * 2, x)

    equal(f, True, X)
    equal(f, False, X)
    equal(lambda i, x: lax.switch(i, [jnp.sin, lambda x: x, jnp.negative], x), 2, X)


# ---- Families of operations ----------------------------------------------------------------------


@program
def sorting():
    equal(jnp.sort, X)
    equal(lambda x: jnp.argsort(x, axis=0), X)
    equal(lambda x: lax.top_k(x, 3), X)
    equal(lambda x: lax.sort((x, jnp.flip(x)), num_keys=2), np.array([3, 1, 3, 2, 1]))
    equal(lambda x: jnp.median(x, axis=1), X)


@program
def random_bits():
    key = jax.random.key(7)
    equal(lambda k: jax.random.bits(k, (1000,)), key)
    equal(lambda k: jax.random.bits(jax.random.fold_in(k, 3), (7, 3), jnp.uint8), key)
    equal(lambda k: jax.random.permutation(k, 100), key)
    equal(lambda k: jax.random.randint(k, (50,), 0, 1000), key)
    equal(lambda k: jax.random.uniform(k, (100,)), key)
    close(lambda k: jax.random.normal(k, (100,)), key, rtol=1e-5)
    equal(lambda k: jax.random.split(k, 5), jax.random.PRNGKey(0))
    equal(lambda k: jax.random.bits(k, (10,)), jax.random.key(1, impl="rbg"))


@program
def fourier_transforms():
    close(jnp.fft.fft, X, rtol=1e-4, atol=1e-4)
    close(jnp.fft.irfft2, X.astype(np.complex64), rtol=1e-4, atol=1e-4)
    close(jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()), X, rtol=1e-4, atol=1e-4)


@program
def linear_algebra():
    a = X @ X.T + 8 * np.eye(8, dtype=np.float32)
    close(jnp.linalg.cholesky, a, rtol=1e-4, atol=1e-5)
    close(lambda a, b: jnp.linalg.solve(a, b), a, Y, rtol=1e-4, atol=1e-4)
    close(lambda a: jnp.abs(jnp.linalg.qr(a)[1]), X, rtol=1e-3, atol=1e-4)
    close(lambda a: jnp.linalg.svd(a)[1], X, rtol=1e-4, atol=1e-4)
    close(jnp.linalg.eigvalsh, a, rtol=1e-4, atol=1e-4)
    close(lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), X, rtol=1e-3, atol=1e-3)
    close(jnp.linalg.det, X, rtol=1e-3)
    close(jnp.linalg.inv, a, rtol=1e-4, atol=1e-4)
    close(
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), a, Y, rtol=1e-4, atol=1e-4
    )
    close(jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), a, rtol=1e-3, atol=1e-4)
    close(jax.scipy.linalg.expm, X * 0.1, rtol=1e-4, atol=1e-4)


@program
def gather_and_scatter():
    i = np.array([0, 3, 3, 7])
    equal(lambda x: x[i], X)
    close(lambda x: x.at[i].add(1.5), X)
    close(lambda x: x.at[i, i].multiply(2.0), X)
    equal(lambda x: x.at[i].max(0.5), X)
    equal(lambda x: lax.dynamic_slice(x, (2, 3), (4, 4)), X)
    equal(lambda x, n: lax.dynamic_update_slice(x, Y[:2, :2], (n, n)), X, 6)
    close(lambda x: jax.ops.segment_sum(x, np.array([0, 0, 1, 2, 2, 2, 1, 0]), 3), X, rtol=1e-5)
    close(jax.grad(lambda x: (x[i] ** 2).sum()), X)


@program
def convolutions():
    x, w = normal(2, 3, 9, 9), normal(4, 3, 3, 3, seed=2)
    for stride, padding in ((1, "SAME"), (2, "VALID")):
        close(
            lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), padding),  # noqa: B023
            x, w, rtol=1e-4, atol=1e-4,
        )  # fmt: skip
    close(
        jax.grad(lambda w: (lax.conv_general_dilated(x, w, (1, 1), "SAME") ** 2).sum()),
        w, rtol=1e-3, atol=1e-3,
    )  # fmt: skip
    close(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), x)


@program
def reductions():
    close(lambda x: (x.sum(), x.mean(0), x.max(1), x.prod(), jnp.var(x)), X, rtol=1e-4)
    equal(lambda x: (x.argmax(1), x.argmin(), (x > 0).any(), jnp.cumsum(x > 0)), X)
    close(lambda x: jax.nn.softmax(x), X)
    close(lambda x: jax.scipy.special.logsumexp(x, 1), X)


@program
def dtypes():
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"):
        equal(lambda x: x.astype(name).astype(jnp.float32), X)  # noqa: B023
        if not name.startswith("float8"):
            close(lambda x: x.astype(name) * 2 + 1, X, rtol=1e-2)  # noqa: B023
    for name in ("int4", "uint4", "int8", "uint16", "int32"):
        equal(lambda x: (x * 3).astype(name), X)  # noqa: B023
        held = jnp.asarray(np.array([0, 1, 3, 7]), name)
        check(np.asarray(held).tolist() == [0, 1, 3, 7], name)
        check(np.asarray(held + held.dtype.type(0)).tolist() == [0, 1, 3, 7], name)
    close(lambda x: jnp.exp(x + 1j * x), X[0], rtol=1e-5)
    close(lambda x: jnp.conj(x) @ x.T, X + 1j * Y, rtol=1e-4, atol=1e-4)
    equal(lambda x: ~(x > 0) ^ True, X)
    with jax.enable_x64(True):
        close(lambda x: jnp.sin(x) + 1, X.astype(np.float64), rtol=1e-14, atol=1e-15)
        equal(lambda x: x * 3, np.arange(5, dtype=np.int64))


# ---- Buffers -------------------------------------------------------------------------------------


@program
def shapes_of_every_kind():
    equal(lambda x: x + 1, np.float32(2))
    equal(lambda x: x + 1, np.zeros((0, 3), np.float32))
    check(jax.jit(lambda x: ())(1) == ())
    equal(lambda x: (x, x, x + 1, 3), X)
    equal(lambda *xs: sum(xs), *[np.float32(n) for n in range(40)])
    equal(lambda x: x.T, np.asfortranarray(X))
    equal(lambda x: x + 1, X[::2, ::-1])


@program
def host_memory_is_shared_and_not_written():
    a = np.arange(1024, dtype=np.float32)
    held = jax.device_put(a)
    check(np.asarray(held).tolist() == a.tolist())
    result = jax.jit(lambda x: x)(a)
    a[0] = 5
    check(np.asarray(result)[0] == 0, "a result shares the caller's memory")
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    b = np.zeros(1024, np.float32)
    check(np.asarray(f(b))[0] == 1)
    check(b[0] == 0, "a donated host array was written")


@program
def to_numpy_without_a_copy():
    x = jnp.arange(12.0).reshape(3, 4)
    one, two = np.asarray(x), np.asarray(x)
    check(one.ctypes.data == x.unsafe_buffer_pointer(), "copied")
    check(one.ctypes.data == two.ctypes.data)
    check(not one.flags.writeable)
    view = memoryview(x)
    x.delete()
    check(view.tobytes() == np.arange(12, dtype=np.float32).tobytes())
    y = jnp.arange(5)
    kept = np.asarray(y)
    del y
    gc.collect()
    check(kept.tolist() == [0, 1, 2, 3, 4])


@program
def donation():
    f = jax.jit(lambda x, y: (x + 1, y * 2), donate_argnums=0)
    x, y = jnp.arange(100_000, dtype=jnp.float32), jnp.ones(3)
    place = x.unsafe_buffer_pointer()
    a, b = f(x, y)
    check(x.is_deleted() and not y.is_deleted())
    check(a.unsafe_buffer_pointer() == place, "a donated buffer's memory was not used")
    check(float(a[5]) == 6 and float(b[0]) == 2)
    raises("deleted", lambda: x + 1)
    kept = jnp.arange(100.0)
    view = np.asarray(kept)
    g = jax.jit(lambda x: x + 1, donate_argnums=0)
    g(kept)
    check(view[3] == 3, "memory that NumPy reads was written")
    z = jnp.arange(4.0)
    raises("donate", lambda: jax.jit(lambda a, b: a + b, donate_argnums=0)(z, z))


@program
def deletion():
    x = jnp.arange(3)
    x.delete()
    check(x.is_deleted())
    raises("deleted", lambda: np.asarray(x))
    raises("deleted", lambda: x + 1)
    for _ in range(50):
        y = jnp.zeros(1 << 20) + 1
        del y


@program
def device_put():
    x = jax.device_put(X, jax.devices()[0])
    equal_to = jax.device_put(x, OWN)
    check(equal_to.devices() == {OWN})
    np.testing.assert_array_equal(np.asarray(equal_to), X)
    back = jax.device_put(equal_to, jax.devices()[0])
    np.testing.assert_array_equal(np.asarray(back), X)
    host = jax.device_put(x, x.sharding.with_memory_kind("pinned_host"))
    check(host.sharding.memory_kind == "pinned_host")
    np.testing.assert_array_equal(np.asarray(host), X)
    copy = jnp.array(x, copy=True)
    check(copy.unsafe_buffer_pointer() != x.unsafe_buffer_pointer())


@program
def dlpack():
    x = jnp.arange(6.0).reshape(2, 3)
    shared = np.from_dlpack(x)
    check(shared.tolist() == [[0, 1, 2], [3, 4, 5]])
    y = jnp.from_dlpack(np.arange(4, dtype=np.int32))
    check((y + 1).tolist() == [1, 2, 3, 4])


@program
def layouts():
    from jax.experimental.layout import Format, Layout

    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    x = jax.device_put(X, Format(Layout((1, 0)), one))
    check(x.format.layout.major_to_minor == (1, 0))
    np.testing.assert_array_equal(np.asarray(x), X)
    f = jax.jit(lambda x: x + 1, out_shardings=Format(Layout((1, 0)), one))
    y = f(X)
    check(y.format.layout.major_to_minor == (1, 0))
    np.testing.assert_array_equal(np.asarray(y), X + 1)
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda y: y * 2)(y)), (X + 1) * 2)


@program
def threads():
    f = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    expected = float(f(X))
    found, errors = [], []

    def work(n):
        try:
            g = jax.jit(lambda x: jnp.sin(x + n))
            for _ in range(20):
                found.append(float(f(X)))
                g(X).block_until_ready()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    all_threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for one in all_threads:
        one.start()
    for one in all_threads:
        one.join()
    check(not errors, errors)
    check(set(found) == {expected})


# ---- Callbacks, custom calls and errors ----------------------------------------------------------


@program
def pure_callbacks():
    def host(x, y):
        check(isinstance(x, np.ndarray) or hasattr(x, "shape"))
        return np.asarray(x) * 2, np.asarray(y).sum()

    shapes = (jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32))
    f = jax.jit(lambda x, y: jax.pure_callback(host, shapes, x + 1, y))
    a, b = f(X, Y)
    np.testing.assert_allclose(np.asarray(a), (X + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(float(b), Y.sum(), rtol=1e-5)
    g = jax.jit(
        jax.vmap(
            lambda x: jax.pure_callback(
                np.sin, jax.ShapeDtypeStruct((8,), jnp.float32), x, vmap_method="expand_dims"
            )
        )
    )
    np.testing.assert_allclose(np.asarray(g(X)), np.sin(X), rtol=1e-6)


@program
def callbacks_that_call_programs():
    big = jnp.ones((300, 300))

    def host(x):
        y = jnp.asarray(np.asarray(x))
        for _ in range(4):
            y = jnp.tanh(y @ big * 1e-3)
        return np.asarray(y)

    f = jax.jit(
        lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((300, 300), jnp.float32), x) + 1
    )
    outs = [f(big) for _ in range(8)]
    for out in outs:
        check(np.isfinite(np.asarray(out)).all())


@program
def ordered_and_unordered_effects():
    from jax.experimental import io_callback

    seen = []
    f = jax.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x, ordered=True))
    for n in range(10):
        f(n)
    jax.effects_barrier()
    check(seen == list(range(10)), seen)

    def body(i, carry):
        io_callback(lambda v: seen.append(int(v)), None, i, ordered=True)
        return carry + i

    seen.clear()
    check(int(jax.jit(lambda n: lax.fori_loop(0, n, body, 0))(5)) == 10)
    jax.effects_barrier()
    check(seen == [0, 1, 2, 3, 4], seen)
    seen.clear()
    jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x.sum()))(X)
    jax.effects_barrier()
    check(len(seen) == 1)


@program
def debug_prints():
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.jit(lambda x: jax.debug.print("x is {x}", x=x))(jnp.float32(2.5))
        jax.effects_barrier()
    check(text.getvalue() == "x is 2.5\n", text.getvalue())


@program
def errors_of_callbacks():
    def host(_):
        raise ValueError("no such thing")

    f = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x))
    raises("no such thing", lambda: f(1.0).block_until_ready())
    check(float(jax.jit(lambda x: x + 1)(1.0)) == 2)


@program
def custom_calls_of_users():
    raises(
        "no_such_target",
        lambda: jax.jit(
            lambda x: jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((8, 8), jnp.float32))(
                x
            )
        )(X),
    )


@program
def checks_of_nan():
    jax.config.update("jax_debug_nans", True)
    try:
        raises("nan", lambda: jax.jit(jnp.log)(jnp.float32(-1.0)))
    finally:
        jax.config.update("jax_debug_nans", False)


# ---- Compilation ---------------------------------------------------------------------------------


@program
def ahead_of_time():
    lowered = jax.jit(lambda x: jnp.sin(x) @ x).lower(X)
    compiled = lowered.compile()
    np.testing.assert_allclose(np.asarray(compiled(X)), np.sin(X) @ X, rtol=1e-4, atol=1e-5)
    cost = compiled.cost_analysis()
    check((cost[0] if isinstance(cost, list) else cost)["flops"] > 1000, cost)
    memory = compiled.memory_analysis()
    check(memory.argument_size_in_bytes == X.nbytes, memory)
    check("dot" in compiled.as_text())


@program
def serialized_programs():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x, y: jnp.sin(x) @ y + 1).lower(X, Y).compile()
    payload = serialize_executable.serialize(compiled)
    again = serialize_executable.deserialize_and_load(*payload)
    np.testing.assert_array_equal(np.asarray(again(X, Y)), np.asarray(compiled(X, Y)))


@program
def exported_programs():
    from jax import export

    found = export.export(jax.jit(lambda x: jnp.tanh(x) + 1))(X).call(X)
    np.testing.assert_allclose(np.asarray(found), np.tanh(X) + 1, rtol=1e-5)


@program
def memory_statistics():
    stats = jax.devices()[0].memory_stats()
    check(stats is None or stats["bytes_in_use"] >= 0, stats)


@program
def asynchronous_dispatch():
    import time

    f = jax.jit(lambda x: lax.fori_loop(0, 200, lambda _, y: jnp.tanh(y @ x * 1e-3), x))
    x = jnp.ones((256, 256))
    f(x).block_until_ready()
    begin = time.perf_counter()
    y = f(x)
    called = time.perf_counter() - begin
    z = f(y)
    z.block_until_ready()
    done = time.perf_counter() - begin
    check(called < done / 3, called, done)


@program
def training():
    def loss(parameters, x, y):
        for w, b in parameters[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = parameters[-1]
        return ((x @ w + b - y) ** 2).mean()

    @jax.jit
    def step(parameters, x, y):
        value, grads = jax.value_and_grad(loss)(parameters, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.05 * g, parameters, grads)

    parameters = [
        (normal(8, 16) * 0.3, np.zeros(16, np.float32)),
        (normal(16, 1) * 0.3, np.zeros(1, np.float32)),
    ]
    x, y = normal(64, 8, seed=3), normal(64, 1, seed=4)
    losses = []
    for _ in range(50):
        value, parameters = step(parameters, x, y)
        losses.append(float(value))
    check(losses[-1] < 0.7 * losses[0], losses[0], losses[-1])


def main():
    for name in sys.argv[1:] or PROGRAMS:
        problem = None
        try:
            PROGRAMS[name]()
        except BaseException:
            problem = traceback.format_exc()
        print(json.dumps([name, problem]), flush=True)


if __name__ == "__main__":
    main()
