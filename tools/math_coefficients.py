"""Computes coefficients.h and *_pieces.h of lamella/kernels/cpu/simd: polynomials of functions.

Each polynomial interpolates its function in the points of Chebyshev, in 40 digits, which is within
a small factor of the best (J.-M. Muller, Elementary Functions, chapter 3). A form is chosen so
that relative accuracy survives where the function is 0: the first terms of its series stand in the
code and the polynomial is of what remains. The headers are kept beside the code, because building
needs no mpmath: `math_coefficients.py --write` makes them again, without the option the errors are
printed.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

mp.dps = 40
FOLDER = Path(__file__).resolve().parent.parent / "lamella/kernels/cpu/simd"
Function = Callable[[Any], Any]


def fit(f: Function, low: Any, high: Any, n: int) -> list[Any]:
    """n coefficients, lowest first."""
    return list(reversed(mp.chebyfit(f, [mpf(low), mpf(high)], n)))


def error(f: Function, c: list[Any], low: Any, high: Any) -> float:
    worst = mpf(0)
    for i in range(41):
        x = mpf(low) + (mpf(high) - mpf(low)) * (i + mpf("0.37")) / 41
        worst = max(worst, abs(mp.polyval(list(reversed(c)), x) - f(x)))
    return float(worst)


def rounded(x: Any, kind: str) -> float:
    value = float(x)
    return struct.unpack("f", struct.pack("f", value))[0] if kind == "float" else value


def text(x: Any, kind: str) -> str:
    value = rounded(x, kind)
    if kind == "float":
        return (
            f"{value:.9g}f" if "." in f"{value:.9g}" or "e" in f"{value:.9g}" else f"{value:.9g}.f"
        )
    return f"{value:.17g}"


def wrapped(begin: str, words: list[str], end: str) -> list[str]:
    """A list in lines of at most 100 characters."""
    lines = [begin]
    for i, word in enumerate(words):
        part = word + (", " if i + 1 < len(words) else end)
        if len(lines[-1]) + len(part.rstrip()) > 100:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(begin))
        lines[-1] += part
    return lines


def remainder_of_series(f: Function, first: list[Any], power: int) -> Function:
    """(f(x) - first[0] - first[1] x - ...) / x^power, with care at 0."""

    def g(x: Any) -> Any:
        if abs(x) < mpf(10) ** -12:
            return mp.taylor(f, 0, power + 2)[power]
        with mp.extradps(30):
            return (f(x) - sum(c * x**i for i, c in enumerate(first))) / x**power

    return g


def odd_rest(f: Function, slope: Any) -> Function:
    """(f(x) / x - slope) / z of an odd f, as a function of z = x^2."""

    def g(z: Any) -> Any:
        with mp.extradps(40):
            z = max(mpf(z), mpf(10) ** -20)
            x = mp.sqrt(z)
            return (f(x) / x - slope) / z

    return g


LN2 = mp.log(2)
PIECES = 50


# The logarithm for powers: x = m 2^n, m in [3/4, 3/2), and m is near 1 / inverse[i], i the first
# bits of m's mantissa. Next to 1 the inverse is 1.
POWER_ENTRIES = {"float": 32, "double": 16}
# Coefficients of log2(1 + r) / r, and bits after the point that n + high[i] has room for.
POWER_TERMS = {"float": 6, "double": 12}
POWER_BITS = {"float": 14, "double": 40}


def power_table(kind: str) -> list[str]:
    """log2(1 + r) = r (head[0] + head[1] r + rest[0] + rest[1] r + ...), and logarithms of m."""
    entries, terms = POWER_ENTRIES[kind], POWER_TERMS[kind]
    low, high = mpf(-1) / entries / 2, mpf(1) / entries
    c = fit(lambda r: mp.log1p(r) / r / LN2 if r else 1 / LN2, low, high, terms)
    g = [mp.log1p(r) / r / LN2 - mp.polyval(list(reversed(c)), r) for r in (low, low / 3, high / 3)]
    print(f"power {kind} {float(max(abs(x) for x in g)):.2e}", file=sys.stderr)
    head = [mpf(rounded(x, kind)) for x in c[:2]]
    inverse, upper, lower = [], [], []
    for i in range(entries):
        center = (1 + (i + mpf(0.5)) / entries) * (1 if i < entries // 2 else mpf(0.5))
        near = mpf(1) if i in (0, entries - 1) else mpf(rounded(1 / center, kind))
        log = -mp.log(near) / LN2
        whole = mp.nint(log * 2 ** POWER_BITS[kind]) / 2 ** POWER_BITS[kind]
        inverse.append(near)
        upper.append(whole)
        lower.append(log - whole)
    lists = {
        "head": head,
        "rest": [c[0] - head[0], c[1] - head[1], *c[2:]],
        "inverse": inverse,
        "high": upper,
        "low": lower,
    }
    return [
        f"  static constexpr {kind} {name}[] = {{" + ", ".join(text(x, kind) for x in values) + "};"
        for name, values in lists.items()
    ]


BOTH: dict[str, tuple[str, Function, Any, Any, int, int]] = {}
# The best polynomial, where its error is visibly less than that of the one that interpolates.
BEST = {("sin", "float"): [-0.16666655, 0.008332235, -0.00019524731]}


def row(name: str, comment: str, f: Function, low: Any, high: Any, n: int, m: int) -> None:
    BOTH[name] = (comment, f, low, high, n, m)


row(
    "exp",
    "exp(r) = 1 + r + r^2 P(r), |r| <= log(2) / 2",
    remainder_of_series(mp.exp, [1, 1], 2),
    -LN2 / 2 - mpf("1e-4"),
    LN2 / 2 + mpf("1e-4"),
    5,
    10,
)
row(
    "exp2",
    "2^r = 1 + r P(r), |r| <= 1/2",
    lambda r: (mp.expm1(r * LN2) / r if r else LN2),
    -0.5,
    0.5,
    6,
    12,
)
row(
    "log",
    "log(1 + f) = f - f^2 / 2 + f^3 P(f), f in [-1/4, 1/2]",
    remainder_of_series(lambda f: mp.log1p(f), [0, 1, mpf(-1) / 2], 3),
    -0.25,
    0.5,
    9,
    0,
)
row(
    "log2",
    "log2(1 + f) = f P(f)",
    lambda f: mp.log1p(f) / f / LN2 if f else 1 / LN2,
    -0.25,
    0.5,
    10,
    0,
)
row(
    "log10",
    "log10(1 + f) = f P(f)",
    lambda f: mp.log1p(f) / f / mp.log(10) if f else 1 / mp.log(10),
    -0.25,
    0.5,
    10,
    0,
)
row(
    "log_odd",
    "log((1 + s) / (1 - s)) = s (2 + z P(z)), z = s^2, |s| <= 1/5",
    odd_rest(lambda s: mp.log((1 + s) / (1 - s)), 2),
    0,
    0.04,
    0,
    8,
)
row("sinh", "sinh(x) = x + x^3 P(x^2), |x| <= 1", odd_rest(mp.sinh, 1), 0, 1.0, 3, 7)
row(
    "sin",
    "sin(r) = r + r^3 P(r^2), |r| <= pi / 4",
    odd_rest(mp.sin, 1),
    0,
    (mp.pi / 4) ** 2 + mpf("1e-3"),
    3,
    6,
)
row(
    "cos",
    "cos(r) = 1 - z / 2 + z^2 P(z), z = r^2",
    lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -12 else mpf(1) / 24,
    0,
    (mp.pi / 4) ** 2 + mpf("1e-3"),
    3,
    6,
)
row(
    "tan",
    "tan(r) = r + r^3 P(r^2), |r| <= pi / 4",
    odd_rest(mp.tan, 1),
    0,
    (mp.pi / 4) ** 2 + mpf("1e-3"),
    7,
    14,
)
row(
    "atan",
    "atan(t) = t + t^3 P(t^2), |t| <= tan(pi / 8)",
    odd_rest(mp.atan, 1),
    0,
    mpf("0.1717"),
    5,
    11,
)
row("asin", "asin(t) = t + t^3 P(t^2), |t| <= 0.55", odd_rest(mp.asin, 1), 0, 0.3026, 6, 14)
row("asinh", "asinh(t) = t + t^3 P(t^2), |t| <= 1/2", odd_rest(mp.asinh, 1), 0, 0.25, 6, 13)


def tail_over_density(x: Any) -> Any:
    """exp(x^2 / 2) times the normal distribution function of -x."""
    return mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) / 2


row(
    "mills",
    "exp(x^2 / 2) Phi(-x) (x + 3/2) = P(t), t = (x - 3/2) / (x + 3/2), 0 <= x <= 15",
    lambda t: tail_over_density(1.5 * (1 + t) / (1 - t)) * 3 / (1 - t),
    -1,
    mpf("0.8183"),
    12,
    0,
)


# Functions in pieces: name, comment, function, whether it is 0 at 0 (as its first polynomial then
# is), and for each precision the first edge, pieces an octave (a power of two), the last end and
# the number of coefficients.
PIECES_OF: list[tuple[str, str, Function, bool, dict[str, tuple[Any, int, Any, int]]]] = []
ENTRIES = {"float": 32, "double": 16}


def piece_row(name: str, comment: str, f: Function, zero: bool, **how: Any) -> None:
    PIECES_OF.append((name, comment, f, zero, how))


piece_row("tanh", "tanh(x)", mp.tanh, True, float=("0.0625", 4, 9.2, 6))
piece_row(
    "erf",
    "erf(x) - x below 1, erf(x) from there on",
    lambda x: mp.erf(x) - (x if x < 1 else 0),
    True,
    float=("0.0625", 4, 4, 6),
    double=("0.5", 4, 6, 15),
)
piece_row(
    "mills",
    "exp(x^2 / 2) times the normal distribution function of -x",
    tail_over_density,
    False,
    float=("0.125", 4, 27, 7),
    double=("0.25", 2, 48, 17),
)


def erfinv_factor(w: Any) -> Any:
    w = mpf(w)
    if abs(w) < mpf(10) ** -25:
        return mp.sqrt(mp.pi) / 2
    with mp.extradps(20):
        q = mp.exp(-w)  # 1 - x^2
        x = mp.sqrt(1 - q)
        if w < 20:
            return mp.erfinv(x) / x
        small = q / (1 + x)  # 1 - x
        y = mp.sqrt(w)
        for _ in range(60):
            step = (mp.erfc(y) - small) / (-2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
            step = step / (1 + y * step)
            y -= step
            if abs(step) < mpf(10) ** -45:
                break
        return y / x


piece_row(
    "erfinv",
    "erfinv(x) / x as a function of w = -log(1 - x^2)",
    erfinv_factor,
    False,
    float=("0.5", 4, 107, 6),
    double=("0.5", 2, 80, 14),
)
piece_row("erfinv_far", "the same from 64 on", erfinv_factor, False, double=("64", 4, 760, 11))
piece_row(
    "lgamma",
    "log(Gamma(x + 1)) / (x (x - 1))",
    lambda x: (
        mp.loggamma(x + 1) / (x * (x - 1))
        if abs(x * (x - 1)) > mpf(10) ** -20
        else mp.euler
        if x < 0.5
        else 1 - mp.euler
    ),
    False,
    double=("0.5", 4, 7, 17),
)
DIGAMMA_ROOT = mp.findroot(mp.digamma, mpf("1.4616321449683623")) - 1
piece_row(
    "digamma",
    "digamma(x + 1) / (x - r), r its root",
    lambda x: (
        mp.digamma(x + 1) / (x - DIGAMMA_ROOT)
        if abs(x - DIGAMMA_ROOT) > mpf(10) ** -20
        else mp.psi(1, DIGAMMA_ROOT + 1)
    ),
    False,
    double=("0.5", 4, 7, 17),
)
piece_row(
    "trigamma", "trigamma(x + 1)", lambda x: mp.psi(1, x + 1), False, double=("0.5", 4, 7, 18)
)
piece_row(
    "i0e",
    "exp(-x) I0(x)",
    lambda x: mp.exp(-x) * mp.besseli(0, x),
    False,
    float=("0.25", 4, 55, 7),
    double=("1", 2, 192, 17),
)
piece_row(
    "i1e",
    "exp(-x) I1(x) / x",
    lambda x: mp.exp(-x) * mp.besseli(1, x) / x if x else mpf(0.5),
    False,
    float=("0.25", 4, 55, 8),
    double=("1", 2, 192, 17),
)


def bits_of(x: float, kind: str) -> int:
    if kind == "float":
        return int(struct.unpack("i", struct.pack("f", x))[0])
    return int(struct.unpack("q", struct.pack("d", x))[0])


def value_of(bits: int, kind: str) -> float:
    if kind == "float":
        return float(struct.unpack("f", struct.pack("i", bits))[0])
    return float(struct.unpack("d", struct.pack("q", bits))[0])


# The rounding errors of the constant terms are a separate table, except for these functions, whose
# centres are moved to where the errors are negligible.
WITHOUT_REST = {("tanh", "float")}


def exact_center(f: Function, center: Any, kind: str) -> Any:
    """The float near the centre where f is closest to a float."""
    unit = mpf(2) ** -24
    slope = abs(mp.diff(f, center) / f(center))
    step = max(unit * center, min(unit / slope / 64 if slope else mpf(1), center / 4096))
    near = [mpf(rounded(center + k * step, kind)) for k in range(-96, 97)]
    return min(near, key=lambda c: abs(f(c) / mpf(rounded(f(c), kind)) - 1))


def pieces(
    f: Function, zero: bool, kind: str, first: Any, each: int, last: Any, n: int, has_rest: bool
) -> Any:
    """The shift, the first edge's bits, centres and coefficients, and the worst relative error."""
    shift = (23 if kind == "float" else 52) - (each.bit_length() - 1)
    base = bits_of(float(first), kind) >> shift
    centers, table, worst = [], [], []
    for i in range(ENTRIES[kind]):
        low = mpf(0) if i == 0 else mpf(value_of((base + i - 1) << shift, kind))
        high = mpf(value_of((base + i) << shift, kind))
        if i == ENTRIES[kind] - 1 or high > last:
            high = max(mpf(last), low * (1 + mpf(2) ** -10))
        center = mpf(0) if i == 0 and zero else (low + high) / 2
        if kind == "float":
            center = mpf(struct.unpack("f", struct.pack("f", float(center)))[0])
        else:
            center = mpf(float(center))
        if not has_rest and center:
            center = exact_center(f, center, kind)
        if i == 0 and zero:

            def g(t: Any) -> Any:
                return f(t) / t if t else mp.diff(f, 0)

            c = [mpf(0), *fit(g, 0, high, n - 1)]
            errors = error(g, c[1:], 0, high) / abs(float(f(high) / high))
        else:

            def g(t: Any, center: Any = center) -> Any:
                return f(center + t)

            c = fit(g, low - center, high - center, n)
            errors = error(g, c, low - center, high - center) / abs(float(f((low + high) / 2)))
        worst.append(errors)
        centers.append(center)
        table.append(c)
    return shift, base, centers, table, worst


