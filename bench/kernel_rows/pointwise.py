"""Rows of pointwise operators: elementary functions, arithmetic, other dtypes."""

from __future__ import annotations

from kernel_rows.row import PLANES, SAME, Row, plane, sized, uniform, whole


def unary_rows() -> list[Row]:
    out: list[Row] = []
    two = (-2.0, 2.0)
    inside, positive = (-0.95, 0.95), (0.01, 4.0)
    # name, domain, NumPy, JAX: None where there is none, "" for the same name.
    table: list[tuple[str, tuple[float, float], str | None, str | None]] = [
        ("abs", two, "", ""),
        ("neg", two, "-x", "-x"),
        ("sign", two, "", ""),
        ("exp", two, "", ""),
        ("exp2", two, "", ""),
        ("expm1", two, "", ""),
        ("log", positive, "", ""),
        ("log2", positive, "", ""),
        ("log10", positive, "", ""),
        ("log1p", (-0.9, 4.0), "", ""),
        ("sin", two, "", ""),
        ("cos", two, "", ""),
        ("tan", two, "", ""),
        ("asin", inside, "np.arcsin(x)", "jnp.arcsin(x)"),
        ("acos", inside, "np.arccos(x)", "jnp.arccos(x)"),
        ("atan", two, "np.arctan(x)", "jnp.arctan(x)"),
        ("sinh", two, "", ""),
        ("cosh", two, "", ""),
        ("tanh", two, "", ""),
        ("asinh", two, "np.arcsinh(x)", "jnp.arcsinh(x)"),
        ("acosh", (1.1, 4.0), "np.arccosh(x)", "jnp.arccosh(x)"),
        ("atanh", inside, "np.arctanh(x)", "jnp.arctanh(x)"),
        ("sqrt", positive, "", ""),
        ("rsqrt", positive, "1 / np.sqrt(x)", "jax.lax.rsqrt(x)"),
        ("reciprocal", positive, "", ""),
        ("square", two, "", ""),
        ("floor", two, "", ""),
        ("round", two, "np.rint(x)", "jnp.rint(x)"),
        ("frac", two, None, None),
        ("sigmoid", two, "1 / (1 + np.exp(-x))", "jax.nn.sigmoid(x)"),
        ("erf", two, None, "jax.scipy.special.erf(x)"),
        ("erfc", two, None, "jax.scipy.special.erfc(x)"),
        ("erfinv", inside, None, "jax.scipy.special.erfinv(x)"),
        ("lgamma", positive, None, "jax.scipy.special.gammaln(x)"),
        ("digamma", positive, None, "jax.scipy.special.digamma(x)"),
        ("logit", (0.05, 0.95), None, "jax.scipy.special.logit(x)"),
        ("i0", two, None, "jax.scipy.special.i0(x)"),
        ("sinc", two, "", ""),
        ("isnan", two, "", ""),
        ("isfinite", two, "", ""),
        ("nan_to_num", two, "", ""),
    ]
    for name, (low, high), numpy, jax in table:
        out += sized(
            name,
            {"x": uniform(low, high)},
            f"m.{name}(x)",
            f"np.{name}(x)" if numpy == "" else numpy,
            f"jnp.{name}(x)" if jax == "" else jax,
        )
    functional = [
        ("relu", "np.maximum(x, 0)"),
        ("gelu", None),
        ("silu", "x / (1 + np.exp(-x))"),
        ("softplus", "np.logaddexp(x, 0)"),
        ("elu", None),
        ("mish", None),
        ("leaky_relu", None),
        ("hardswish", None),
        ("log_sigmoid", None),
        ("selu", None),
    ]
    for name, numpy in functional:
        text = {"log_sigmoid": "logsigmoid", "hardswish": "hardswish"}.get(name, name)
        jax = {"hardswish": "hard_swish"}.get(name, name)
        exact = ", approximate=False" if name == "gelu" else ""
        out += sized(name, {"x": uniform(-2, 2)}, f"F.{text}(x)", numpy, f"jax.nn.{jax}(x{exact})")
    out += sized(
        "gelu (tanh)",
        {"x": uniform(-2, 2)},
        "F.gelu(x, approximate='tanh')",
        None,
        "jax.nn.gelu(x)",
    )
    out += sized("clamp", {"x": uniform(-2, 2)}, "m.clamp(x, -1.0, 1.0)", "np.clip(x, -1.0, 1.0)")
    out += sized("x ** 2", {"x": uniform(-2, 2)}, "x ** 2", "x ** 2")
    out += sized("x ** 3.5", {"x": uniform(0.1, 2)}, "x ** 3.5", "x ** np.float32(3.5)")
    return out


