"""lamella.bridge.jax: operators of a library as functions of JAX."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy


def plain(a, b):
    x = a**3 + jnp.exp(a * 0.1)
    return ((x + 0.25 * (b - x)) ** 2).sum()


def inputs():
    r = np.random.default_rng(0)
    return jnp.asarray(r.random(4, np.float32)), jnp.asarray(r.random(4, np.float32))


TRANSFORMS = {
    "call": lambda f, a, b: f(a, b),
    "jit": lambda f, a, b: jax.jit(f)(a, b),
    "grad": lambda f, a, b: jax.grad(f, (0, 1))(a, b),
    "jit of grad": lambda f, a, b: jax.jit(jax.grad(f, (0, 1)))(a, b),
    "jvp": lambda f, a, b: jax.jvp(f, (a, b), (b, a)),
    "vjp": lambda f, a, b: jax.vjp(f, a, b)[1](jnp.ones(())),
    "linearize": lambda f, a, b: jax.linearize(f, a, b)[1](b, a),
    "vmap": lambda f, a, b: jax.vmap(f, (0, None))(jnp.stack([a, b]), b),
    "vmap of another axis": lambda f, a, b: jax.vmap(f, (1, None))(jnp.stack([a, b], 1), b),
    "jit of vmap of grad": lambda f, a, b: jax.jit(jax.vmap(jax.grad(f), (0, None)))(
        jnp.stack([a, b]), b
    ),
    "grad of vmap": lambda f, a, b: jax.grad(
        lambda b: jax.vmap(f, (0, None))(jnp.stack([a, a * 2]), b).sum()
    )(b),
    "vmap of vmap": lambda f, a, b: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(
        jnp.stack([a, b]), jnp.stack([a, b, a + b])
    ),
    "jacfwd": lambda f, a, b: jax.jacfwd(f)(a, b),
    "jacrev": lambda f, a, b: jax.jacrev(f)(a, b),
    "hessian": lambda f, a, b: jax.jit(jax.hessian(f, (0, 1)))(a, b),
    "reverse over reverse": lambda f, a, b: jax.jacrev(jax.jacrev(f))(a, b),
    "third derivative": lambda f, a, b: jax.grad(
        lambda x: jax.grad(lambda y: jax.grad(f)(y, b).sum())(x).sum()
    )(a),
    "scan": lambda f, a, b: jax.lax.scan(lambda c, x: (c + f(x, b), c), 0.0, jnp.stack([a, b])),
    "remat": lambda f, a, b: jax.grad(jax.checkpoint(f))(a, b),
}


@pytest.mark.filterwarnings("ignore:vmap. cases")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms(bridged, transform):
    found, expected = (TRANSFORMS[transform](f, *inputs()) for f in (bridged, plain))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4), found, expected)


def test_arguments(ops):
    x = jnp.arange(3.0)
    made = ops.everything([x, x], x, 1, 2.0, True, "abc", [1, 2], [0.5], ois=[5], bs=[True, False])
    np.testing.assert_allclose(made, (2 * x + 1114.5) * x)
    np.testing.assert_allclose(ops.scaled(x, 2.0), 2 * x)
    first, second = ops.parts(x, [1, 2], "first")
    assert first.tolist() == [0] and second.tolist() == [0, 1]
    assert ops.row(x, 2) == 2 and ops.same(x).tolist() == [0, 1, 2]
    assert ops.wave(x.astype(jnp.bfloat16)).dtype == jnp.bfloat16
    assert ops.cube(jnp.zeros((0, 3))).shape == (0, 3)
    assert ops.total(jnp.ones((2, 3)), [1]).tolist() == [3, 3]


def test_batches_of_pointwise_operators_are_custom_calls(ops):
    x = jnp.arange(6.0).reshape(2, 3)
    for f in (ops.cube, jax.grad(lambda v: ops.grow(v).sum())):
        text = jax.jit(jax.vmap(f)).lower(x).as_text()
        assert "lamella_bridge" in text and "callback" not in text
    np.testing.assert_allclose(
        jax.jit(jax.vmap(jax.grad(lambda v: ops.cube(v).sum())))(x), 3 * x**2
    )


def test_lists_are_differentiated(ops):
    x = jnp.arange(3.0)
    np.testing.assert_allclose(jax.grad(lambda v: ops.squares([v, v * 2]))(x), 10 * x)
    np.testing.assert_allclose(jax.hessian(lambda v: ops.squares([v, v]))(x), 4 * np.eye(3))


def test_no_formula_for_tangents(ops):
    hessian = jax.hessian(lambda v: ops.cube_back(v).sum())(jnp.array([1.0, 2.0]))
    assert hessian.tolist() == [[6, 0], [0, 12]]


def test_no_derivative(ops):
    x = jnp.ones(2)
    assert jax.grad(lambda v: ops.steps(v).sum())(x).tolist() == [0, 0]
    with pytest.raises(Exception, match="cases::opaque: has no derivative"):
        jax.grad(lambda v: ops.opaque(v).sum())(x)


def test_errors(ops):
    x = jnp.ones(2)
    with pytest.raises(Exception, match="fail: expected 'kind' to be kind, got type"):
        jax.jit(lambda v: ops.fail(v, "type"))(x).block_until_ready()
    with pytest.raises(RuntimeError, match=r"midpoint: expected 'b' to have the shape \[2\], got"):
        ops.midpoint(x, jnp.ones(3))
    with pytest.raises(NotImplementedError, match="cases::pair: has results that are no tensors"):
        ops.pair(x, 2)
    with pytest.raises(NotImplementedError, match="raise_by_: writes its arguments"):
        ops.raise_by_(x)
    with pytest.raises(TypeError, match="cube: expected 'x', of type Tensor; it is missing"):
        ops.cube()
    with pytest.raises(TypeError, match="cube: expected 'x' to be a tensor, got str"):
        ops.cube("x")


def program(f, *args):
    return jax.jit(f).lower(*args).as_text()


def test_derivatives_that_are_formulas_are_a_part_of_the_program(ops):
    a, b = inputs()
    gradient = jax.grad(lambda a: ops.cube(a).sum())
    for f in (gradient, jax.grad(lambda a: gradient(a).sum()), jax.vmap(jax.grad(ops.cube))):
        text = program(f, a)
        assert "custom_call" not in text and "stablehlo.multiply" in text
    np.testing.assert_allclose(jax.jit(gradient)(a), 3 * a**2, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.hessian(lambda a: ops.cube(a).sum()))(a),
                               np.diag(6 * a), rtol=1e-6)  # fmt: skip
    text = program(jax.grad(lambda a, b: ops.midpoint(a, b, 0.25).sum(), (0, 1)), a, b)
    assert "lamella_bridge" not in text and "callback" not in text
    # What the derivative saves of the operator's own result stays its call.
    text = program(jax.grad(lambda a: ops.grow(a).sum()), a)
    assert "lamella_bridge" in text
    wide = a.astype(jnp.bfloat16)
    found = jax.jit(jax.grad(lambda a: ops.cube(a).astype(jnp.float32).sum()))(wide)
    assert found.dtype == jnp.bfloat16


# ---- Several devices: a process of its own, because their number is fixed when it begins ----

DEVICES = """
import sys
import jax, jax.numpy as jnp, numpy as np
import lamella.bridge
from jax.sharding import PartitionSpec as P

