"""Rows of matrix products, dense and sparse, and attention."""

from __future__ import annotations

from typing import Any

import numpy

from kernel_rows.row import Make, Row, Rows, normal, places


def product_rows() -> list[Row]:
    out = Rows()

    def product(m: int, k: int, n: int, dtype: str = "", text: str = "x @ w") -> None:
        kinds = {"x": dtype, "w": dtype} if dtype else {}
        jax = text if dtype != "float64" else None
        out.add(
            f"{m}x{k}x{n}{', ' + dtype if dtype else ''}",
            0,
            {"x": normal(m, k), "w": normal(k, n)},
            text,
            text if dtype in ("", "float64") else None,
            jax,
            dtypes=kinds,
        )

    for n in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
        product(n, n, n)
    for m, k, n in (
        (1, 384, 1536),
        (8, 384, 1536),
        (32, 384, 1536),
        (128, 1536, 384),
        (1024, 384, 384),
        (10000, 16, 16),
        (16, 10000, 16),
        (3, 1000, 5),
    ):
        product(m, k, n)
    for dtype in ("bfloat16", "float16"):
        for m, k, n in (
            (16, 16, 16),
            (64, 64, 64),
            (256, 256, 256),
            (1024, 1024, 1024),
            (1, 384, 1536),
            (32, 384, 1536),
        ):
            product(m, k, n, dtype)
    for n in (16, 64, 256, 512):
        product(n, n, n, "float64")
    out.add(
        "int64 product 64",
        0,
        {"x": places((64, 64), 9), "w": places((64, 64), 9)},
        "x @ w",
        "x @ w",
    )
    for n in (64, 1000):
        out.add(f"mv {n}", 0, {"x": normal(n, n), "w": normal(n)}, "m.mv(x, w)", "x @ w", "x @ w")
    for b, m, k, n in (
        (16, 16, 16, 16),
        (64, 4, 4, 4),
        (1000, 3, 3, 3),
        (256, 8, 8, 8),
        (12, 128, 32, 128),
        (12, 128, 128, 32),
        (96, 64, 64, 64),
    ):
        out.add(
            f"bmm {b} of {m}x{k}x{n}",
            0,
            {"x": normal(b, m, k), "w": normal(b, k, n)},
            "m.bmm(x, w)",
            "x @ w",
            "x @ w",
        )
    for rows_, k, n in (
        (1, 384, 1536),
        (4, 384, 1536),
        (8, 384, 1536),
        (32, 384, 1536),
        (32, 1536, 384),
        (128, 384, 384),
        (1024, 384, 1536),
        (64, 64, 128),
        (64, 128, 10),
    ):
        linear = {"x": normal(rows_, k), "w": normal(n, k), "b": normal(n)}
        out.add(
            f"linear {rows_}x{k}x{n}", 0, linear, "F.linear(x, w, b)", "x @ w.T + b", "x @ w.T + b"
        )
    product = {"x": normal(32, 384), "w": normal(384, 1536), "b": normal(1536)}
    for gelu in (False, True):
        call = f"m._addmm_activation(b, x, w, use_gelu={gelu})"
        out.add(f"addmm and {'gelu' if gelu else 'relu'} 32x384x1536", 0, product, call)
    points = {"x": normal(256, 64), "y": normal(256, 64)}
    out.add("cdist 256x64", 0, points, "m.cdist(x, y)")
    for p in ("1", "3", "float('inf')"):
        out.add(f"cdist 256x64, p={p}", 0, points, f"m.cdist(x, y, {p})")
    space = {"x": normal(500, 3), "y": normal(500, 3)}
    out.add("cdist 500x3", 0, space, "m.cdist(x, y)")
    for p in ("1", "2"):
        out.add(f"grad of cdist 256x64, p={p}", 0, points, f"grad(m.cdist(x, y, {p}), x)")
    for m, k, n in ((64, 64, 64), (32, 384, 1536), (256, 256, 256), (1024, 1024, 1024)):
        bytes_ = {"x": places((m, k), 127, "int8"), "w": places((k, n), 127, "int8")}
        out.add(f"int8 {m}x{k}x{n}", 0, bytes_, "m._int_mm(x, w)")
        turned = {"x": places((m, k), 127, "int8"), "w": places((n, k), 127, "int8")}
        out.add(f"int8 {m}x{k}x{n}, turned", 0, turned, "m._int_mm(x, w.t())")
    out.add(
        "einsum bij,bkj->bik",
        0,
        {"x": normal(8, 64, 32), "y": normal(8, 48, 32)},
        "m.einsum('bij,bkj->bik', x, y)",
        "np.einsum('bij,bkj->bik', x, y)",
        "jnp.einsum('bij,bkj->bik', x, y)",
    )
    out.add(
        "outer 1000",
        0,
        {"x": normal(1000), "y": normal(1000)},
        "m.outer(x, y)",
        "np.outer(x, y)",
        "jnp.outer(x, y)",
    )
    out.add(
        "dot 1e5",
        0,
        {"x": normal(100000), "y": normal(100000)},
        "m.dot(x, y)",
        "np.dot(x, y)",
        "jnp.dot(x, y)",
    )
    for heads, tokens, width in ((12, 16, 64), (12, 128, 64), (12, 128, 32), (12, 512, 64)):
        qkv = {name: normal(1, heads, tokens, width) for name in "qkv"}
        jax = "jax.nn.dot_product_attention(q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2)"
        for causal in (False, True):
            out.add(
                f"attention {heads}x{tokens}x{width}{', causal' if causal else ''}",
                0,
                qkv,
                f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})",
                None,
                f"{jax}, is_causal={causal}).swapaxes(1, 2)",
            )
    grouped = {"q": normal(1, 12, 128, 64), "k": normal(1, 3, 128, 64), "v": normal(1, 3, 128, 64)}
    attend = "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)"
    out.add("attention 12x128x64, 3 shared heads", 0, grouped, attend)
    out.add("grad of attention 12x128x64, 3 shared heads", 0, grouped,
                   f"grad({attend}, q, k, v)")  # fmt: skip
    qkv = {name: normal(1, 12, 128, 64) for name in "qkv"}
    attend = "F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)"
    out.add("attention 12x128x64, dropout", 0, qkv, attend)
    out.add("grad of attention 12x128x64, dropout", 0, qkv, f"grad({attend}, q, k, v)")
    return out


def sparse_rows() -> list[Row]:
    """A matrix in compressed rows, made of its parts, times a dense one."""

    def steps(rows: int, each: int) -> Make:
        def make(random: Any, n: int) -> Any:
            return numpy.arange(0, rows * each + 1, each)

        return make

    out = Rows()
    for rows, each in ((1_000, 20), (20_000, 50)):
        for width in (1, 16, 64):
            for dtype in ("float32", "float64"):
                shape = (rows, width)[: 2 if width > 1 else 1]
                arrays = {
                    "crow": steps(rows, each),
                    "columns": places((rows * each,), rows),
                    "values": normal(rows * each, dtype=dtype),
                    "x": normal(*shape, dtype=dtype),
                }
                out.add(
                    f"csr {rows}x{rows} of {each} a row @ {'x'.join(map(str, shape))}, {dtype}",
                    0,
                    arrays,
                    f"m.sparse_csr_tensor(crow, columns, values, ({rows}, {rows})) @ x",
                    f"scipy.sparse.csr_array((values, columns, crow), ({rows}, {rows})) @ x",
                    dtypes={"values": dtype, "x": dtype},
                )
    return out
