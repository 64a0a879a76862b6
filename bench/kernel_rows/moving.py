"""Rows of indexing, copies, layouts and random numbers."""

from __future__ import annotations

from kernel_rows.row import (
    PLANES,
    SIZES,
    Make,
    Row,
    Rows,
    normal,
    places,
    plane,
    sized,
    uniform,
    whole,
)


def at_columns() -> dict[str, Make]:
    return {"x": plane(), "i": lambda random, n: random.integers(0, PLANES[n][1], PLANES[n][1])}


def index_rows() -> list[Row]:
    out = Rows()
    both = {"x": uniform(-2, 2), "i": places(None, 0)}
    out += sized("take", both, "m.take(x, i)", "np.take(x, i)")
    out += sized("x[i]", both, "x[i]", "x[i]")
    out += sized("gather", both, "m.gather(x, 0, i)", "np.take_along_axis(x, i, 0)")
    out += sized("index_select", both, "m.index_select(x, 0, i)", "np.take(x, i, 0)")
    out += sized(
        "scatter_add",
        {**both, "o": uniform(0, 1)},
        "m.scatter_add(o, 0, i, x)",
        None,
        "o.at[i].add(x)",
    )
    out += sized(
        "index_add", {**both, "o": uniform(0, 1)}, "m.index_add(o, 0, i, x)", None, "o.at[i].add(x)"
    )
    out += sized(
        "index_put", {**both, "o": uniform(0, 1)}, "m.index_put(o, (i,), x)", None, "o.at[i].set(x)"
    )
    flags = {"x": uniform(-2, 2), "k": whole(0, 2, "bool")}
    out += sized("x[mask]", flags, "x[k]", "x[k]", None)
    out += sized("nonzero", flags, "m.nonzero(k)", "np.nonzero(k)", None)
    out += sized("masked_fill", flags, "m.masked_fill(x, k, 0.5)", None, "jnp.where(k, 0.5, x)")
    rows_of = {"x": plane(), "i": lambda random, n: random.integers(0, PLANES[n][0], PLANES[n][0])}
    out += sized("rows x[i]", rows_of, "x[i]", "x[i]")
    at = {"x": plane(), "i": lambda random, n: random.integers(0, PLANES[n][1], PLANES[n])}
    out += sized("gather along rows", at, "m.gather(x, 1, i)", "np.take_along_axis(x, i, 1)")
    out += sized(
        "masked_scatter", {**flags, "o": uniform(0, 1)}, "m.masked_scatter(o, k, x)", None, None
    )
    out += sized(
        "index_add rows",
        {**rows_of, "o": plane(0, 1)},
        "m.index_add(o, 0, i, x)",
        None,
        "o.at[i].add(x)",
    )
    out += sized("columns x[:, i]", at_columns(), "x[:, i]", "x[:, i]")
    words = {"w": normal(30522, 384), "i": places((8, 128), 30522)}
    out.add("embedding 8x128 of 30522x384", 0, words, "F.embedding(i, w)", "w[i]", "w[i]")
    return out