ops = lamella.bridge.jax(sys.argv[1]).cases
assert len(jax.devices()) == 2
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
x, w = jnp.arange(8.0).reshape(2, 4), jnp.arange(4.0)

def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5)

def each(f, ins=P("d"), outs=P("d")):
    return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)

same(jax.pmap(ops.cube)(x), x**3)
same(jax.pmap(jax.grad(lambda v: ops.cube(v).sum()))(x), 3 * x**2)
same(each(ops.cube)(x), x**3)
same(jax.jit(each(lambda a: ops.scaled(a, 2.0)))(x), 2 * x)
same(jax.jit(each(lambda a: jax.lax.psum(ops.cube(a), "d"), outs=P()))(x), (x**3).sum(0)[None])
same(jax.jit(each(jax.vmap(jax.vmap(jax.grad(jax.grad(ops.cube))))))(x), 6 * x)
same(jax.jvp(each(ops.grow), (x,), (x,))[1], x * jnp.exp(x))

# The second argument is the same on all devices: its gradient is summed over them.
def loss(x, w):
    f = lambda a, b: ops.midpoint(ops.cube(a[0]), b, 0.25)[None]
    return each(f, (P("d"), P()))(x, w).sum()

for found, expected in zip(jax.jit(jax.grad(loss, (0, 1)))(x, w), (2.25 * x**2, [0.5] * 4)):
    same(found, expected)
sharded = jax.device_put(x, jax.sharding.NamedSharding(mesh, P("d")))
same(jax.jit(ops.cube)(sharded), x**3)
"""


def test_several_devices(library):
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", DEVICES, str(library)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


THREADS = """
import os, sys, threading
import jax, jax.numpy as jnp, numpy as np
import lamella.bridge

ops = lamella.bridge.jax(sys.argv[1]).cases
x = jnp.asarray(np.random.default_rng(0).random(1 << 21, np.float32))
expected = np.asarray(2 * jnp.sin(x))  # JAX's threads exist now
jax.jit(ops.cube)(x[:8]).block_until_ready()
before = len(os.listdir("/proc/self/task"))
wave = jax.jit(ops.wave)
for _ in range(20):
    np.testing.assert_allclose(wave(x), expected, rtol=1e-5)
assert len(os.listdir("/proc/self/task")) == before

# Many loops at once, more than there are threads.
def work():
    for _ in range(10):
        np.testing.assert_allclose(wave(x), expected, rtol=1e-5)

threads = [threading.Thread(target=work) for _ in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
one = jax.jit(lambda v: ops.wave(v) + ops.wave(v * 2) + ops.wave(v * 3))
np.testing.assert_allclose(one(x), 2 * (jnp.sin(x) + jnp.sin(2 * x) + jnp.sin(3 * x)), rtol=1e-4,
                           atol=1e-5)
"""


def test_loops_run_on_the_threads_of_jax(library):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", THREADS, str(library)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert found.returncode == 0, found.stderr


def test_buffers_of_calls_that_fail_or_keep_results(ops):
    """Tensors of one call serve the next; each has the buffers of its own."""
    f = jax.jit(lambda a, b: ops.midpoint(a, b, 0.25))
    kept = [f(jnp.full(4, float(i)), jnp.zeros(4)) for i in range(20)]
    assert [float(y[0]) for y in kept] == [0.75 * i for i in range(20)]


def test_numbers_that_are_not_finite(ops):
    x = jnp.ones(2)
    for by in (math.inf, -math.inf):
        assert jax.jit(lambda x, by=by: ops.raise_by(x, by))(x).tolist() == [by, by]
    assert np.isnan(jax.vmap(lambda x: ops.raise_by(x, math.nan))(x)).all()


def test_whole_numbers_beyond_64_bits(ops):
    with pytest.raises(ValueError) as error:
        jax.jit(lambda x: ops.everything([x], None, 1 << 64, 1.0, True, "", [], []))(jnp.ones(1))
    assert str(error.value) == f"bridge: expected a number of 64 bits, got {1 << 64}"
