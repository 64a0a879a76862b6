"""Fourier transforms in compiled programs, which the operators compute."""

from __future__ import annotations

import numpy as np
import pytest
from hlo_difference import difference

from lamella import hlo

LENGTHS = [(1,), (2,), (9,), (30,), (97,), (1024,), (5, 6), (3, 1, 8)]
REAL = {"c64": "f32", "c128": "f64"}
TARGETS = {"FFT": "_fft_c2c", "IFFT": "_fft_c2c", "RFFT": "_fft_r2c", "IRFFT": "_fft_c2r"}


@pytest.mark.parametrize("length", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("element", REAL)
def test_against_the_evaluator(length, kind, element):
    half = (*length[:-1], length[-1] // 2 + 1)
    given = half if kind == "IRFFT" else length
    made = half if kind == "RFFT" else length

    def shape(sizes, is_real):
        return f"{REAL[element] if is_real else element}[2,3,{','.join(map(str, sizes))}]"

    text = f"""HloModule m
ENTRY e {{
  x = {shape(given, kind == "RFFT")} parameter(0)
  ROOT y = {shape(made, kind == "IRFFT")} fft(x), fft_type={kind},
      fft_length={{{",".join(map(str, length))}}}
}}
"""
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 3, *given))
    if kind != "RFFT":
        x = x + 1j * random.normal(size=x.shape)
    wide = element == "c128"
    kinds = ("float64", "complex128") if wide else ("float32", "complex64")
    assert difference(text, [x.astype(kinds[0] if kind == "RFFT" else kinds[1])]) is None
    assert f"custom call of aten::{TARGETS[kind]}" in hlo.compile(text).explain()


def test_without_elements():
    text = """HloModule m
ENTRY e {
  x = c64[0,4] parameter(0)
  ROOT y = c64[0,4] fft(x), fft_type=FFT, fft_length={4}
}
"""
    assert difference(text, [np.zeros((0, 4), np.complex64)]) is None