def binary_rows() -> list[Row]:
    out: list[Row] = []
    both = {"x": uniform(-2, 2), "y": uniform(0.5, 2)}
    table: list[tuple[str, str, str | None, str | None]] = [
        ("add", "m.add(x, y)", "np.add(x, y)", SAME),
        ("sub", "x - y", "x - y", SAME),
        ("mul", "x * y", "x * y", SAME),
        ("div", "x / y", "x / y", SAME),
        ("floor_divide", "m.floor_divide(x, y)", "np.floor_divide(x, y)", SAME),
        ("fmod", "m.fmod(x, y)", "np.fmod(x, y)", SAME),
        ("remainder", "m.remainder(x, y)", "np.remainder(x, y)", SAME),
        ("atan2", "m.atan2(x, y)", "np.arctan2(x, y)", SAME),
        ("hypot", "m.hypot(x, y)", "np.hypot(x, y)", SAME),
        ("maximum", "m.maximum(x, y)", "np.maximum(x, y)", SAME),
        ("copysign", "m.copysign(x, y)", "np.copysign(x, y)", SAME),
        ("logaddexp", "m.logaddexp(x, y)", "np.logaddexp(x, y)", SAME),
        ("nextafter", "m.nextafter(x, y)", "np.nextafter(x, y)", SAME),
        ("x < y", "x < y", "x < y", SAME),
        ("x == y", "x == y", "x == y", SAME),
        ("x + 1.5", "x + 1.5", "x + np.float32(1.5)", "x + 1.5"),
        ("x * 2.5 + y", "x * 2.5 + y", "x * np.float32(2.5) + y", SAME),
        ("lerp", "m.lerp(x, y, 0.3)", None, "x + 0.3 * (y - x)"),
        ("addcmul", "m.addcmul(x, x, y, value=0.5)", None, "x + 0.5 * x * y"),
        ("addcdiv", "m.addcdiv(x, x, y, value=0.5)", None, "x + 0.5 * x / y"),
        ("where(x > y)", "m.where(x > y, x, y)", "np.where(x > y, x, y)", SAME),
    ]
    for name, text, numpy, jax in table:
        out += sized(name, both, text, numpy, jax)
    out += sized(
        "pow", {"x": uniform(0.1, 4), "y": uniform(-2, 2)}, "m.pow(x, y)", "np.power(x, y)"
    )
    out += sized(
        "add(out=)",
        {**both, "o": uniform(0, 1)},
        "m.add(x, y, out=o)",
        "np.add(x, y, out=o)",
        None,
    )
    out += sized(
        "x.mul_(1.0001)",
        {"x": uniform(0.5, 2)},
        "x.mul_(1.0001)",
        "np.multiply(x, np.float32(1.0001), out=x)",
        None,
    )
    row = {"x": plane(), "r": lambda random, n: random.random(PLANES[n][1], dtype="float32")}
    out += sized("add a row", row, "x + r", "x + r")
    column = {"x": plane(), "c": lambda random, n: random.random((PLANES[n][0], 1), dtype="f4")}
    out += sized("add a column", column, "x + c", "x + c")
    return out


