"""Rows of reductions, scans, sorting and selecting."""

from __future__ import annotations

import numpy as np

from kernel_rows.row import PLANES, SIZES, Row, Rows, normal, plane, sized, uniform, whole


def reduction_rows() -> list[Row]:
    out = Rows()
    x = {"x": uniform(0.5, 1.5)}
    for name in ("sum", "mean", "prod", "max", "argmax", "std", "cumsum", "cumprod"):
        ddof = ", ddof=1" if name == "std" else ""
        dim = ", 0" if name.startswith("cum") else ""
        out += sized(name, x, f"m.{name}(x{dim})", f"np.{name}(x{ddof})")
    out += sized("norm", x, "m.linalg.norm(x)", "np.linalg.norm(x)")
    out += sized("logsumexp", x, "m.logsumexp(x, 0)", None, "jax.scipy.special.logsumexp(x)")
    out += sized(
        "count_nonzero", {"x": whole(0, 2, "bool")}, "m.count_nonzero(x)", "np.count_nonzero(x)"
    )
    flags = {"x": lambda random, n: random.integers(0, 2, n).astype(bool)}
    out += sized("any", flags, "m.any(x)", "np.any(x)")
    out += sized(
        "all of true",
        {"x": lambda random, n: random.integers(1, 2, n).astype(bool)},
        "m.all(x)",
        "np.all(x)",
    )
    out += sized("sum, int64", {"x": whole(0, 9)}, "m.sum(x)", "np.sum(x)", None)
    out += sized("max, int8", {"x": whole(0, 99, "int8")}, "m.max(x)", "np.max(x)")
    p = {"x": plane()}
    for axis, where in ((1, "along rows"), (0, "along columns")):
        for name in ("sum", "mean", "argmax", "cumsum", "std"):
            extra = ", ddof=1" if name == "std" else ""
            out += sized(
                f"{name} {where}", p, f"m.{name}(x, {axis})", f"np.{name}(x, {axis}{extra})"
            )
        out += sized(f"max {where}", p, f"m.amax(x, {axis})", f"np.max(x, {axis})")
        out += sized(
            f"softmax {where}", p, f"m.softmax(x, {axis})", None, f"jax.nn.softmax(x, {axis})"
        )
    out += sized("log_softmax", p, "m.log_softmax(x, -1)", None, "jax.nn.log_softmax(x, -1)")
    ln = {
        "x": plane(),
        "w": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
        "b": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
    }
    out += sized(
        "layer_norm",
        ln,
        "F.layer_norm(x, (x.shape[1],), w, b)",
        None,
        "(x - x.mean(1, keepdims=True)) * jax.lax.rsqrt(x.var(1, keepdims=True) + 1e-5)" " * w + b",
    )
    cube = {"x": normal(8, 64, 56, 56), "w": normal(64), "b": normal(64)}
    out.add(
        "sum over 8x64x56x56, dims 0, 2, 3",
        0,
        cube,
        "m.sum(x, (0, 2, 3))",
        "np.sum(x, (0, 2, 3))",
        "jnp.sum(x, (0, 2, 3))",
    )
    out.add("batch_norm training 8x64x56x56", 0, cube, "F.batch_norm(x, None, None, w, b, True)")
    out.add("group_norm 8x64x56x56", 0, cube, "F.group_norm(x, 8, w, b)")
    return out


