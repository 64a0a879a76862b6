"""The rows of `make bench kernels`: what is computed, on which arrays, and how each library spells it.

A row's text is the body of a function of its arrays: PyTorch and Lamella share one (`m` is the
module), NumPy and JAX have one each (`np`, `jnp`), or none where they have no such function. JAX
compiles its text, with the arrays as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SIZES = (1_000, 100_000, 10_000_000)
# Two dimensions of about as many elements.
PLANES = {1_000: (25, 40), 100_000: (250, 400), 10_000_000: (2_500, 4_000)}

Make = Callable[[Any, int], Any]  # NumPy's generator and the size -> a NumPy array


@dataclass
class Row:
    name: str
    size: int  # elements; 0 where the name says the shape
    arrays: dict[str, Make]
    text: str
    numpy: str | None = None
    jax: str | None = None
    dtypes: dict[str, str] = field(default_factory=dict)  # array -> dtype, where it is not NumPy's
    moved: float = 0  # bytes read and written an element, where memory is the limit

    @property
    def label(self) -> str:
        return f"{self.name}, 1e{len(str(self.size)) - 1}" if self.size else self.name


def uniform(low: float, high: float, dtype: str = "float32") -> Make:
    return lambda random, n: random.uniform(low, high, n).astype(dtype)


def plane(low: float = -2, high: float = 2, dtype: str = "float32") -> Make:
    return lambda random, n: random.uniform(low, high, PLANES[n]).astype(dtype)


def whole(low: int, high: int, dtype: str = "int64") -> Make:
    return lambda random, n: random.integers(low, high, n).astype(dtype)


def normal(*shape: int, dtype: str = "float32") -> Make:
    return lambda random, n: random.standard_normal(shape).astype(dtype)


def places(shape: tuple[int, ...] | None, below: int, dtype: str = "int64") -> Make:
    """Indices below `below` (0: below the number of elements)."""
    return lambda random, n: random.integers(0, below or n, shape or n).astype(dtype)


def rows() -> list[Row]:
    found: list[Row] = []
    for part in (
        unary_rows, binary_rows, other_dtype_rows, reduction_rows, sorting_rows, index_rows,
        layout_rows, random_rows, product_rows, network_rows, gradient_rows,
    ):  # fmt: skip
        found += part()
    return found


SAME = "the same name"


def sized(
    name: str,
    arrays: dict[str, Make],
    text: str,
    numpy: str | None = None,
    jax: str | None = SAME,
    sizes: tuple[int, ...] = SIZES,
    **more: Any,
) -> list[Row]:
    """One row for each size. JAX spells as NumPy does unless it is said otherwise."""
    if jax is SAME:
        jax = None if numpy is None else numpy.replace("np.", "jnp.")
    return [Row(name, n, arrays, text, numpy, jax, **more) for n in sizes]


def unary_rows() -> list[Row]:
    out: list[Row] = []
    two = (-2.0, 2.0)
    inside, positive = (-0.95, 0.95), (0.01, 4.0)
    # name, domain, NumPy, JAX: None where there is none, "" for the same name.
    table: list[tuple[str, tuple[float, float], str | None, str | None]] = [
        ("abs", two, "", ""), ("neg", two, "-x", "-x"), ("sign", two, "", ""),
        ("exp", two, "", ""), ("exp2", two, "", ""), ("expm1", two, "", ""),
        ("log", positive, "", ""), ("log2", positive, "", ""), ("log10", positive, "", ""),
        ("log1p", (-0.9, 4.0), "", ""), ("sin", two, "", ""), ("cos", two, "", ""),
        ("tan", two, "", ""), ("asin", inside, "np.arcsin(x)", "jnp.arcsin(x)"),
        ("acos", inside, "np.arccos(x)", "jnp.arccos(x)"),
        ("atan", two, "np.arctan(x)", "jnp.arctan(x)"), ("sinh", two, "", ""),
        ("cosh", two, "", ""), ("tanh", two, "", ""),
        ("asinh", two, "np.arcsinh(x)", "jnp.arcsinh(x)"),
        ("acosh", (1.1, 4.0), "np.arccosh(x)", "jnp.arccosh(x)"),
        ("atanh", inside, "np.arctanh(x)", "jnp.arctanh(x)"),
        ("sqrt", positive, "", ""), ("rsqrt", positive, "1 / np.sqrt(x)", "jax.lax.rsqrt(x)"),
        ("reciprocal", positive, "", ""), ("square", two, "", ""), ("floor", two, "", ""),
        ("round", two, "np.rint(x)", "jnp.rint(x)"), ("frac", two, None, None),
        ("sigmoid", two, "1 / (1 + np.exp(-x))", "jax.nn.sigmoid(x)"),
        ("erf", two, None, "jax.scipy.special.erf(x)"),
        ("erfc", two, None, "jax.scipy.special.erfc(x)"),
        ("erfinv", inside, None, "jax.scipy.special.erfinv(x)"),
        ("lgamma", positive, None, "jax.scipy.special.gammaln(x)"),
        ("digamma", positive, None, "jax.scipy.special.digamma(x)"),
        ("logit", (0.05, 0.95), None, "jax.scipy.special.logit(x)"),
        ("i0", two, None, "jax.scipy.special.i0(x)"),
        ("sinc", two, "", ""), ("isnan", two, "", ""), ("isfinite", two, "", ""),
        ("nan_to_num", two, "", ""),
    ]  # fmt: skip
    for name, (low, high), numpy, jax in table:
        out += sized(
            name,
            {"x": uniform(low, high)},
            f"m.{name}(x)",
            f"np.{name}(x)" if numpy == "" else numpy,
            f"jnp.{name}(x)" if jax == "" else jax,
            moved=8 if name in ("abs", "neg", "sqrt", "square", "floor", "exp") else 0,
        )
    functional = [
        ("relu", "np.maximum(x, 0)"), ("gelu", None), ("silu", "x / (1 + np.exp(-x))"),
        ("softplus", "np.logaddexp(x, 0)"), ("elu", None), ("mish", None), ("leaky_relu", None),
        ("hardswish", None), ("log_sigmoid", None), ("selu", None),
    ]  # fmt: skip
    for name, numpy in functional:
        text = {"log_sigmoid": "logsigmoid", "hardswish": "hardswish"}.get(name, name)
        jax = {"hardswish": "hard_swish"}.get(name, name)
        exact = ", approximate=False" if name == "gelu" else ""
        out += sized(name, {"x": uniform(-2, 2)}, f"F.{text}(x)", numpy, f"jax.nn.{jax}(x{exact})")
    out += sized("gelu (tanh)", {"x": uniform(-2, 2)}, "F.gelu(x, approximate='tanh')", None,
                 "jax.nn.gelu(x)")  # fmt: skip
    out += sized("clamp", {"x": uniform(-2, 2)}, "m.clamp(x, -1.0, 1.0)", "np.clip(x, -1.0, 1.0)")
    out += sized("x ** 2", {"x": uniform(-2, 2)}, "x ** 2", "x ** 2")
    out += sized("x ** 3.5", {"x": uniform(0.1, 2)}, "x ** 3.5", "x ** np.float32(3.5)")
    return out


def binary_rows() -> list[Row]:
    out: list[Row] = []
    both = {"x": uniform(-2, 2), "y": uniform(0.5, 2)}
    table: list[tuple[str, str, str | None, str | None]] = [
        ("add", "m.add(x, y)", "np.add(x, y)", SAME), ("sub", "x - y", "x - y", SAME),
        ("mul", "x * y", "x * y", SAME), ("div", "x / y", "x / y", SAME),
        ("floor_divide", "m.floor_divide(x, y)", "np.floor_divide(x, y)", SAME),
        ("fmod", "m.fmod(x, y)", "np.fmod(x, y)", SAME),
        ("remainder", "m.remainder(x, y)", "np.remainder(x, y)", SAME),
        ("atan2", "m.atan2(x, y)", "np.arctan2(x, y)", SAME),
        ("hypot", "m.hypot(x, y)", "np.hypot(x, y)", SAME),
        ("maximum", "m.maximum(x, y)", "np.maximum(x, y)", SAME),
        ("copysign", "m.copysign(x, y)", "np.copysign(x, y)", SAME),
        ("logaddexp", "m.logaddexp(x, y)", "np.logaddexp(x, y)", SAME),
        ("nextafter", "m.nextafter(x, y)", "np.nextafter(x, y)", SAME),
        ("x < y", "x < y", "x < y", SAME), ("x == y", "x == y", "x == y", SAME),
        ("x + 1.5", "x + 1.5", "x + np.float32(1.5)", "x + 1.5"),
        ("x * 2.5 + y", "x * 2.5 + y", "x * np.float32(2.5) + y", SAME),
        ("lerp", "m.lerp(x, y, 0.3)", None, "x + 0.3 * (y - x)"),
        ("addcmul", "m.addcmul(x, x, y, value=0.5)", None, "x + 0.5 * x * y"),
        ("addcdiv", "m.addcdiv(x, x, y, value=0.5)", None, "x + 0.5 * x / y"),
        ("where(x > y)", "m.where(x > y, x, y)", "np.where(x > y, x, y)", SAME),
    ]  # fmt: skip
    for name, text, numpy, jax in table:
        moved = 12 if name in ("add", "sub", "mul", "div", "maximum") else 0
        out += sized(name, both, text, numpy, jax, moved=moved)
    out += sized("pow", {"x": uniform(0.1, 4), "y": uniform(-2, 2)}, "m.pow(x, y)",
                 "np.power(x, y)")  # fmt: skip
    out += sized("add(out=)", {**both, "o": uniform(0, 1)}, "m.add(x, y, out=o)",
                 "np.add(x, y, out=o)", None, moved=12)  # fmt: skip
    out += sized("x.mul_(1.0001)", {"x": uniform(0.5, 2)}, "x.mul_(1.0001)",
                 "np.multiply(x, np.float32(1.0001), out=x)", None, moved=8)  # fmt: skip
    row = {"x": plane(), "r": lambda random, n: random.random(PLANES[n][1], dtype="float32")}
    out += sized("add a row", row, "x + r", "x + r", moved=8)
    column = {"x": plane(), "c": lambda random, n: random.random((PLANES[n][0], 1), dtype="f4")}
    out += sized("add a column", column, "x + c", "x + c", moved=8)
    return out


def other_dtype_rows() -> list[Row]:
    out: list[Row] = []
    for name in ("exp", "log", "sin", "tanh", "sqrt", "erf", "expm1"):
        np_text = None if name == "erf" else f"np.{name}(x)"
        out += sized(f"{name}, float64", {"x": uniform(0.1, 3, "float64")}, f"m.{name}(x)", np_text,
                     None)  # fmt: skip
    for name, text in (("add", "x + y"), ("pow", "x ** y")):
        arrays = {"x": uniform(0.1, 3, "float64"), "y": uniform(0.1, 3, "float64")}
        out += sized(f"{name}, float64", arrays, text, text, None)
    for dtype in ("bfloat16", "float16"):
        both = {"x": uniform(0.1, 2), "y": uniform(0.1, 2)}
        kinds = {"x": dtype, "y": dtype}
        table = [
            ("add", "x + y", "x + y"), ("mul", "x * y", "x * y"), ("exp", "m.exp(x)", "jnp.exp(x)"),
            ("tanh", "m.tanh(x)", "jnp.tanh(x)"),
            ("gelu", "F.gelu(x)", "jax.nn.gelu(x, approximate=False)"),
            ("sum", "m.sum(x)", "jnp.sum(x)"), ("x > y", "x > y", "x > y"),
        ]  # fmt: skip
        for name, text, jax in table:
            out += sized(f"{name}, {dtype}", both, text, None, jax, dtypes=kinds)
        out += sized(f"{dtype} to float32", both, "x.float()", None, "x.astype(jnp.float32)",
                     dtypes=kinds)  # fmt: skip
        out += sized(f"float32 to {dtype}", both, f"x.to(m.{dtype})", None,
                     f"x.astype(jnp.{dtype})")  # fmt: skip
        plane_kind = {"x": dtype}
        out += sized(f"softmax, {dtype}", {"x": plane()}, "m.softmax(x, -1)", None,
                     "jax.nn.softmax(x, -1)", dtypes=plane_kind)  # fmt: skip
    for dtype in ("int64", "int32", "int8", "uint8"):
        pair = {"x": whole(1, 100, dtype), "y": whole(1, 9, dtype)}
        for name, text in (("add", "x + y"), ("mul", "x * y"), ("x < y", "x < y")):
            # Without 64 bits, JAX would compute something else.
            jax = None if dtype == "int64" else text
            out += sized(f"{name}, {dtype}", pair, text, text, jax)
    pair = {"x": whole(1, 1000), "y": whole(1, 9)}
    for name, text in (("floor_divide", "x // y"), ("remainder", "x % y"), ("bit and", "x & y"),
                       ("shift", "x << y")):  # fmt: skip
        out += sized(f"{name}, int64", pair, text, text, None)
    out += sized("int64 to float32", pair, "x.float()", "x.astype('float32')", None)
    out += sized("float32 to int64", {"x": uniform(-99, 99)}, "x.long()", "x.astype('int64')", None)
    out += sized("logical_and", {"x": whole(0, 2, "bool"), "y": whole(0, 2, "bool")},
                 "m.logical_and(x, y)", "np.logical_and(x, y)")  # fmt: skip
    return out


def reduction_rows() -> list[Row]:
    out: list[Row] = []
    x = {"x": uniform(0.5, 1.5)}
    for name in ("sum", "mean", "prod", "max", "argmax", "std", "cumsum", "cumprod"):
        ddof = ", ddof=1" if name == "std" else ""
        dim = ", 0" if name.startswith("cum") else ""
        moved = 4 if name in ("sum", "max") else 0
        out += sized(name, x, f"m.{name}(x{dim})", f"np.{name}(x{ddof})", moved=moved)
    out += sized("norm", x, "m.linalg.norm(x)", "np.linalg.norm(x)")
    out += sized("logsumexp", x, "m.logsumexp(x, 0)", None, "jax.scipy.special.logsumexp(x)")
    out += sized("count_nonzero", {"x": whole(0, 2, "bool")}, "m.count_nonzero(x)",
                 "np.count_nonzero(x)")  # fmt: skip
    flags = {"x": lambda random, n: random.integers(0, 2, n).astype(bool)}
    out += sized("any", flags, "m.any(x)", "np.any(x)")
    out += sized("all of true", {"x": lambda random, n: random.integers(1, 2, n).astype(bool)},
                 "m.all(x)", "np.all(x)")  # fmt: skip
    out += sized("sum, int64", {"x": whole(0, 9)}, "m.sum(x)", "np.sum(x)", None)
    out += sized("max, int8", {"x": whole(0, 99, "int8")}, "m.max(x)", "np.max(x)")
    p = {"x": plane()}
    for axis, where in ((1, "along rows"), (0, "along columns")):
        for name in ("sum", "mean", "argmax", "cumsum", "std"):
            extra = ", ddof=1" if name == "std" else ""
            out += sized(f"{name} {where}", p, f"m.{name}(x, {axis})",
                         f"np.{name}(x, {axis}{extra})".replace(f"{axis}, ddof", f"{axis}, ddof"),
                         )  # fmt: skip
        out += sized(f"max {where}", p, f"m.amax(x, {axis})", f"np.max(x, {axis})")
        out += sized(f"softmax {where}", p, f"m.softmax(x, {axis})", None,
                     f"jax.nn.softmax(x, {axis})")  # fmt: skip
    out += sized("log_softmax", p, "m.log_softmax(x, -1)", None, "jax.nn.log_softmax(x, -1)")
    ln = {
        "x": plane(),
        "w": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
        "b": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
    }
    out += sized("layer_norm", ln, "F.layer_norm(x, (x.shape[1],), w, b)", None,
                 "(x - x.mean(1, keepdims=True)) * jax.lax.rsqrt(x.var(1, keepdims=True) + 1e-5)"
                 " * w + b")  # fmt: skip
    cube = {"x": normal(8, 64, 56, 56), "w": normal(64), "b": normal(64)}
    out.append(Row("sum over 8x64x56x56, dims 0, 2, 3", 0, cube, "m.sum(x, (0, 2, 3))",
                   "np.sum(x, (0, 2, 3))", "jnp.sum(x, (0, 2, 3))"))  # fmt: skip
    out.append(Row("batch_norm training 8x64x56x56", 0, cube,
                   "F.batch_norm(x, None, None, w, b, True)"))  # fmt: skip
    out.append(Row("group_norm 8x64x56x56", 0, cube, "F.group_norm(x, 8, w, b)"))
    return out


def sorting_rows() -> list[Row]:
    out: list[Row] = []
    x = {"x": uniform(-2, 2)}
    small = SIZES[:2]
    for size in (SIZES[0], SIZES[1], 1_000_000):
        pick = (size,)
        out += sized("sort", x, "m.sort(x)", "np.sort(x)", sizes=pick)
        out += sized("argsort", x, "m.argsort(x)", "np.argsort(x)", sizes=pick)
        out += sized("sort, int64", {"x": whole(-10**9, 10**9)}, "m.sort(x)", "np.sort(x)", None,
                     sizes=pick)  # fmt: skip
        out += sized("topk of 10", x, "m.topk(x, 10)", "np.partition(x, x.size - 10)[-10:]",
                     "jax.lax.top_k(x, 10)", sizes=pick)  # fmt: skip
        out += sized("median", x, "m.median(x)", "np.median(x)", sizes=pick)
        out += sized("kthvalue", x, "m.kthvalue(x, x.numel() // 3)",
                     "np.partition(x, x.size // 3)[x.size // 3]", None, sizes=pick)  # fmt: skip
        out += sized("unique", {"x": whole(0, 1000)}, "m.unique(x)", "np.unique(x)", None,
                     sizes=pick)  # fmt: skip
    plane_sizes = (SIZES[0], SIZES[1])
    out += sized("sort along rows", {"x": plane()}, "m.sort(x, 1)", "np.sort(x, 1)",
                 sizes=plane_sizes)  # fmt: skip
    out += sized("topk of 5 along rows", {"x": plane()}, "m.topk(x, 5, 1)", None,
                 "jax.lax.top_k(x, 5)", sizes=plane_sizes)  # fmt: skip
    table = {"x": uniform(0, 1), "e": lambda random, n: (random.random(1000).astype("f4")).cumsum()}
    out += sized("searchsorted", table, "m.searchsorted(e, x)", "np.searchsorted(e, x)", None)
    out += sized("bincount", {"x": whole(0, 1000)}, "m.bincount(x)", "np.bincount(x)", None)
    out += sized("histc of 100", x, "m.histc(x, 100, -2, 2)", "np.histogram(x, 100, (-2, 2))", None,
                 sizes=small)  # fmt: skip
    return out


def index_rows() -> list[Row]:
    out: list[Row] = []
    both = {"x": uniform(-2, 2), "i": places(None, 0)}
    out += sized("take", both, "m.take(x, i)", "np.take(x, i)")
    out += sized("x[i]", both, "x[i]", "x[i]")
    out += sized("gather", both, "m.gather(x, 0, i)", "np.take_along_axis(x, i, 0)")
    out += sized("index_select", both, "m.index_select(x, 0, i)", "np.take(x, i, 0)")
    out += sized("scatter_add", {**both, "o": uniform(0, 1)}, "m.scatter_add(o, 0, i, x)", None,
                 "o.at[i].add(x)")  # fmt: skip
    out += sized("index_add", {**both, "o": uniform(0, 1)}, "m.index_add(o, 0, i, x)", None,
                 "o.at[i].add(x)")  # fmt: skip
    out += sized("index_put", {**both, "o": uniform(0, 1)}, "m.index_put(o, (i,), x)", None,
                 "o.at[i].set(x)")  # fmt: skip
    flags = {"x": uniform(-2, 2), "k": whole(0, 2, "bool")}
    out += sized("x[mask]", flags, "x[k]", "x[k]", None)
    out += sized("nonzero", flags, "m.nonzero(k)", "np.nonzero(k)", None)
    out += sized("masked_fill", flags, "m.masked_fill(x, k, 0.5)", None, "jnp.where(k, 0.5, x)")
    rows_of = {"x": plane(), "i": lambda random, n: random.integers(0, PLANES[n][0], PLANES[n][0])}
    out += sized("rows x[i]", rows_of, "x[i]", "x[i]")
    at = {"x": plane(), "i": lambda random, n: random.integers(0, PLANES[n][1], PLANES[n])}
    out += sized("gather along rows", at, "m.gather(x, 1, i)", "np.take_along_axis(x, i, 1)")
    words = {"w": normal(30522, 384), "i": places((8, 128), 30522)}
    out.append(Row("embedding 8x128 of 30522x384", 0, words, "F.embedding(i, w)", "w[i]", "w[i]"))
    return out


def layout_rows() -> list[Row]:
    out: list[Row] = []
    x, p = {"x": uniform(-2, 2)}, {"x": plane()}
    out += sized("copy", x, "x.clone()", "x.copy()", "jnp.copy(x)", moved=8)
    out += sized("fill", x, "m.full_like(x, 2.5)", "np.full_like(x, 2.5)", moved=4)
    out += sized("arange", x, "m.arange(x.shape[0])", "np.arange(x.shape[0])", None)
    out += sized("x[::2] copied", x, "x[::2].clone()", "x[::2].copy()")
    out += sized("x[::2] + x[1::2]", x, "x[::2] + x[1::2]", "x[::2] + x[1::2]")
    out += sized("flip", x, "m.flip(x, (0,))", "np.flip(x, 0).copy()")
    out += sized("flip rows", p, "m.flip(x, (1,))", "np.flip(x, 1).copy()")
    out += sized("roll", x, "m.roll(x, 7)", "np.roll(x, 7)")
    out += sized("cat of 3", x, "m.cat((x, x, x))", "np.concatenate((x, x, x))")
    out += sized("stack of 3", x, "m.stack((x, x, x))", "np.stack((x, x, x))")
    out += sized("stack of 3, last", x, "m.stack((x, x, x), -1)", "np.stack((x, x, x), -1)")
    out += sized("transpose copied", p, "x.t().contiguous()", "np.ascontiguousarray(x.T)",
                 "jnp.copy(x.T)")  # fmt: skip
    out += sized("x + x.t-like", {"x": plane(), "y": lambda r, n: r.random(PLANES[n][::-1], "f4")},
                 "x + y.t()", "x + y.T")  # fmt: skip
    out += sized("pad", p, "F.pad(x, (1, 1, 1, 1))", "np.pad(x, 1)")
    out += sized("repeat", p, "x.repeat(2, 2)", "np.tile(x, (2, 2))")
    out += sized("repeat_interleave", x, "m.repeat_interleave(x, 3)", "np.repeat(x, 3)")
    out += sized("tril", p, "m.tril(x)", "np.tril(x)")
    out += sized("unfold windows", x, "x.unfold(0, 8, 4).contiguous()",
                 "np.lib.stride_tricks.sliding_window_view(x, 8)[::4].copy()", None)  # fmt: skip
    heads = {"x": normal(8, 128, 12, 32)}
    out.append(Row("permute 8x128x12x32 (0, 2, 1, 3)", 0, heads,
                   "x.permute(0, 2, 1, 3).contiguous()",
                   "np.ascontiguousarray(x.transpose(0, 2, 1, 3))",
                   "jnp.copy(x.transpose(0, 2, 1, 3))"))  # fmt: skip
    image = {"x": normal(8, 64, 56, 56)}
    out.append(Row("channels_last 8x64x56x56", 0, image,
                   "x.contiguous(memory_format=m.channels_last)",
                   "np.ascontiguousarray(x.transpose(0, 2, 3, 1))",
                   "jnp.copy(x.transpose(0, 2, 3, 1))"))  # fmt: skip
    return out


def random_rows() -> list[Row]:
    out: list[Row] = []
    x = {"x": uniform(-2, 2)}
    out += sized("rand", x, "m.rand(x.shape[0])", "G.random(x.shape[0], 'float32')", None)
    out += sized("randn", x, "m.randn(x.shape[0])", "G.standard_normal(x.shape[0], 'float32')",
                 None)  # fmt: skip
    out += sized("randint", x, "m.randint(0, 100, (x.shape[0],))",
                 "G.integers(0, 100, x.shape[0])", None)  # fmt: skip
    out += sized("randperm", x, "m.randperm(x.shape[0])", "G.permutation(x.shape[0])", None,
                 sizes=SIZES[:2])  # fmt: skip
    out += sized("dropout", x, "F.dropout(x, 0.5, True)", None, None)
    out += sized("bernoulli", x, "m.bernoulli(x.abs().mul_(0.5))", None, None)
    out += sized("exponential_", x, "x.exponential_()", None, None)
    return out


def product_rows() -> list[Row]:
    out: list[Row] = []

    def product(m: int, k: int, n: int, dtype: str = "", text: str = "x @ w") -> None:
        kinds = {"x": dtype, "w": dtype} if dtype else {}
        jax = text if dtype != "float64" else None
        out.append(Row(f"{m}x{k}x{n}{', ' + dtype if dtype else ''}", 0,
                       {"x": normal(m, k), "w": normal(k, n)}, text,
                       text if dtype in ("", "float64") else None, jax, dtypes=kinds))  # fmt: skip

    for n in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
        product(n, n, n)
    for m, k, n in ((1, 384, 1536), (8, 384, 1536), (32, 384, 1536), (128, 1536, 384),
                    (1024, 384, 384), (10000, 16, 16), (16, 10000, 16), (3, 1000, 5)):  # fmt: skip
        product(m, k, n)
    for dtype in ("bfloat16", "float16"):
        for m, k, n in ((16, 16, 16), (64, 64, 64), (256, 256, 256), (1024, 1024, 1024),
                        (1, 384, 1536), (32, 384, 1536)):  # fmt: skip
            product(m, k, n, dtype)
    for n in (16, 64, 256, 512):
        product(n, n, n, "float64")
    out.append(Row("int64 product 64", 0, {"x": places((64, 64), 9), "w": places((64, 64), 9)},
                   "x @ w", "x @ w"))  # fmt: skip
    for n in (64, 1000):
        out.append(Row(f"mv {n}", 0, {"x": normal(n, n), "w": normal(n)}, "m.mv(x, w)", "x @ w",
                       "x @ w"))  # fmt: skip
    for b, m, k, n in ((16, 16, 16, 16), (64, 4, 4, 4), (12, 128, 32, 128), (12, 128, 128, 32),
                       (96, 64, 64, 64)):  # fmt: skip
        out.append(Row(f"bmm {b} of {m}x{k}x{n}", 0, {"x": normal(b, m, k), "w": normal(b, k, n)},
                       "m.bmm(x, w)", "x @ w", "x @ w"))  # fmt: skip
    for rows_, k, n in ((1, 384, 1536), (32, 384, 1536), (128, 384, 384), (1024, 384, 1536),
                        (64, 64, 128), (64, 128, 10)):  # fmt: skip
        linear = {"x": normal(rows_, k), "w": normal(n, k), "b": normal(n)}
        out.append(Row(f"linear {rows_}x{k}x{n}", 0, linear, "F.linear(x, w, b)", "x @ w.T + b",
                       "x @ w.T + b"))  # fmt: skip
    out.append(Row("cdist 256x64", 0, {"x": normal(256, 64), "y": normal(256, 64)},
                   "m.cdist(x, y)"))  # fmt: skip
    out.append(Row("einsum bij,bkj->bik", 0, {"x": normal(8, 64, 32), "y": normal(8, 48, 32)},
                   "m.einsum('bij,bkj->bik', x, y)", "np.einsum('bij,bkj->bik', x, y)",
                   "jnp.einsum('bij,bkj->bik', x, y)"))  # fmt: skip
    out.append(Row("outer 1000", 0, {"x": normal(1000), "y": normal(1000)}, "m.outer(x, y)",
                   "np.outer(x, y)", "jnp.outer(x, y)"))  # fmt: skip
    out.append(Row("dot 1e5", 0, {"x": normal(100000), "y": normal(100000)}, "m.dot(x, y)",
                   "np.dot(x, y)", "jnp.dot(x, y)"))  # fmt: skip
    for heads, tokens, width in ((12, 16, 64), (12, 128, 64), (12, 128, 32), (12, 512, 64)):
        qkv = {name: normal(1, heads, tokens, width) for name in "qkv"}
        jax = "jax.nn.dot_product_attention(q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2)"
        for causal in (False, True):
            out.append(Row(
                f"attention {heads}x{tokens}x{width}{', causal' if causal else ''}", 0, qkv,
                f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})", None,
                f"{jax}, is_causal={causal}).swapaxes(1, 2)",
            ))  # fmt: skip
    return out


def network_rows() -> list[Row]:
    out: list[Row] = []

    def convolution(
        name: str, x: tuple[int, ...], w: tuple[int, ...], options: str, jax: str, rank: int = 2
    ) -> None:
        """`jax` holds window strides, padding, dilation and groups for lax."""
        layout = "('NCHW', 'OIHW', 'NCHW')"
        out.append(Row(name, 0, {"x": normal(*x), "w": normal(*w)}, f"F.conv{rank}d(x, w{options})",
                       None, f"jax.lax.conv_general_dilated(x, w, {jax}, "
                       f"dimension_numbers={layout})" if rank == 2 else None))  # fmt: skip

    one = "(1, 1), ((1, 1), (1, 1))"
    convolution("conv 3x3 64x56x56", (1, 64, 56, 56), (64, 64, 3, 3), ", padding=1", one)
    convolution("conv 3x3 8x3x64x64", (8, 3, 64, 64), (32, 3, 3, 3), ", padding=1", one)
    convolution("conv 1x1 64x56x56", (1, 64, 56, 56), (256, 64, 1, 1), "",
                "(1, 1), ((0, 0), (0, 0))")  # fmt: skip
    convolution("conv depthwise 128x56x56", (1, 128, 56, 56), (128, 1, 3, 3),
                ", padding=1, groups=128", one + ", feature_group_count=128")  # fmt: skip
    convolution("conv 7x7 stride 2", (1, 3, 224, 224), (64, 3, 7, 7), ", stride=2, padding=3",
                "(2, 2), ((3, 3), (3, 3))")  # fmt: skip
    convolution("conv dilated", (1, 32, 56, 56), (32, 32, 3, 3), ", padding=2, dilation=2",
                "(1, 1), ((2, 2), (2, 2)), rhs_dilation=(2, 2)")  # fmt: skip
    convolution("conv1d 8x64x1000", (8, 64, 1000), (64, 64, 3), ", padding=1", "", rank=1)
    out.append(Row("conv transposed 32x28x28", 0,
                   {"x": normal(1, 32, 28, 28), "w": normal(32, 16, 4, 4)},
                   "F.conv_transpose2d(x, w, stride=2, padding=1)"))  # fmt: skip
    last = ".contiguous(memory_format=m.channels_last)"
    image = {"x": normal(8, 64, 56, 56)}
    nchw = "jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')"
    out.append(Row("max_pool 2 8x64x56x56", 0, image, "F.max_pool2d(x, 2)", None, nchw))
    out.append(Row("max_pool 3 stride 2 8x64x56x56", 0, image, "F.max_pool2d(x, 3, 2, 1)"))
    out.append(Row("avg_pool 2 8x64x56x56", 0, image, "F.avg_pool2d(x, 2)"))
    out.append(Row("adaptive_avg_pool 1 8x64x56x56", 0, image, "F.adaptive_avg_pool2d(x, 1)",
                   None, "x.mean((2, 3), keepdims=True)"))  # fmt: skip
    out.append(Row("adaptive_avg_pool 7 8x64x56x56", 0, image, "F.adaptive_avg_pool2d(x, 7)"))
    out.append(Row("bilinear x2 8x64x28x28", 0, {"x": normal(8, 64, 28, 28)},
                   "F.interpolate(x, scale_factor=2, mode='bilinear')", None,
                   "jax.image.resize(x, (8, 64, 56, 56), 'bilinear')"))  # fmt: skip
    out.append(Row("nearest x2 8x64x28x28", 0, {"x": normal(8, 64, 28, 28)},
                   "F.interpolate(x, scale_factor=2)"))  # fmt: skip
    for name, text in (("max_pool 2", "F.max_pool2d(x, 2)"), ("avg_pool 2", "F.avg_pool2d(x, 2)"),
                       ("adaptive_avg_pool 1", "F.adaptive_avg_pool2d(x, 1)"),
                       ("bilinear x2", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
                       ("batch_norm", "F.batch_norm(x, u, v, w, b)")):  # fmt: skip
        more = {"u": normal(64), "w": normal(64), "b": normal(64),
                "v": lambda random, n: random.random(64, dtype="float32") + 1}  # fmt: skip
        out.append(Row(f"{name} channels_last", 0, {**image, **more}, text,
                       dtypes={"x": "channels_last"}))  # fmt: skip
    assert last
    logits = {"x": normal(64, 1000), "t": places((64,), 1000)}
    out.append(Row("cross_entropy 64x1000", 0, logits, "F.cross_entropy(x, t)", None,
                   "-jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1).mean()"))  # fmt: skip
    out += sized("mse_loss", {"x": uniform(-2, 2), "y": uniform(-2, 2)}, "F.mse_loss(x, y)",
                 "np.mean((x - y) ** 2)", "((x - y) ** 2).mean()")  # fmt: skip
    out += sized("smooth_l1_loss", {"x": uniform(-2, 2), "y": uniform(-2, 2)},
                 "F.smooth_l1_loss(x, y)")  # fmt: skip
    for n in (32, 256):
        spd = {"x": lambda random, size, n=n: (lambda a: (a @ a.T + n * _eye(n)).astype("f4"))(
            random.standard_normal((n, n)))}  # fmt: skip
        for name, np_name in (("cholesky", "cholesky"), ("inv", "inv"), ("eigvalsh", "eigvalsh"),
                              ("svdvals", None)):  # fmt: skip
            out.append(Row(f"{name} {n}", 0, spd, f"m.linalg.{name}(x)",
                           f"np.linalg.{np_name}(x)" if np_name else None,
                           f"jnp.linalg.{np_name}(x)" if np_name else None))  # fmt: skip
    return out


def _eye(n: int) -> Any:
    import numpy

    return numpy.eye(n)


def gradient_rows() -> list[Row]:
    """Forward and backward of one operator: the gradients of its floating-point arrays."""
    out: list[Row] = []
    unary = ["tanh", "sigmoid", "exp", "log", "erfinv", "digamma", "sqrt", "abs", "sin", "cumsum",
             "sort", "logsumexp"]  # fmt: skip
    for name in unary:
        inner = f"m.{name}(x)"
        if name == "sort":
            inner = "m.sort(x)[0]"
        if name in ("cumsum", "logsumexp"):
            inner = f"m.{name}(x, 0)"
        jnp = {"digamma": "jax.scipy.special.digamma(x)", "erfinv": "jax.scipy.special.erfinv(x)",
               "sigmoid": "jax.nn.sigmoid(x)", "logsumexp": "jax.scipy.special.logsumexp(x)",
               "cumsum": "jnp.cumsum(x)", "sort": "jnp.sort(x)"}.get(name, f"jnp.{name}(x)")  # fmt: skip
        out += sized(f"grad of {name}", {"x": uniform(0.05, 0.95)}, f"grad({inner}, x)", None,
                     f"jax.grad(lambda x: {jnp}.sum())(x)", sizes=SIZES[:2])  # fmt: skip
    for name in ("gelu", "silu", "softplus"):
        exact = ", approximate=False" if name == "gelu" else ""
        out += sized(f"grad of {name}", {"x": uniform(-2, 2)}, f"grad(F.{name}(x), x)", None,
                     f"jax.grad(lambda x: jax.nn.{name}(x{exact}).sum())(x)",
                     sizes=SIZES[:2])  # fmt: skip
    p = {"x": plane()}
    out += sized("grad of softmax", p, "grad(m.softmax(x, -1), x)", None, None, sizes=SIZES[:2])
    out += sized("grad of repeat_interleave", {"x": uniform(-2, 2)},
                 "grad(m.repeat_interleave(x, 3), x)", None, None, sizes=SIZES[:2])  # fmt: skip
    both = {"x": uniform(-2, 2), "i": places(None, 0)}
    out += sized("grad of x[i]", both, "grad(x[i], x)", None,
                 "jax.grad(lambda x: x[i].sum())(x)", sizes=SIZES[:2])  # fmt: skip
    linear = {"x": normal(128, 384), "w": normal(1536, 384), "b": normal(1536)}
    out.append(Row("grad of linear 128x384x1536", 0, linear, "grad(F.linear(x, w, b), x, w, b)",
                   None, "jax.grad(lambda a: (a[0] @ a[1].T + a[2]).sum())((x, w, b))"))  # fmt: skip
    for x, w, options, name in (
        ((8, 16, 28, 28), (32, 16, 3, 3), ", padding=1", "3x3 8x16x28x28"),
        ((1, 64, 56, 56), (64, 64, 1, 1), "", "1x1 64x56x56"),
        ((1, 128, 28, 28), (128, 1, 3, 3), ", padding=1, groups=128", "depthwise 128x28x28"),
    ):
        out.append(Row(f"grad of conv {name}", 0, {"x": normal(*x), "w": normal(*w)},
                       f"grad(F.conv2d(x, w{options}), x, w)"))  # fmt: skip
    qkv = {name: normal(1, 12, 128, 64) for name in "qkv"}
    jax = "jax.nn.dot_product_attention(*(t.swapaxes(1, 2) for t in a))"
    out.append(Row("grad of attention 12x128x64", 0, qkv,
                   "grad(F.scaled_dot_product_attention(q, k, v), q, k, v)", None,
                   f"jax.grad(lambda a: {jax}.sum())((q, k, v))"))  # fmt: skip
    image = {"x": normal(8, 64, 56, 56)}
    out.append(Row("grad of max_pool 2", 0, image, "grad(F.max_pool2d(x, 2), x)"))
    ln = {"x": plane(), "w": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
          "b": lambda random, n: random.random(PLANES[n][1], dtype="float32")}  # fmt: skip
    out += sized("grad of layer_norm", ln, "grad(F.layer_norm(x, (x.shape[1],), w, b), x, w, b)",
                 None, None, sizes=SIZES[:2])  # fmt: skip
    return out
