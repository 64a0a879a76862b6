"""JAX functions by family: models and their gradients, element types, empty and high-rank arrays,
NaN."""

from __future__ import annotations

import functools
from typing import Any

from jax_functions import Table


class Make:
    """Example arguments, the same on each run."""

    def __init__(self) -> None:
        import jax.numpy as jnp
        import numpy as np

        self.jnp = jnp
        self.random = np.random.default_rng(1)

    def __call__(self, *shape: int, dtype: Any = "float32") -> Any:
        return self.jnp.asarray(self.random.normal(size=shape), dtype)

    def complex(self, *shape: int, dtype: Any = "complex64") -> Any:
        values = self.random.normal(size=shape) + 1j * self.random.normal(size=shape)
        return self.jnp.asarray(values, dtype)

    def positive(self, *shape: int, dtype: Any = "float32") -> Any:
        return self.jnp.asarray(self.random.random(size=shape) + 0.2, dtype)

    def integers(self, *shape: int, low: int = 0, high: int = 5, dtype: Any = "int32") -> Any:
        return self.jnp.asarray(self.random.integers(low, high, size=shape), dtype)


def structured() -> Table:
    """Products, windows, sorts, reductions, transforms."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    f = Make()
    nan = jnp.asarray([[1.0, jnp.nan, -2.0], [jnp.inf, 0.0, -0.0], [-jnp.inf, 3.0, jnp.nan]])
    table: Table = {}
    for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
        for reverse in (False, True):
            table[f"{name}_reverse_{reverse}"] = (
                functools.partial(getattr(lax, name), axis=1, reverse=reverse),
                (f(3, 6),),
            )
    for name in "sum prod max min mean std argmax argmin".split():
        table[f"nan{name}"] = (functools.partial(getattr(jnp, f"nan{name}"), axis=1), (nan,))
        table[f"{name}_of_nan"] = (functools.partial(getattr(jnp, name), axis=0), (nan,))
    for name in "sort argsort".split():
        for descending in (False, True):
            table[f"{name}_of_nan_{descending}"] = (
                functools.partial(getattr(jnp, name), axis=-1, descending=descending),
                (nan,),
            )
    for kind in "fft ifft rfft irfft hfft ihfft".split():
        for n in (1, 5, 12, 17):
            table[f"{kind}_{n}"] = (functools.partial(getattr(jnp.fft, kind), n=n), (f(2, n),))
    for kind in "fftn ifftn rfftn irfftn fft2 rfft2 irfft2".split():
        table[kind] = (getattr(jnp.fft, kind), (f(2, 3, 4),))

    def pool(init: Any, op: Any, window: Any, strides: Any, padding: Any, **more: Any) -> Any:
        return lambda a: lax.reduce_window(a, init, op, window, strides, padding, **more)

    def conv(*window: Any, **more: Any) -> Any:
        return lambda a, k: lax.conv_general_dilated(a, k, *window, **more)

    wide = ("NHWC", "HWIO", "NHWC")
    table |= {
        "sort_two_keys": (
            lambda a, b, c: lax.sort((a, b, c), num_keys=2),
            (f.integers(20), f.integers(20), f(20)),
        ),
        "sort_unstable": (lambda a: lax.sort(a, is_stable=False), (f(31),)),
        "sort_booleans": (jnp.sort, (f.integers(9, high=2).astype(bool),)),
        "sort_complex": (jnp.sort, (f.complex(9),)),
        "sort_many": (jnp.sort, (f(1000),)),
        "lexsort": (lambda a, b: jnp.lexsort((a, b)), (f.integers(9), f.integers(9))),
        "partition": (lambda a: jnp.partition(a, 3), (f(9),)),
        "percentile": (lambda a: jnp.percentile(a, jnp.asarray([10.0, 50.0]), axis=0), (f(9, 2),)),
        "top_k_of_nan": (lambda a: lax.top_k(a, 2), (nan,)),
        "top_k_integers": (lambda a: lax.top_k(a, 4), (f.integers(2, 9),)),
        "approx_max_k": (lambda a: lax.approx_max_k(a, 3), (f(16),)),
        "reduce_and_or_xor": (
            lambda a: [lax.reduce(a, jnp.int32(s), op, (0,)) for s, op in
                       ((-1, lax.bitwise_and), (0, lax.bitwise_or), (0, lax.bitwise_xor))],
            (f.integers(6, 2, high=99),),
        ),
        "reduce_5d": (lambda a: a.sum((1, 3)), (f(2, 3, 2, 3, 2),)),
        "reduce_large": (jnp.sum, (f(300, 300),)),
        "reduce_odd": (lambda a: lax.reduce(a, 0.5, lambda x, y: jnp.tanh(x + 2 * y), (1,)),
                       (f(3, 4),)),
        "argmax_ties": (lambda a: jnp.argmax(a, 1), (f.integers(4, 9, high=3),)),
        "pool_negative_padding": (
            pool(0.0, lax.add, (2, 3), (1, 2), ((-1, 2), (3, -1))), (f(5, 6),),
        ),
        "pool_dilated": (
            pool(-jnp.inf, lax.max, (2, 2), (1, 1), ((1, 1), (0, 2)), base_dilation=(2, 1),
                 window_dilation=(1, 2)),
            (f(4, 5),),
        ),
        "pool_two": (
            lambda a, b: lax.reduce_window(
                (a, b), (-jnp.inf, 0.0),
                lambda x, y: (lax.max(x[0], y[0]), lax.select(x[0] > y[0], x[1], y[1])),
                (2,), (2,), "VALID"),
            (f(8), f(8)),
        ),
        "pool_outside": (pool(0.0, lax.add, (9,), (1,), "VALID"), (f(4),)),
        "pool_5d": (pool(0.0, lax.add, (1, 2, 1, 2, 1), (1, 1, 1, 1, 1), "SAME"),
                    (f(2, 3, 2, 3, 2),)),
        "conv_1d": (conv((2,), [(3, -1)]), (f(2, 3, 9), f(4, 3, 3))),
        "conv_3d": (conv((1, 2, 1), "SAME"), (f(1, 2, 4, 5, 3), f(3, 2, 2, 2, 2))),
        "conv_0d": (conv((), []), (f(3, 4), f(5, 4))),
        "conv_dilated": (
            conv((1, 1), [(2, 1), (0, 3)], lhs_dilation=(2, 1), rhs_dilation=(1, 2),
                 dimension_numbers=wide),
            (f(2, 4, 5, 2), f(3, 2, 2, 3)),
        ),
        "conv_depthwise": (
            conv((1, 1), "SAME", dimension_numbers=wide, feature_group_count=3),
            (f(2, 5, 5, 3), f(3, 3, 1, 6)),
        ),
        "conv_batch_groups": (
            conv((1, 1), "VALID", dimension_numbers=wide, batch_group_count=2),
            (f(4, 5, 5, 3), f(2, 2, 3, 4)),
        ),
        "conv_empty": (conv((1,), "VALID"), (f(2, 3, 2), f(4, 3, 3))),
        "conv_no_features": (conv((1,), "VALID"), (f(2, 0, 5), f(4, 0, 3))),
        "conv_vmapped": (
            jax.vmap(lambda a, k: lax.conv(a, k, (1, 1), "SAME")),
            (f(2, 1, 2, 5, 5), f(2, 3, 2, 3, 3)),
        ),
        "conv_gradients": (
            jax.grad(lambda a, k: (lax.conv_general_dilated(
                a, k, (2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2), feature_group_count=2,
            ) ** 2).sum(), argnums=(0, 1)),
            (f(2, 4, 6, 6), f(6, 2, 3, 2)),
        ),
        "dot_general": (
            lambda a, b: lax.dot_general(a, b, (((1, 3), (2, 0)), ((0,), (1,)))),
            (f(2, 3, 4, 5), f(5, 2, 3, 4)),
        ),
        "dot_of_nothing": (jnp.dot, (f(3, 0), f(0, 4))),
        "dot_vectors": (jnp.dot, (f(40), f(40))),
        "dot_into_wider": (
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
            (f.integers(3, 9, low=-99, high=99, dtype="int8"),
             f.integers(9, 4, low=-99, high=99, dtype="int8")),
        ),
        "dot_bf16_into_f32": (
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
            (f(3, 9, dtype="bfloat16"), f(9, 4, dtype="bfloat16")),
        ),
        "ragged_dot": (
            lambda a, b, n: lax.ragged_dot(a, b, n),
            (f(9, 3), f(4, 3, 2), jnp.asarray([2, 0, 3, 4], jnp.int32)),
        ),
        "einsum_many": (
            lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), (f(3, 4), f(4, 5), f(5, 2)),
        ),
        "triangular_solve_right": (
            lambda a, b: lax.linalg.triangular_solve(
                a, b, left_side=False, lower=False, transpose_a=True, unit_diagonal=True),
            (jnp.triu(f(2, 3, 3)), f(2, 4, 3)),
        ),
        "triangular_solve_adjoint": (
            lambda a, b: lax.linalg.triangular_solve(
                a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True),
            (f.complex(3, 3) + 3 * jnp.eye(3), f.complex(3, 2)),
        ),
        "cholesky_of_indefinite": (jnp.linalg.cholesky, (-jnp.eye(3),)),
        "slogdet": (jnp.linalg.slogdet, (f(4, 4),)),
        "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 3), (f(3, 3),)),
        "pinv": (jnp.linalg.pinv, (f(4, 3),)),
        "norms": (lambda a: [jnp.linalg.norm(a, ord=o) for o in (None, 1, jnp.inf)], (f(4, 3),)),
        "expm": (jax.scipy.linalg.expm, (f(3, 3) * 0.3,)),
        "grad_cholesky": (
            jax.grad(lambda a: jnp.linalg.cholesky(a @ a.T + 4 * jnp.eye(3)).sum()), (f(3, 3),),
        ),
        "grad_solve": (
            jax.grad(lambda a, b: (jnp.linalg.solve(a + 4 * jnp.eye(3), b) ** 2).sum()),
            (f(3, 3), f(3)),
        ),
        "grad_fft": (jax.grad(lambda a: jnp.abs(jnp.fft.fft(a)).sum()), (f(6),)),
        "grad_cumsum": (jax.grad(lambda a: (jnp.cumsum(a) ** 2).sum()), (f(6),)),
        "grad_cumprod": (jax.grad(lambda a: jnp.cumprod(a).sum()), (f(6),)),
        "grad_top_k": (jax.grad(lambda a: lax.top_k(a, 2)[0].sum()), (f(7),)),
        "grad_avg_pool": (
            jax.grad(lambda a: (lax.reduce_window(a, 0.0, lax.add, (2, 2), (2, 2), "SAME") ** 2)
                     .sum()),
            (f(5, 5),),
        ),
        "grad_overlapping_max_pool": (
            jax.grad(lambda a: (lax.reduce_window(
                a, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()),
            (f(2, 7, 7, 2),),
        ),
        "all_reduce_alone": (
            lambda a: jax.vmap(lambda v: lax.psum(v, "n"), axis_name="n")(a), (f(3, 2),),
        ),
        "empty_sum": (lambda a: (a.sum(), a.sum(0), a.prod(1)), (f(0, 3),)),
        "empty_sort": (lambda a: jnp.sort(a, 0), (f(0, 3),)),
        "empty_fft": (jnp.fft.fft, (f(0, 4),)),
        "scalar_sort": (lambda a: jnp.sort(a, axis=None), (jnp.float32(2),)),
    }  # fmt: skip
    return table


def moved() -> Table:
    """Indexing, loops, random numbers, models."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    f = Make()
    table: Table = {}
    for name in "add multiply min max set".split():
        table[f"at_{name}"] = (
            lambda a, n, v, name=name: getattr(a.at[n], name)(v),
            (f(5, 2), f.integers(7), f(7, 2)),
        )
    for name in "sum prod max min".split():
        table[f"segment_{name}"] = (
            lambda a, n, name=name: getattr(jax.ops, f"segment_{name}")(a, n, 4),
            (f(7, 2), f.integers(7, high=4)),
        )
    for mode in "clip wrap fill".split():
        table[f"take_{mode}"] = (
            lambda a, n, mode=mode: jnp.take(a, n, axis=0, mode=mode),
            (f(4, 3), f.integers(2, 3, low=-6, high=9)),
        )
    key = jax.random.key(5)
    for name in "bits bernoulli categorical exponential gumbel laplace logistic truncated_normal " \
                "rademacher cauchy gamma beta poisson dirichlet randint".split():  # fmt: skip
        arguments: dict[str, Any] = {
            "categorical": {"logits": jnp.arange(4.0), "shape": (3,)},
            "truncated_normal": {"lower": -1.0, "upper": 1.0, "shape": (3,)},
            "gamma": {"a": 2.5, "shape": (3,)},
            "beta": {"a": 2.5, "b": 1.5, "shape": (3,)},
            "poisson": {"lam": 3.0, "shape": (3,)},
            "dirichlet": {"alpha": jnp.ones(3)},
            "randint": {"minval": 0, "maxval": 99, "shape": (3,)},
        }.get(name, {"shape": (3,)})
        table[f"random_{name}"] = (
            functools.partial(lambda k, name, arguments: getattr(jax.random, name)(k, **arguments),
                              name=name, arguments=arguments),
            (key,),
        )  # fmt: skip

    def dense(w: Any, x: Any) -> Any:
        return jnp.tanh(x @ w["w"] + w["b"])

    def attention(w: Any, x: Any) -> Any:
        q, k, v = (x @ w[n] for n in "qkv")
        scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v

    def transformer(w: Any, x: Any) -> Any:
        def norm(v: Any) -> Any:
            return (v - v.mean(-1, keepdims=True)) * lax.rsqrt(v.var(-1, keepdims=True) + 1e-5)

        x = x + attention(w, norm(x))
        return (x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]).mean()

    def cell(w: Any, state: Any, x: Any) -> Any:
        h, c = state
        i, g, o, r = jnp.split(x @ w["x"] + h @ w["h"], 4, -1)
        c = jax.nn.sigmoid(r) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def recurrent(w: Any, x: Any) -> Any:
        zero = jnp.zeros((x.shape[1], 3))
        return lax.scan(functools.partial(cell, w), (zero, zero), x)[1].sum()

    def convolutional(w: Any, x: Any) -> Any:
        x = jax.nn.relu(lax.conv(x, w["k"], (1, 1), "SAME"))
        x = (x - x.mean((0, 2, 3), keepdims=True)) / jnp.sqrt(x.var((0, 2, 3), keepdims=True) + 0.1)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        logits = x.reshape(x.shape[0], -1) @ w["w"]
        return -jax.nn.log_softmax(logits)[:, 0].mean()

    d = 4
    words = {n: f(d, d) * 0.5 for n in "qkv"} | {"up": f(d, 8) * 0.5, "down": f(8, d) * 0.5}
    lstm = {"x": f(2, 12), "h": f(3, 12)}
    net = {"k": f(2, 1, 3, 3), "w": f(18, 3)}
    layer = {"w": f(4, 3), "b": f(3)}
    table |= {
        "transformer": (transformer, (words, f(2, 5, d))),
        "grad_transformer": (jax.grad(transformer), (words, f(2, 5, d))),
        "vmapped_grad_transformer": (
            jax.vmap(jax.grad(transformer), (None, 0)), (words, f(2, 1, 5, d)),
        ),
        "remat_transformer": (jax.grad(jax.checkpoint(transformer)), (words, f(2, 5, d))),
        "lstm": (recurrent, (lstm, f(5, 2, 2))),
        "grad_lstm": (jax.grad(recurrent), (lstm, f(5, 2, 2))),
        "grad_convnet": (jax.grad(convolutional), (net, f(3, 1, 6, 6))),
        "jvp_convnet": (
            lambda w, x, t: jax.jvp(lambda v: convolutional(w, v), (x,), (t,)),
            (net, f(2, 1, 6, 6), f(2, 1, 6, 6)),
        ),
        "jacobian_dense": (jax.jacrev(dense), (layer, f(2, 4))),
        "hessian_dense": (
            jax.hessian(lambda v, w: (dense(w, v) ** 2).sum()), (f(4), layer),
        ),
        "training_step": (
            lambda w, x: jax.tree.map(
                lambda a, g: a - 0.1 * g, w, jax.grad(lambda v: dense(v, x).sum())(w)),
            (layer, f(2, 4)),
        ),
        "newton": (
            lambda a: lax.while_loop(
                lambda s: jnp.any(jnp.abs(s * s - a) > 1e-3), lambda s: (s + a / s) / 2,
                jnp.ones_like(a)),
            (f.positive(4),),
        ),
        "nested_loops": (
            lambda a: lax.fori_loop(
                0, 3, lambda i, s: lax.fori_loop(0, i + 1, lambda j, t: t * 1.5 + j, s), a),
            (f(3),),
        ),
        "scan_in_vmap": (
            jax.vmap(lambda a: lax.scan(lambda c, x: (c * x + 1, c), 1.0, a)), (f(3, 4),),
        ),
        "scan_reverse": (
            lambda a: lax.scan(lambda c, x: (c + x, c * 2), 0.0, a, reverse=True, unroll=2),
            (f(6),),
        ),
        "cond_in_vmap": (
            jax.vmap(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a)), (f(4, 2),),
        ),
        "while_in_vmap": (
            jax.vmap(lambda a: lax.while_loop(lambda s: s < 10, lambda s: s * 2, a)),
            (f.positive(4),),
        ),
        "switch_grad": (
            jax.grad(lambda a, n: lax.switch(n, [jnp.sin, jnp.cos, jnp.tanh], a)),
            (jnp.float32(0.3), jnp.int32(7)),
        ),
        "associative_scan_matrices": (
            lambda a: lax.associative_scan(jnp.matmul, a), (f(4, 2, 2),),
        ),
        "closed_form": (lambda: jnp.arange(5) * 2 + jnp.ones(5, int), ()),
        "dropout": (
            lambda k, a: jnp.where(jax.random.bernoulli(k, 0.5, a.shape), a * 2, 0), (key, f(9)),
        ),
        "split_keys": (lambda k: jax.random.key_data(jax.random.split(k, 3)), (key,)),
        "fold_in": (lambda k: jax.random.key_data(jax.random.fold_in(k, 7)), (key,)),
        "dynamic_index": (lambda a, n: a[n, ::2], (f(4, 5), jnp.int32(-1))),
        "dynamic_slice_clamps": (
            lambda a, n: lax.dynamic_slice(a, (n, n), (2, 2)), (f(3, 4), jnp.int32(9)),
        ),
        "gather_windows": (
            jax.vmap(lambda a, n: lax.dynamic_slice(a, (n,), (2,)), (None, 0)),
            (f(6), f.integers(4, low=-2, high=8)),
        ),
        "scatter_windows": (
            jax.vmap(lambda a, v, n: lax.dynamic_update_slice(a, v, (n,))),
            (f(3, 6), f(3, 2), f.integers(3, low=-2, high=8)),
        ),
        "scatter_bool_mask": (lambda a, m: jnp.where(m, 0.0, a).at[::2].add(1.0),
                              (f(6), f.integers(6, high=2).astype(bool))),
        "pad_interior": (lambda a: lax.pad(a, 9.0, ((1, -1, 2), (-1, 2, 0))), (f(3, 4),)),
        "pad_5d": (lambda a: jnp.pad(a, 1, mode="edge"), (f(2, 1, 2, 1, 2),)),
        "transpose_5d": (lambda a: a.transpose(4, 1, 3, 0, 2), (f(2, 3, 2, 3, 2),)),
        "rot90": (jnp.rot90, (f(3, 4),)),
        "tile": (lambda a: jnp.tile(a, (2, 3)), (f(2, 2),)),
        "repeat": (lambda a: jnp.repeat(a, 3, 0), (f(2, 2),)),
        "nonzero": (lambda a: jnp.nonzero(a > 0, size=4, fill_value=9), (f(9),)),
        "unique_counts": (
            lambda a: jnp.unique(a, size=5, return_counts=True, return_inverse=True),
            (f.integers(9),),
        ),
        "isin": (jnp.isin, (f.integers(9), f.integers(3))),
        "digitize": (lambda a: jnp.digitize(a, jnp.arange(-1.0, 2.0)), (f(9),)),
        "polyval": (jnp.polyval, (f(4), f(5))),
        "cov": (jnp.cov, (f(3, 9),)),
        "corrcoef": (jnp.corrcoef, (f(3, 9),)),
        "bessel": (lambda a: (jax.scipy.special.i0e(a), jax.scipy.special.i1e(a)), (f(5),)),
        "betainc": (jax.scipy.special.betainc, (f.positive(4), f.positive(4), f.positive(4) / 2)),
        "gammainc": (
            lambda a, x: (jax.scipy.special.gammainc(a, x), jax.scipy.special.gammaincc(a, x)),
            (f.positive(4), f.positive(4)),
        ),
        "zeta": (lambda a: jax.scipy.special.zeta(a + 1.5, 2.0), (f.positive(4),)),
        "polygamma": (lambda a: jax.scipy.special.polygamma(1, a), (f.positive(4),)),
        "losses": (
            lambda a, n: -jnp.take_along_axis(jax.nn.log_softmax(a), n[:, None], 1).mean(),
            (f(4, 5), f.integers(4)),
        ),
        "reduce_precision": (lambda a: lax.reduce_precision(a, 5, 3), (f(6),)),
        "nextafter": (jnp.nextafter, (f(4), f(4))),
        "frexp": (jnp.frexp, (f(4),)),
        "ldexp": (jnp.ldexp, (f(4), f.integers(4))),
        "nan_to_num": (jnp.nan_to_num, (jnp.asarray([jnp.nan, jnp.inf, -jnp.inf, 1.0]),)),
    }  # fmt: skip
    return table


