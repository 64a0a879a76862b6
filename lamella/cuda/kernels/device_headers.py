#!/usr/bin/env python3
"""Writes copies of headers of elementary functions for nvcc: device_headers.py OUT HEADER...

nvcc compiles for a device only functions and variables that are marked, and no tables that are
members of classes. So functions are marked, and the tables of Coefficients<T>, PowerLog<T>,
Pieces<T> and GammaPieces become variables that functions of their names return. Vectors of
registers are those of lane.h."""

import pathlib
import re
import sys

FUNCTION = re.compile(r"^( *|LAMELLA_NOINLINE )inline (?!namespace|constexpr)", re.M)
CLASS = re.compile(
    r"^template <>\nstruct (Coefficients|PowerLog|Pieces)<(float|double)> {\n(.*?)^};\n",
    re.M | re.S,
)
MEMBER = re.compile(r"^  static constexpr ([^=\[]*?) (\w+)(\[\])? =", re.M)
ARRAY = re.compile(r"^inline constexpr (?=\w+ \w+\[)", re.M)
USE = re.compile(r"\b(Coefficients|Pieces)<(T|float|double)>::(\w+)")
GAMMA = re.compile(r"^struct GammaPieces {\n(.*?)^};\n", re.M | re.S)
LOG = re.compile(r"\bLog::(\w+)")
LOG_NAME = "  using Log = PowerLog<T>;\n"


def variables(found):
    family, kind, body = found.groups()
    functions = [
        f"__device__ constexpr const auto& {family}_{name}({kind})"
        f" {{ return {family}_{name}_{kind}; }}\n"
        for _, name, _ in MEMBER.findall(body)
    ]
    body = MEMBER.sub(
        lambda m: f"static __device__ constexpr {m[1]} {family}_{m[2]}_{kind}{m[3] or ''} =", body
    )
    return body + "".join(functions)


out = pathlib.Path(sys.argv[1])
for header in map(pathlib.Path, sys.argv[2:]):
    text = FUNCTION.sub(r"\1__device__ inline ", header.read_text(encoding="utf-8"))
    text = ARRAY.sub("static __device__ constexpr ", text)
    text = USE.sub(r"\1_\3(\2{})", CLASS.sub(variables, text))
    text = GAMMA.sub(lambda m: MEMBER.sub(r"static __device__ constexpr \1 gamma_\2 =", m[1]), text)
    text = text.replace("GammaPieces::", "gamma_").replace(LOG_NAME, "")
    text = LOG.sub(r"PowerLog_\1(T{})", text)
    target = out / "lamella" / "kernels" / "cpu" / "simd" / header.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
(target.parent / "vec_math.h").write_text(
    '#include "lamella/cuda/kernels/lane.h"\n', encoding="utf-8"
)