def other_dtype_rows() -> list[Row]:
    out: list[Row] = []
    for name in ("exp", "log", "sin", "tanh", "sqrt", "erf", "expm1"):
        np_text = None if name == "erf" else f"np.{name}(x)"
        out += sized(
            f"{name}, float64", {"x": uniform(0.1, 3, "float64")}, f"m.{name}(x)", np_text, None
        )
    for name, text in (("add", "x + y"), ("pow", "x ** y")):
        arrays = {"x": uniform(0.1, 3, "float64"), "y": uniform(0.1, 3, "float64")}
        out += sized(f"{name}, float64", arrays, text, text, None)
    for dtype in ("bfloat16", "float16"):
        both = {"x": uniform(0.1, 2), "y": uniform(0.1, 2)}
        kinds = {"x": dtype, "y": dtype}
        table = [
            ("add", "x + y", "x + y"),
            ("mul", "x * y", "x * y"),
            ("exp", "m.exp(x)", "jnp.exp(x)"),
            ("tanh", "m.tanh(x)", "jnp.tanh(x)"),
            ("gelu", "F.gelu(x)", "jax.nn.gelu(x, approximate=False)"),
            ("sum", "m.sum(x)", "jnp.sum(x)"),
            ("x > y", "x > y", "x > y"),
            ("x * 1.5 + y", "x * 1.5 + y", "x * 1.5 + y"),
            ("where", "m.where(x > y, x, y)", "jnp.where(x > y, x, y)"),
            ("addcmul", "m.addcmul(x, x, y, value=0.5)", "x + 0.5 * x * y"),
        ]
        for name, text, jax in table:
            out += sized(f"{name}, {dtype}", both, text, None, jax, dtypes=kinds)
        out += sized(
            f"{dtype} to float32", both, "x.float()", None, "x.astype(jnp.float32)", dtypes=kinds
        )
        out += sized(
            f"float32 to {dtype}", both, f"x.to(m.{dtype})", None, f"x.astype(jnp.{dtype})"
        )
        plane_kind = {"x": dtype}
        out += sized(
            f"softmax, {dtype}",
            {"x": plane()},
            "m.softmax(x, -1)",
            None,
            "jax.nn.softmax(x, -1)",
            dtypes=plane_kind,
        )
    for dtype in ("int64", "int32", "int8", "uint8"):
        pair = {"x": whole(1, 100, dtype), "y": whole(1, 9, dtype)}
        for name, text in (("add", "x + y"), ("mul", "x * y"), ("x < y", "x < y")):
            # Without 64 bits, JAX would compute something else.
            jax = None if dtype == "int64" else text
            out += sized(f"{name}, {dtype}", pair, text, text, jax)
    pair = {"x": whole(1, 1000), "y": whole(1, 9)}
    for name, text in (
        ("floor_divide", "x // y"),
        ("remainder", "x % y"),
        ("bit and", "x & y"),
        ("shift", "x << y"),
    ):
        out += sized(f"{name}, int64", pair, text, text, None)
    small = {"x": whole(-100, 100, "int32"), "y": whole(1, 9, "int32")}
    out += sized("floor_divide, int32", small, "x // y", "x // y")
    out += sized("remainder, int32", small, "x % y", "x % y")
    mixed = {"x": whole(1, 1000), "y": uniform(-2, 2)}
    out += sized("int64 + float32", mixed, "x + y", None, None)
    for source, target in (("uint8", "float32"), ("float32", "uint8"), ("float64", "float32")):
        array = {"x": uniform(0, 99, source) if source[0] == "f" else whole(0, 99, source)}
        text = f"x.to(m.{target})"
        out += sized(f"{source} to {target}", array, text, f"x.astype('{target}')", None)
    out += sized("int64 to float32", pair, "x.float()", "x.astype('float32')", None)
    out += sized("float32 to int64", {"x": uniform(-99, 99)}, "x.long()", "x.astype('int64')", None)
    out += sized(
        "logical_and",
        {"x": whole(0, 2, "bool"), "y": whole(0, 2, "bool")},
        "m.logical_and(x, y)",
        "np.logical_and(x, y)",
    )
    return out
