"""JAX functions like those that users export: each is a callable with example arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# By name: a function, and arguments for it.
Table = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def functions() -> Table:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    random = np.random.default_rng(0)

    def f(*shape: int) -> Any:
        return jnp.asarray(random.normal(size=shape), jnp.float32)

    def positive(*shape: int) -> Any:
        return jnp.asarray(random.random(size=shape) + 0.1, jnp.float32)

    def i(*shape: int, below: int = 5) -> Any:
        return jnp.asarray(random.integers(0, below, size=shape), jnp.int32)

    square = f(4, 4)
    definite = square @ square.T + 4 * jnp.eye(4)
    table: Table = {}

    unary = (
        "abs acos asin atan ceil cos cosh exp exp2 expm1 floor log log10 log1p log2 negative "
        "positive reciprocal rint round sign sin sinh sqrt square tan tanh trunc isnan isinf "
        "isfinite signbit cbrt degrees radians sinc"
    )
    for name in unary.split():
        table[name] = (getattr(jnp, name), (positive(3, 4) * 0.9,))
    binary = (
        "add subtract multiply divide maximum minimum power arctan2 hypot logaddexp equal "
        "not_equal less less_equal greater greater_equal copysign heaviside fmod mod floor_divide"
    )
    for name in binary.split():
        table[name] = (getattr(jnp, name), (positive(3, 4), positive(4)))
    for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm".split():
        table[name] = (getattr(jnp, name), (i(6), i(6)))
    for name in "sum prod mean var std max min argmax argmin any all cumsum cumprod median".split():
        table[f"{name}_axis"] = (functools.partial(getattr(jnp, name), axis=1), (positive(3, 4),))
        if name not in ("median",):
            table[f"{name}_all"] = (getattr(jnp, name), (positive(3, 4),))
    for name in "relu gelu silu softmax log_softmax sigmoid softplus elu selu leaky_relu".split():
        table[f"nn_{name}"] = (getattr(jax.nn, name), (f(3, 5),))
    for name in "erf erfinv gammaln digamma logsumexp expit i0 i1 ndtri".split():
        table[f"special_{name}"] = (getattr(jax.scipy.special, name), (positive(5) * 0.8,))

    table |= {
        "matmul": (jnp.matmul, (f(3, 4), f(4, 5))),
        "batched_matmul": (jnp.matmul, (f(2, 3, 4), f(2, 4, 5))),
        "einsum": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), (f(2, 3, 4), f(2, 5, 4))),
        "tensordot": (lambda a, b: jnp.tensordot(a, b, 2), (f(2, 3, 4), f(3, 4, 5))),
        "outer": (jnp.outer, (f(3), f(4))),
        "transpose": (lambda a: a.transpose(2, 0, 1), (f(2, 3, 4),)),
        "reshape": (lambda a: a.reshape(4, -1), (f(2, 3, 4),)),
        "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), (f(2, 3), f(2, 1))),
        "stack": (lambda a, b: jnp.stack([a, b]), (f(2, 3), f(2, 3))),
        "split": (lambda a: jnp.split(a, 3), (f(6, 2),)),
        "pad": (lambda a: jnp.pad(a, ((1, 2), (0, 1))), (f(2, 3),)),
        "pad_reflect": (lambda a: jnp.pad(a, 2, mode="reflect"), (f(5),)),
        "roll": (lambda a: jnp.roll(a, 2, 0), (f(5, 2),)),
        "flip": (jnp.flip, (f(3, 4),)),
        "tril": (jnp.tril, (f(4, 4),)),
        "triu": (jnp.triu, (f(3, 5),)),
        "diag": (jnp.diag, (f(4),)),
        "trace": (jnp.trace, (f(4, 4),)),
        "where": (lambda a, b: jnp.where(a > b, a, b), (f(3, 4), f(3, 4))),
        "clip": (lambda a: jnp.clip(a, -0.5, 0.5), (f(3, 4),)),
        "take": (lambda a, n: jnp.take(a, n, axis=1), (f(3, 5), i(4))),
        "gather": (lambda a, n, m: a[n, m], (f(5, 5), i(3), i(3))),
        "index_update": (lambda a, n: a.at[n].set(1.0), (f(5, 2), i(3))),
        "index_add": (lambda a, n, v: a.at[n].add(v), (f(5, 2), i(3), f(3, 2))),
        "slices": (lambda a: a[1:4:2, ::-1], (f(5, 3),)),
        "sort": (lambda a: jnp.sort(a, axis=0), (f(5, 3),)),
        "argsort": (jnp.argsort, (f(7),)),
        "searchsorted": (lambda a, v: jnp.searchsorted(jnp.sort(a), v), (f(7), f(3))),
        "unique": (lambda a: jnp.unique(a, size=4), (i(8),)),
        "bincount": (lambda a: jnp.bincount(a, length=5), (i(9),)),
        "histogram": (lambda a: jnp.histogram(a, bins=4), (f(20),)),
        "top_k": (lambda a: lax.top_k(a, 3), (f(2, 7),)),
        "one_hot": (lambda a: jax.nn.one_hot(a, 5), (i(4),)),
        "interp": (jnp.interp, (f(5), jnp.arange(4.0), f(4))),
        "convolve": (jnp.convolve, (f(7), f(3))),
        "meshgrid": (lambda a, b: jnp.meshgrid(a, b), (f(3), f(2))),
        "linspace": (lambda a: jnp.linspace(a, 2.0, 5), (jnp.float32(1),)),
        "vander": (lambda a: jnp.vander(a, 3), (f(4),)),
        "kron": (jnp.kron, (f(2, 2), f(3, 2))),
        "cross": (jnp.cross, (f(3), f(3))),
        "complex": (lambda a: jnp.exp(1j * a) * (2 + 1j), (f(4),)),
        "conj": (lambda a: jnp.conj(a * 1j).real, (f(4),)),
        "cast": (lambda a: a.astype(jnp.bfloat16) * 3, (f(4),)),
        "half": (lambda a: jnp.tanh(a.astype(jnp.float16)), (f(4),)),
        "integers": (lambda a: (a * 3 // 2) % 4, (i(5),)),
        "unsigned": (lambda a: a.astype(jnp.uint8) + 250, (i(5),)),
        "bits": (lambda a: lax.bitcast_convert_type(a, jnp.int32) & 255, (f(4),)),
        "popcount": (lambda a: lax.population_count(a) + lax.clz(a), (i(4, below=99),)),
        "fft": (jnp.fft.fft, (f(8),)),
        "rfft": (jnp.fft.rfft, (f(2, 9),)),
        "ifft2": (lambda a: jnp.fft.ifft2(a).real, (f(4, 6),)),
        "irfft": (lambda a: jnp.fft.irfft(jnp.fft.rfft(a), n=6), (f(6),)),
        "cholesky": (jnp.linalg.cholesky, (definite,)),
        "solve": (jnp.linalg.solve, (definite, f(4, 2))),
        "inv": (jnp.linalg.inv, (definite,)),
        "det": (jnp.linalg.det, (square,)),
        "qr": (jnp.linalg.qr, (f(4, 3),)),
        "svd": (lambda a: jnp.linalg.svd(a)[1], (f(4, 3),)),
        "eigh": (lambda a: jnp.linalg.eigh(a)[0], (definite,)),
        "lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], (f(5, 3), f(5))),
        "triangular_solve": (
            lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            (jnp.tril(definite), f(4, 2)),
        ),
        "scan": (lambda a: lax.scan(lambda c, v: (c + v, c * v), 0.0, a), (f(6),)),
        "while": (
            lambda a: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, a)),
            (f(3),),
        ),
        "fori": (lambda a: lax.fori_loop(0, 4, lambda n, c: c + n * a, a), (f(3),)),
        "cond": (lambda a: lax.cond(a[0] > 0, lambda v: v + 1, lambda v: v - 1, a), (f(3),)),
        "switch": (
            lambda n, a: lax.switch(n, [jnp.sin, jnp.cos, lambda v: v * 2], a),
            (jnp.int32(1), f(3)),
        ),
        "map": (lambda a: lax.map(lambda v: jnp.sum(v) * v, a), (f(3, 2),)),
        "associative_scan": (lambda a: lax.associative_scan(jnp.multiply, a), (f(5),)),
        "conv": (
            lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME"),
            (f(2, 3, 6, 6), f(4, 3, 3, 3)),
        ),
        "conv_groups": (
            lambda a, k: lax.conv_general_dilated(
                a, k, (2, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                feature_group_count=2, rhs_dilation=(1, 2),
            ),
            (f(1, 8, 8, 4), f(3, 3, 2, 6)),
        ),
        "conv_transpose": (
            lambda a, k: lax.conv_transpose(a, k, (2, 2), "SAME"),
            (f(1, 4, 4, 2), f(3, 3, 2, 3)),
        ),
        "max_pool": (
            lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
            (f(2, 6, 6),),
        ),
        "avg_pool": (
            lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 3), (1, 1), "SAME") / 3,
            (f(2, 6),),
        ),
        "variadic_reduce": (
            lambda a, b: lax.reduce(
                (a, b), (0.0, 0.0), lambda x, y: (x[0] + y[0], x[1] * y[1]), (0,)
            ),
            (f(4, 3), f(4, 3)),
        ),
        "dynamic_slice": (
            lambda a, n: lax.dynamic_slice(a, (n, 0), (2, 3)),
            (f(5, 3), jnp.int32(2)),
        ),
        "dynamic_update": (
            lambda a, b, n: lax.dynamic_update_slice(a, b, (n, 1)),
            (f(5, 3), f(2, 2), jnp.int32(2)),
        ),
        "random_normal": (lambda: jax.random.normal(jax.random.key(3), (4,)), ()),
        "random_uniform": (lambda k: jax.random.uniform(jax.random.wrap_key_data(k), (5,)),
                           (jnp.array([1, 2], jnp.uint32),)),
        "random_choice": (lambda: jax.random.permutation(jax.random.key(1), 6), ()),
        "layer_norm": (
            lambda a: (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5),
            (f(3, 8),),
        ),
        "attention": (
            lambda q, k, v: jax.nn.softmax(q @ k.T / 2.0) @ v, (f(5, 4), f(6, 4), f(6, 3)),
        ),
    }  # fmt: skip

    def mlp(w: Any, b: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w + b) ** 2)

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID").sum()

    table |= {
        "grad_mlp": (jax.grad(mlp, argnums=(0, 1)), (f(3, 4), f(4), f(5, 3))),
        "value_and_grad": (jax.value_and_grad(mlp), (f(3, 4), f(4), f(5, 3))),
        "grad_max_pool": (jax.grad(pooled), (f(5, 5),)),
        "grad_scan": (
            jax.grad(lambda a: lax.scan(lambda c, v: (c * v + 1, c), 1.0, a)[0]), (f(4),),
        ),
        "grad_gather": (jax.grad(lambda a, n: (a[n] ** 2).sum()), (f(5, 2), i(3))),
        "grad_conv": (
            jax.grad(lambda k, a: (lax.conv(a, k, (1, 1), "SAME") ** 2).sum()),
            (f(2, 3, 3, 3), f(1, 3, 5, 5)),
        ),
        "grad_sort": (jax.grad(lambda a: (jnp.sort(a) * jnp.arange(5.0)).sum()), (f(5),)),
        "hessian": (jax.hessian(lambda a: (a**3).sum()), (f(3),)),
        "jacfwd": (jax.jacfwd(jnp.sin), (f(3),)),
        "vmap_mlp": (jax.vmap(mlp, (None, None, 0)), (f(3, 4), f(4), f(6, 5, 3))),
        "vmap_grad": (jax.vmap(jax.grad(mlp), (None, None, 0)), (f(3, 4), f(4), f(6, 5, 3))),
        "vmap_solve": (jax.vmap(jnp.linalg.solve), (jnp.stack([definite] * 2), f(2, 4))),
    }  # fmt: skip
    return table