def main() -> None:
    out = [
        "// Polynomials of the vector functions, computed by tools/math_coefficients.py, which",
        "// documents the method. Lowest powers come first.",
        "#pragma once",
        "#include <cstdint>",
        "",
        "namespace lamella::native {",
        "",
        "template <class T>",
        "struct Coefficients;",
    ]
    for kind, at in (("float", 4), ("double", 5)):
        out += ["template <>", f"struct Coefficients<{kind}> {{"]
        for name, entry in BOTH.items():
            comment, f, low, high = entry[:4]
            if entry[at] == 0:
                continue
            c = BEST.get((name, kind)) or fit(f, low, high, entry[at])
            print(f"{name:12} {kind:7} {entry[at]:3} {error(f, c, low, high):.2e}", file=sys.stderr)
            if kind == "float" or entry[4] == 0:
                out.append(f"  // {comment}.")
            out.append(
                f"  static constexpr {kind} {name}[] = {{"
                + ", ".join(text(x, kind) for x in c)
                + "};"
            )
        out.append("};")
    out += [
        "",
        "// log2(m), m in [3/4, 3/2), in parts: with i the first bits of the mantissa of m and",
        "// r = m inverse[i] - 1, it is high[i] + low[i] + r (head[0] + head[1] r + P(r)), where",
        "// P(r) = rest[0] + rest[1] r + ... An exponent adds to high[i] without rounding.",
        "template <class T>",
        "struct PowerLog;",
    ]
    for kind in ("float", "double"):
        out += ["template <>", f"struct PowerLog<{kind}> {{", *power_table(kind), "};"]
    out += ["", "// 2 / pi in pieces of 24 bits: the sum of piece[i] 2^(-24 (i + 1))."]
    with mp.workprec(1300):
        digits = int(mp.floor(2 / mp.pi * mpf(2) ** (24 * PIECES)))
    words = [(digits >> (24 * (PIECES - 1 - i))) & 0xFFFFFF for i in range(PIECES)]
    out.append("inline constexpr double kTwoOverPi[] = {" + ", ".join(map(str, words)) + "};")
    out += ["", "}  // namespace lamella::native", ""]
    if "--write" in sys.argv:
        (FOLDER / "coefficients.h").write_text("\n".join(out))
    for file, title, struct_name in (
        ("float_pieces", "Functions of float32", "template <>\nstruct Pieces<float>"),
        ("double_pieces", "Functions of float64", "template <>\nstruct Pieces<double>"),
        ("gamma_pieces", "Gamma functions of float64", "struct GammaPieces"),
    ):
        kind = "float" if file == "float_pieces" else "double"
        out = [
            f"// {title} as piecewise polynomials, computed by",
            "// tools/math_coefficients.py, which documents the method.",
            "// clang-format off",
            "#pragma once",
            '#include "lamella/kernels/cpu/simd/piecewise.h"',
            "",
            "namespace lamella::native {",
            "",
            f"{struct_name} {{",
        ]
        for name, comment, f, zero, how in PIECES_OF:
            if kind not in how or (kind == "double" and (file[0] == "g") != ("gamma" in name)):
                continue
            has_rest = (name, kind) not in WITHOUT_REST
            made = pieces(f, zero, kind, *how[kind], has_rest)
            shift, base, centers, table, worst = made
            print(name, kind, how[kind], " ".join(f"{e:.0e}" for e in worst), file=sys.stderr)
            n = how[kind][3]
            out.append(f"  // {comment}.")
            of = f"{kind}, {n}" if has_rest else f"{kind}, {n}, false"
            out.append(f"  static constexpr Piecewise<{of}> {name} = {{{shift}, {base},")
            out += wrapped("    {", [text(x, kind) for x in centers], "},")
            out.append("    {")
            for k in range(n):
                out += wrapped("     {", [text(c[k], kind) for c in table], "},")
            out.append("    },")
            rest = [c[0] - rounded(c[0], kind) for c in table]
            if has_rest:
                out += wrapped("    {", [text(x, kind) for x in rest], "}};")
            else:
                out[-1] = "    }};"
                print(max(abs(r / c[0]) for r, c in zip(rest, table) if c[0]), file=sys.stderr)
        out += ["};", "", "}  // namespace lamella::native", ""]
        if "--write" in sys.argv:
            (FOLDER / f"{file}.h").write_text("\n".join(out))


if __name__ == "__main__":
    main()
