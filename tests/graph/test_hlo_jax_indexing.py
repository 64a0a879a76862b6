"""Indexing, random numbers, integer and special functions as JAX lowers them: the evaluator gives
JAX's results, including their types."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is the oracle")
hlo = pytest.importorskip("lamella.hlo")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(6, 5, 4)).astype(np.float32)
U = GENERATOR.normal(size=(6, 5, 4)).astype(np.float32)
INSIDE = np.array([0, 4, 1, 3, 2, 4])
ANYWHERE = np.array([0, 5, -1, 7, 2, -9])
GRID = np.array([[1, 3], [4, -2]])
KEY = np.array([1, 2], np.uint32)
LONG_KEY = np.array([1, 2, 3, 4], np.uint32)


def draws_of(implementation):
    def draws(data):
        key = jax.random.wrap_key_data(data, impl=implementation)
        one, other = jax.random.split(key)
        folded = jax.random.key_data(jax.random.fold_in(other, 3))
        return [jax.random.normal(one, (5, 3)), folded, jax.random.bits(other, (5,), jnp.uint16)]

    return draws


def distributions(key):
    return [
        jax.random.normal(key, (5, 3)),
        jax.random.uniform(key, (7,), jnp.float64),
        jax.random.bits(key, (3,), jnp.uint8),
        jax.random.permutation(key, 10),
        jax.random.categorical(key, jnp.zeros(5), shape=(6,)),
        jax.random.bernoulli(key, 0.3, (9,)),
    ]


def special_functions(x):
    return [
        jax.scipy.special.digamma(jnp.abs(x)),
        jax.scipy.special.gammaln(x),
        jax.scipy.special.erfinv(jnp.tanh(x)),
        jax.scipy.special.i0(x),
        jnp.nextafter(x, x + 1),
        jnp.frexp(x),
        jnp.ldexp(x, 3),
        jnp.modf(x),
        jnp.divmod(x, 0.3),
        jnp.float_power(jnp.abs(x), 1.5),
        jnp.angle(x + 1j),
    ]


def integer_functions(x):
    return [
        x // 3,
        x % 3,
        x >> 1,
        x << 2,
        jnp.left_shift(x, 40),
        jnp.gcd(x, 12),
        lax.population_count(x),
        lax.clz(x),
        lax.integer_pow(x, 3),
        ~x,
        jnp.packbits(x > 0),
        jnp.unpackbits(x.astype(jnp.uint8)),
    ]


def narrow_and_back(x):
    types = [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz, jnp.int4, jnp.uint4]
    return [x.astype(t).astype(jnp.float32) for t in [*types, jnp.bfloat16, jnp.float16]]


def pads(x):
    modes = ["reflect", "wrap", "edge", "symmetric", "linear_ramp"]
    return [jnp.pad(x, ((1, 2), (0, 1), (2, 2)), mode) for mode in modes]


def half_sum(x, u):
    x, u = x.astype(jnp.bfloat16), u.astype(jnp.bfloat16)
    return x.at[ANYWHERE].add(u).astype(jnp.float32)


FUNCTIONS = {
    **{
        f"take, {mode}": (lambda x, mode=mode: jnp.take(x, ANYWHERE, axis=1, mode=mode), X)
        for mode in ("fill", "clip", "wrap")
    },
    **{
        f"at {method}, {mode}": (
            lambda x, u, mode=mode, method=method: getattr(x.at[ANYWHERE], method)(u, mode=mode),
            X,
            U,
        )
        for mode in ("drop", "clip")
        for method in ("set", "add", "multiply", "min")
    },
    "at apply": (lambda x: x.at[ANYWHERE].apply(jnp.sin), X),
    "at add, bf16": (half_sum, X, U),
    "at multiply, c128": (lambda x, u: (x + 1j * u).at[ANYWHERE].multiply(u * 1j), X, U),
    "at add, u8": (lambda x: x.at[ANYWHERE].add(np.uint8(200)), np.arange(6, dtype=np.uint8) * 40),
    "at max, bool": (lambda x: x.at[ANYWHERE].max(True), np.zeros(6, bool)),
    "two arrays of indices": (lambda x: x[GRID, :, GRID], X[:5]),
    "slices and indices": (lambda x: x[1:4, GRID, ::-2], X),
    "vmap of an index": (jax.vmap(lambda x, i: x[i]), X, INSIDE),
    "vmap of at add": (jax.vmap(lambda x, i, u: x.at[i].add(u)), X, ANYWHERE, U[:, 0]),
    "vmap of dynamic_slice": (
        jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, i + 1), (2, 3))),
        X,
        ANYWHERE,
    ),
    "vmap of dynamic_update_slice": (
        jax.vmap(lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2), x.dtype), (i, 0))),
        X,
        ANYWHERE,
    ),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, ANYWHERE, 8), X),
    "segment_max": (lambda x: jax.ops.segment_max(x, INSIDE, 8), X),
    "gradient of take": (
        jax.grad(lambda x: jnp.sum(jnp.take(x, ANYWHERE, axis=0, mode="clip") ** 2)),
        X,
    ),
    "gradient of at multiply": (
        jax.grad(lambda x: jnp.sum(jnp.cos(x.at[ANYWHERE].multiply(2.0)))),
        X,
    ),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), X),
    "roll": (lambda x: jnp.roll(x, (2, -1), (0, 2)), X),
    "pads": (pads, X),
    "bincount": (lambda x: jnp.bincount(x, length=9), np.array([1, 2, 8, 1, 11])),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x), X),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=20), X),
    "distributions": (distributions, KEY),
    "draws with rbg": (draws_of("rbg"), LONG_KEY),
    "draws with unsafe_rbg": (draws_of("unsafe_rbg"), LONG_KEY),
    "special functions": (special_functions, X),
    "integer functions": (integer_functions, np.arange(-5, 11, dtype=np.int32)),
    "narrow types and back": (narrow_and_back, X * 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_jax_gives(name):
    function, *arguments = FUNCTIONS[name]
    with jax.enable_x64(True):
        jitted = jax.jit(function)
        text = jitted.lower(*arguments).as_text("hlo")
        want = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arguments))]
    got = [one.numpy() for one in hlo.evaluate(text, *arguments)]
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype
        tolerance = 0 if other.dtype.kind in "biu" else 3e-5
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance / 30)
