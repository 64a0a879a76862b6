"""Rows of reductions and scans by dtype, layout and dimensions."""

from __future__ import annotations

from kernel_rows.row import Row, normal, plane, sized, uniform, whole


def reduction_kind_rows() -> list[Row]:
    out: list[Row] = []
    x, small = {"x": uniform(0.5, 1.5)}, {"x": whole(0, 99, "int8")}
    for dtype in ("bfloat16", "float16"):
        given = {"dtypes": {"x": dtype}}
        for name, text in (
            ("max", "m.max(x)"),
            ("norm", "m.linalg.norm(x)"),
            ("std", "m.std(x)"),
            ("cumsum", "m.cumsum(x, 0)"),
            ("logsumexp", "m.logsumexp(x, 0)"),
        ):
            out += sized(f"{name}, {dtype}", x, text, **given)
        for axis, where in ((1, "rows"), (0, "columns")):
            p = {"x": plane()}
            out += sized(f"sum along {where}, {dtype}", p, f"m.sum(x, {axis})", **given)
            out += sized(f"softmax along {where}, {dtype}", p, f"m.softmax(x, {axis})", **given)
    for name in ("sum", "min", "argmax", "any", "count_nonzero"):
        out += sized(f"{name}, int8", small, f"m.{name}(x)", f"np.{name}(x)")
    for dtype in ("int16", "int32", "uint8", "bool"):
        top = 2 if dtype == "bool" else 99
        out += sized(f"sum, {dtype}", {"x": whole(0, top, dtype)}, "m.sum(x)", "np.sum(x)")
    for name in ("sum", "mean", "max", "argmax", "std", "cumsum", "any"):
        dim = ", 0" if name == "cumsum" else ""
        double = {"x": uniform(0.5, 1.5, "float64")}
        out += sized(f"{name}, float64", double, f"m.{name}(x{dim})", f"np.{name}(x)", None)
    out += sized("cumsum, int64", {"x": whole(0, 9)}, "m.cumsum(x, 0)", "np.cumsum(x)", None)
    complexes = {"x": lambda random, n: (random.random(n) + 1j * random.random(n)).astype("c8")}
    out += sized("sum, complex64", complexes, "m.sum(x)", "np.sum(x)")
    for order in (0, 1, 3, 2.5, float("inf")):
        number = f"float('{order}')"
        out += sized(
            f"norm of order {order}",
            x,
            f"m.linalg.vector_norm(x, {number})",
            f"np.linalg.norm(x, {number})",
        )
    out += sized("aminmax", x, "m.aminmax(x)", "(np.min(x), np.max(x))")
    out += sized("var_mean", x, "m.var_mean(x)", "(np.var(x), np.mean(x))")
    out += sized("nansum", x, "m.nansum(x)", "np.nansum(x)")
    out += sized("logcumsumexp", x, "m.logcumsumexp(x, 0)", None, None, sizes=(1_000, 100_000))
    out += sized("trace", {"x": plane()}, "m.trace(x)", "np.trace(x)")
    p = {"x": plane()}
    for axis, where in ((1, "along rows"), (0, "along columns")):
        for name in ("prod", "any", "cumprod"):
            out += sized(f"{name} {where}", p, f"m.{name}(x, {axis})", f"np.{name}(x, {axis})")
        out += sized(
            f"logsumexp {where}",
            p,
            f"m.logsumexp(x, {axis})",
            None,
            f"jax.scipy.special.logsumexp(x, {axis})",
        )
        out += sized(
            f"norm {where}",
            p,
            f"m.linalg.vector_norm(x, 2, {axis})",
            f"np.linalg.norm(x, 2, {axis})",
        )
        out += sized(f"sum {where} of a transposed one", p, f"m.sum(x.T, {axis})",
                     f"np.sum(x.T, {axis})")  # fmt: skip
        out += sized(f"sum {where} of every other one", p, f"m.sum(x[:, ::2], {axis})",
                     f"np.sum(x[:, ::2], {axis})")  # fmt: skip
    cube = {"x": normal(8, 64, 56, 56)}
    for name in ("mean", "amax", "std"):
        numpy = f"np.{name}(x, (0, 2, 3))"
        out.append(
            Row(
                f"{name} over 8x64x56x56, dims 0, 2, 3",
                0,
                cube,
                f"m.{name}(x, (0, 2, 3))",
                numpy,
                numpy.replace("np.", "jnp."),
            )  # fmt: skip
        )
    for dim in (1, 2):
        numpy = f"np.sum(x, {dim})"
        out.append(
            Row(
                f"sum over 8x64x56x56, dim {dim}",
                0,
                cube,
                f"m.sum(x, {dim})",
                numpy,
                numpy.replace("np.", "jnp."),
            )  # fmt: skip
        )
    out += sized("grad of log_softmax", p, "grad(m.log_softmax(x, 1), x)", sizes=(1_000, 100_000))
    out += sized("grad of std", x, "grad(m.std(x), x)", sizes=(1_000, 100_000))
    return out
