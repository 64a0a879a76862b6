"""Derives kernels/families/special/bessel_coefficients.h: Chebyshev series of Bessel functions.

Each interpolates its function in the points of Chebyshev, in 40 digits, as math_coefficients.py
does for other functions. `bessel_coefficients.py --write` makes the header again; without the
option the first coefficients that are left out are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from math_coefficients import wrapped
from mpmath import mp, mpf

mp.dps = 40
HEADER = (
    Path(__file__).resolve().parent.parent
    / "lamella/kernels/families/special/bessel_coefficients.h"
)
SPLIT = 8  # below by series in x^2, from there on by modulus and phase


def chebyshev(f: Callable[[Any], Any], low: Any, high: Any, terms: int) -> list[Any]:
    """The first `terms` coefficients over [low, high]; the first counts half."""
    n = terms + 16
    angles = [mp.pi * (k + mpf(1) / 2) / n for k in range(n)]
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    values = [f(middle + half * mp.cos(t)) for t in angles]
    return [
        2 * sum(v * mp.cos(j * t) for v, t in zip(values, angles)) / n for j in range(terms + 1)
    ]


def first_kind(order: int) -> Callable[[Any], Any]:
    """J0, or J1 by x, of z = x^2."""
    return lambda z: mp.besselj(order, mp.sqrt(z)) / mp.sqrt(z) ** order


def second_kind(order: int) -> Callable[[Any], Any]:
    """Y without its logarithm and pole, divided by x^order, as a function of z = x^2."""

    def f(z: Any) -> Any:
        x = mp.sqrt(z)
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
        return (rest + (2 / (mp.pi * x) if order else 0)) / x**order

    return f


def phase(order: int, odd: bool) -> Callable[[Any], Any]:
    """P, or x Q, of w = (SPLIT / x)^2: Abramowitz and Stegun, 9.2.5 and 9.2.6."""

    def f(w: Any) -> Any:
        x = SPLIT / mp.sqrt(w)
        angle = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        even = j * mp.cos(angle) + y * mp.sin(angle)
        turned = y * mp.cos(angle) - j * mp.sin(angle)
        return mp.sqrt(mp.pi * x / 2) * (x * turned if odd else even)

    return f


def modified(order: int) -> Callable[[Any], Any]:
    """exp(x) sqrt(x) K(x) of u = 2 / x - 1, for x from 1."""

    def f(u: Any) -> Any:
        x = 2 / (u + 1)
        return mp.exp(x) * mp.sqrt(x) * mp.besselk(order, x)

    return f


# Name, comment, the function for each order, bounds, number of terms.
TABLES: list[tuple[str, str, Callable[[int], Any], Any, Any, int]] = [
    ("kSmallJ", "J0, and J1 / x, as series in x^2 up to 64.", first_kind, 0, SPLIT**2, 17),
    ("kSmallY", "Y0 - 2 / pi log(x) J0, and (Y1 - 2 / pi (log(x) J1 - 1 / x)) / x, likewise.",
     second_kind, 0, SPLIT**2, 17),
    ("kPhaseP", "P of either order in (8 / x)^2.", lambda order: phase(order, False), 0, 1, 13),
    ("kPhaseQ", "x Q likewise.", lambda order: phase(order, True), 0, 1, 13),
    ("kLargeK", "exp(x) sqrt(x) K(x) in 2 / x - 1, for x from 1.", modified, -1, 1, 32),
]  # fmt: skip


def main() -> None:
    lines = [
        "// Made by tools/bessel_coefficients.py. Chebyshev series of Bessel functions of orders 0"
        " and 1;",
        "// the first coefficient of each counts half.",
        "#pragma once",
        "",
        "namespace lamella::special {",
        "",
    ]
    for name, comment, make, low, high, terms in TABLES:
        lines += [f"// {comment}", f"inline constexpr double {name}[2][{terms}] = {{"]
        for order in (0, 1):
            found = chebyshev(make(order), low, high, terms)
            print(name, order, "left out:", mp.nstr(abs(found[terms] / found[0]), 3))
            words = [f"{float(c):.17g}" for c in found[:terms]]
            lines += wrapped("    {", words, "}," if order == 0 else "}};")
        lines.append("")
    lines += ["}  // namespace lamella::special", ""]
    if "--write" in sys.argv:
        HEADER.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