def typed() -> Table:
    """The same things for other element types. Those of 64 bits need jax.enable_x64."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    f = Make()
    table: Table = {}
    floats = ["float16", "bfloat16"] + (["float64"] if jax.config.jax_enable_x64 else [])
    for dtype in floats:
        a, b = f(3, 4, dtype=dtype), f.positive(3, 4, dtype=dtype)
        for name in "exp sin tanh sqrt abs sum mean var max argmax cumsum sort floor sign".split():
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (b,))
        for name in "add multiply divide maximum power less equal".split():
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (b, b[::-1]))
        table |= {
            f"matmul_{dtype}": (lambda x, y: x @ y.T, (a, b)),
            f"softmax_{dtype}": (jax.nn.softmax, (a,)),
            f"grad_{dtype}": (jax.grad(lambda x: (jnp.sin(x) * x).sum()), (a,)),
            f"conv_{dtype}": (lambda x, k: jnp.convolve(x, k), (a[0], b[0])),
            f"random_{dtype}": (
                lambda dtype=dtype: jax.random.uniform(jax.random.key(1), (4,), dtype), (),
            ),
            f"cast_{dtype}": (lambda x: [x.astype(t) for t in (jnp.int32, jnp.float32, bool)],
                              (a * 9,)),
        }  # fmt: skip
    integers = "int8 int16 int32 uint8 uint16 uint32".split()
    if jax.config.jax_enable_x64:
        integers += ["int64", "uint64"]
    for dtype in integers:
        signed = not dtype.startswith("u")
        info = jnp.iinfo(dtype)
        a = f.integers(3, 4, low=-99 if signed else 0, high=99, dtype=dtype)
        b = f.integers(3, 4, low=1, high=7, dtype=dtype)
        edge = jnp.asarray([info.min, info.max, 0, 1, 2], dtype)
        for name in "add subtract multiply floor_divide remainder maximum left_shift " \
                    "right_shift bitwise_and bitwise_xor less power gcd".split():  # fmt: skip
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (a, b))
        for name in "sum prod max argmin cumsum sort abs sign invert negative".split():
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (a,))
        table |= {
            f"edges_{dtype}": (lambda x: (x + x, x * x, -x, x // 3, ~x, x - 1), (edge,)),
            f"matmul_{dtype}": (lambda x, y: x @ y.T, (a, b)),
            f"casts_{dtype}": (
                lambda x: [x.astype(t) for t in ("int8", "uint16", "float32", "bool")], (edge,),
            ),
            f"bits_{dtype}": (lambda x: (lax.population_count(x), lax.clz(x)), (edge,)),
            f"shift_{dtype}": (lambda x: lax.shift_right_logical(x, x.dtype.type(1)), (edge,)),
            f"divmod_{dtype}": (jnp.divmod, (a, b)),
            f"randint_{dtype}": (
                lambda dtype=dtype: jax.random.randint(jax.random.key(1), (4,), 0, 100, dtype), (),
            ),
        }  # fmt: skip
    for dtype in ["complex64"] + (["complex128"] if jax.config.jax_enable_x64 else []):
        a, b = f.complex(3, 4, dtype=dtype), f.complex(3, 4, dtype=dtype)
        for (
            name
        ) in "exp log sin cos tanh sqrt abs angle conj real imag sum prod mean square".split():
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (a,))
        for name in "add multiply divide power equal".split():
            table[f"{name}_{dtype}"] = (getattr(jnp, name), (a, b))
        table |= {
            f"matmul_{dtype}": (lambda x, y: x @ y.T, (a, b)),
            f"fft_{dtype}": (jnp.fft.ifft, (a,)),
            f"solve_{dtype}": (jnp.linalg.solve, (a[:, :3] + 4 * jnp.eye(3), b)),
            f"grad_{dtype}": (jax.grad(lambda x: (jnp.abs(x) ** 2).sum()), (a,)),
            f"conv_{dtype}": (jnp.convolve, (a[0], b[0])),
        }
    if jax.config.jax_enable_x64:
        c = f(4, 4, dtype="float64")
        positive = f.positive(5, dtype="float64")
        for name in "erf erfinv gammaln digamma ndtri i0 expit".split():
            table[f"{name}_float64"] = (getattr(jax.scipy.special, name), (positive * 0.7,))
        for name in "log1p expm1 cbrt arctan2 log2 logaddexp hypot arcsinh arccosh".split():
            two = name in ("arctan2", "logaddexp", "hypot")
            arguments = (positive + 1, positive) if two else (positive + 1,)
            table[f"{name}_float64"] = (getattr(jnp, name), arguments)
        table |= {
            "inv_float64": (jnp.linalg.inv, (c,)),
            "cholesky_float64": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), (c,)),
            "eigvalsh_float64": (lambda x: jnp.linalg.eigvalsh(x + x.T), (c,)),
            "svdvals_float64": (lambda x: jnp.linalg.svd(x, compute_uv=False), (c,)),
            "fft_float64": (jnp.fft.fft, (f(97, dtype="float64"),)),
            "irfft_float64": (jnp.fft.irfft, (f(2, 12, dtype="float64"),)),
            "conv2_float64": (
                lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
                (f(1, 2, 5, 5, dtype="float64"), f(3, 2, 3, 3, dtype="float64")),
            ),
            "normal_float64": (lambda: jax.random.normal(jax.random.key(2), (5,), "float64"), ()),
        }
    return table