def layout_rows() -> list[Row]:
    out = Rows()
    x, p = {"x": uniform(-2, 2)}, {"x": plane()}
    out += sized("copy", x, "x.clone()", "x.copy()", "jnp.copy(x)")
    out += sized("fill", x, "m.full_like(x, 2.5)", "np.full_like(x, 2.5)")
    out += sized("arange", x, "m.arange(x.shape[0])", "np.arange(x.shape[0])", None)
    out += sized("x[::2] copied", x, "x[::2].clone()", "x[::2].copy()")
    out += sized("x[::2] + x[1::2]", x, "x[::2] + x[1::2]", "x[::2] + x[1::2]")
    out += sized("flip", x, "m.flip(x, (0,))", "np.flip(x, 0).copy()")
    out += sized("flip rows", p, "m.flip(x, (1,))", "np.flip(x, 1).copy()")
    out += sized("roll", x, "m.roll(x, 7)", "np.roll(x, 7)")
    out += sized("cat of 3", x, "m.cat((x, x, x))", "np.concatenate((x, x, x))")
    out += sized("stack of 3", x, "m.stack((x, x, x))", "np.stack((x, x, x))")
    out += sized("stack of 3, last", x, "m.stack((x, x, x), -1)", "np.stack((x, x, x), -1)")
    out += sized(
        "transpose copied", p, "x.t().contiguous()", "np.ascontiguousarray(x.T)", "jnp.copy(x.T)"
    )
    out += sized(
        "x + x.t-like",
        {"x": plane(), "y": lambda r, n: r.random(PLANES[n][::-1], "f4")},
        "x + y.t()",
        "x + y.T",
    )
    out += sized("pad", p, "F.pad(x, (1, 1, 1, 1))", "np.pad(x, 1)")
    out += sized("repeat", p, "x.repeat(2, 2)", "np.tile(x, (2, 2))")
    out += sized("repeat_interleave", x, "m.repeat_interleave(x, 3)", "np.repeat(x, 3)")
    out += sized("tril", p, "m.tril(x)", "np.tril(x)")
    out += sized(
        "unfold windows",
        x,
        "x.unfold(0, 8, 4).contiguous()",
        "np.lib.stride_tricks.sliding_window_view(x, 8)[::4].copy()",
        None,
    )
    out += sized("x[::5] copied", x, "x[::5].clone()", "x[::5].copy()")
    out += sized(
        "columns of 3 copied to rows",
        {"x": lambda random, n: random.random((n // 3, 3), "f4")},
        "x.t().contiguous()",
        "np.ascontiguousarray(x.T)",
        "jnp.copy(x.T)",
    )
    for dtype in ("uint8", "float64"):
        out += sized(
            f"transpose copied {dtype}",
            {"x": plane(0, 100, dtype)},
            "x.t().contiguous()",
            "np.ascontiguousarray(x.T)",
            "jnp.copy(x.T)",
        )
    for a, b in (("float64", "int32"), ("int32", "int64"), ("uint8", "float64")):
        out += sized(
            f"{a} to {b}", {"x": uniform(0, 100, a)}, f"x.to(m.{b})", f"x.astype('{b}')", None
        )
    heads = {"x": normal(8, 128, 12, 32)}
    out.add(
        "permute 8x128x12x32 (0, 2, 1, 3)",
        0,
        heads,
        "x.permute(0, 2, 1, 3).contiguous()",
        "np.ascontiguousarray(x.transpose(0, 2, 1, 3))",
        "jnp.copy(x.transpose(0, 2, 1, 3))",
    )
    image = {"x": normal(8, 64, 56, 56)}
    out.add(
        "channels_last 8x64x56x56",
        0,
        image,
        "x.contiguous(memory_format=m.channels_last)",
        "np.ascontiguousarray(x.transpose(0, 2, 3, 1))",
        "jnp.copy(x.transpose(0, 2, 3, 1))",
    )
    return out


def random_rows() -> list[Row]:
    out = Rows()
    x = {"x": uniform(-2, 2)}
    out += sized("rand", x, "m.rand(x.shape[0])", "G.random(x.shape[0], 'float32')", None)
    out += sized(
        "randn", x, "m.randn(x.shape[0])", "G.standard_normal(x.shape[0], 'float32')", None
    )
    out += sized(
        "randint", x, "m.randint(0, 100, (x.shape[0],))", "G.integers(0, 100, x.shape[0])", None
    )
    out += sized(
        "randperm", x, "m.randperm(x.shape[0])", "G.permutation(x.shape[0])", None, sizes=SIZES[:2]
    )
    out += sized("dropout", x, "F.dropout(x, 0.5, True)", None, None)
    out += sized("normal_(1, 2)", x, "x.normal_(1, 2)", None, None)
    out += sized("uniform_(-1, 1)", x, "x.uniform_(-1, 1)", None, None)
    out += sized("bernoulli_(0.3)", x, "x.bernoulli_(0.3)", None, None)
    out += sized("bernoulli", x, "m.bernoulli(x.abs().mul_(0.5))", None, None)
    out += sized("exponential_", x, "x.exponential_()", None, None)
    return out