def sorting_rows() -> list[Row]:
    """m.sort gives values and positions, in the order of a stable sort; np.sort, which the rows of
    sorts name, gives values alone. "sort and positions" compares like with like."""
    out = Rows()
    x = {"x": uniform(-2, 2)}
    small = SIZES[:2]
    for size in (SIZES[0], SIZES[1], 1_000_000):
        pick = (size,)
        out += sized("sort", x, "m.sort(x)", "np.sort(x)", sizes=pick)
        out += sized(
            "sort and positions",
            x,
            "m.sort(x, stable=True)",
            "(lambda i: (x[i], i))(np.argsort(x, kind='stable'))",
            None,
            sizes=pick,
        )
        out += sized("argsort", x, "m.argsort(x)", "np.argsort(x)", sizes=pick)
        out += sized(
            "sort, int64",
            {"x": whole(-(10**9), 10**9)},
            "m.sort(x)",
            "np.sort(x)",
            None,
            sizes=pick,
        )
        out += sized(
            "topk of 10",
            x,
            "m.topk(x, 10)",
            "np.partition(x, x.size - 10)[-10:]",
            "jax.lax.top_k(x, 10)",
            sizes=pick,
        )
        out += sized("median", x, "m.median(x)", "np.median(x)", sizes=pick)
        out += sized(
            "kthvalue",
            x,
            "m.kthvalue(x, x.numel() // 3)",
            "np.partition(x, x.size // 3)[x.size // 3]",
            None,
            sizes=pick,
        )
        out += sized(
            "unique", {"x": whole(0, 1000)}, "m.unique(x)", "np.unique(x)", None, sizes=pick
        )
    plane_sizes = (SIZES[0], SIZES[1])
    out += sized(
        "sort along rows", {"x": plane()}, "m.sort(x, 1)", "np.sort(x, 1)", sizes=plane_sizes
    )
    out += sized(
        "topk of 5 along rows",
        {"x": plane()},
        "m.topk(x, 5, 1)",
        None,
        "jax.lax.top_k(x, 5)",
        sizes=plane_sizes,
    )
    p = {"x": plane()}
    out += sized("sort along columns", p, "m.sort(x, 0)", "np.sort(x, 0)", sizes=plane_sizes)
    out += sized(
        "sort, float64", {"x": uniform(-2, 2, "float64")}, "m.sort(x)", "np.sort(x)", sizes=small
    )
    out += sized(
        "sort, int8", {"x": whole(-99, 99, "int8")}, "m.sort(x)", "np.sort(x)", sizes=small
    )
    out += sized(
        "sort, int16", {"x": whole(-9999, 9999, "int16")}, "m.sort(x)", "np.sort(x)", sizes=small
    )
    for name, make in (
        ("sorted", lambda random, n: np.sort(random.random(n, dtype="float32"))),
        ("reversed", lambda random, n: np.sort(random.random(n, dtype="float32"))[::-1].copy()),
        ("few values", whole(0, 9, "float32")),
    ):
        out += sized(f"sort of {name}", {"x": make}, "m.sort(x)", "np.sort(x)", sizes=small)
        out += sized(f"median of {name}", {"x": make}, "m.median(x)", "np.median(x)", sizes=small)
        out += sized(
            f"topk of 10 of {name}",
            {"x": make},
            "m.topk(x, 10)",
            "np.partition(x, x.size - 10)[-10:]",
            "jax.lax.top_k(x, 10)",
            sizes=small,
        )
    out += sized(
        "topk of a tenth",
        x,
        "m.topk(x, x.numel() // 10)",
        "np.partition(x, x.size - x.size // 10)[-(x.size // 10):]",
        None,
        sizes=small,
    )
    out += sized("msort", p, "m.msort(x)", "np.sort(x, 0)", sizes=plane_sizes)
    out += sized("median along rows", p, "m.median(x, 1)", "np.median(x, 1)", sizes=plane_sizes)
    out += sized(
        "kthvalue along rows",
        p,
        "m.kthvalue(x, 10, 1)",
        "np.partition(x, 9, 1)[:, 9]",
        None,
        sizes=plane_sizes,
    )
    out += sized("nanmedian", x, "m.nanmedian(x)", "np.nanmedian(x)", sizes=small)
    out += sized("quantile", x, "m.quantile(x, 0.3)", "np.quantile(x, 0.3)", sizes=small)
    out += sized("mode", {"x": whole(0, 100)}, "m.mode(x)", sizes=small)
    out += sized(
        "unique with inverse and counts",
        {"x": whole(0, 1000)},
        "m.unique(x, True, True, True)",
        "np.unique(x, return_inverse=True, return_counts=True)",
        None,
        sizes=small,
    )
    out += sized("unique of floats", x, "m.unique(x)", "np.unique(x)", None, sizes=small)
    out += sized("unique_consecutive", {"x": whole(0, 3)}, "m.unique_consecutive(x)", sizes=small)
    out += sized(
        "isin",
        {"x": whole(0, 1000), "e": lambda random, n: random.integers(0, 1000, 100)},
        "m.isin(x, e)",
        "np.isin(x, e)",
        None,
        sizes=small,
    )
    out += sized("cummax", x, "m.cummax(x, 0)", "np.maximum.accumulate(x)", None, sizes=small)
    out += sized("cummin along rows", p, "m.cummin(x, 1)", None, None, sizes=plane_sizes)
    wide = {"x": uniform(0, 500, "float64"), "e": lambda random, n: random.random(1000).cumsum()}
    out += sized(
        "searchsorted, float64",
        wide,
        "m.searchsorted(e, x)",
        "np.searchsorted(e, x)",
        None,
        sizes=small,
    )
    out += sized(
        "bucketize into 10",
        {"x": uniform(0, 1), "e": lambda random, n: np.linspace(0, 1, 10, dtype="float32")},
        "m.bucketize(x, e)",
        "np.digitize(x, e)",
        None,
        sizes=small,
    )
    out += sized(
        "bincount with weights",
        {"x": whole(0, 1000), "w": uniform(0, 1)},
        "m.bincount(x, w)",
        "np.bincount(x, w)",
        None,
        sizes=small,
    )
    table = {"x": uniform(0, 1), "e": lambda random, n: (random.random(1000).astype("f4")).cumsum()}
    out += sized("searchsorted", table, "m.searchsorted(e, x)", "np.searchsorted(e, x)", None)
    out += sized("bincount", {"x": whole(0, 1000)}, "m.bincount(x)", "np.bincount(x)", None)
    out += sized(
        "histc of 100",
        x,
        "m.histc(x, 100, -2, 2)",
        "np.histogram(x, 100, (-2, 2))",
        None,
        sizes=small,
    )
    return out
