"""Fourier transforms against NumPy in a higher precision; signatures against PyTorch's."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from operator_cases import lamella, same_bits

# Short, with small factors, with primes, powers, with large primes; above what fills vectors.
LENGTHS = [
    1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 31, 37, 49, 60, 64, 96, 100, 121, 128, 243, 256, 257,
    384, 500, 509, 1000, 1009, 1024, 2048, 4099
]  # fmt: skip
# Shape for a length, and the dimension: one line, few, many, neighbours, and both sides.
PLACES = [
    (lambda n: (n,), 0),
    (lambda n: (3, n), 1),
    (lambda n: (21, n), -1),
    (lambda n: (n, 3), 0),
    (lambda n: (2, n, 19), 1),
]
DTYPES = [("complex64", "float32", 1.2e-7), ("complex128", "float64", 2.3e-16)]


def numbers(shape, dtype):
    random = np.random.default_rng(len(shape) + shape[0])
    made = random.standard_normal(shape)
    if dtype.startswith("complex"):
        made = made + 1j * random.standard_normal(shape)
    return made.astype(dtype)


def hold(found, expected, dtype, precision):
    assert str(found.dtype).removeprefix("lamella.") == dtype
    assert tuple(found.shape) == expected.shape
    error = np.abs(found.numpy() - expected).max() / max(np.abs(expected).max(), 1e-30)
    assert error <= 6 * precision, error / precision


@pytest.mark.parametrize("complex_, real, precision", DTYPES)
@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize("n", LENGTHS)
def test_values(n, place, complex_, real, precision):
    shape, dim = PLACES[place]
    z, x = numbers(shape(n), complex_), numbers(shape(n), real)
    wide, wide_real = z.astype("complex128"), x.astype("float64")
    fft = lamella.fft
    given = lamella.from_numpy(z)
    hold(fft.fft(given, dim=dim), np.fft.fft(wide, axis=dim), complex_, precision)
    hold(fft.ifft(given, dim=dim), np.fft.ifft(wide, axis=dim), complex_, precision)
    real_given = lamella.from_numpy(x)
    hold(fft.rfft(real_given, dim=dim), np.fft.rfft(wide_real, axis=dim), complex_, precision)
    hold(fft.ihfft(real_given, dim=dim), np.fft.ihfft(wide_real, axis=dim), complex_, precision)
    half = np.take(z, range(n // 2 + 1), axis=dim)
    wide_half = half.astype("complex128")
    given = lamella.from_numpy(half)
    hold(fft.irfft(given, n, dim=dim), np.fft.irfft(wide_half, n, axis=dim), real, precision)
    hold(fft.hfft(given, n, dim=dim), np.fft.hfft(wide_half, n, axis=dim), real, precision)


def test_frequencies():
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            found = getattr(lamella.fft, name)(n, 0.25)
            expected = getattr(torch.fft, name)(n, 0.25)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-7)


ERRORS = [
    ("fft", (4,), {"n": 0}, "fft_fft: expected at least one point along dimension 0, got 0"),
    ("fft", (4,), {"norm": "half"},
     "fft_fft: expected 'norm' to be forward, backward or ortho, got 'half'"),
    ("fft", (4,), {"dim": 1}, "fft_fft: expected 'dim' to be in [-1, 0], got 1"),
    (
        "fftn", (4, 4), {"dim": (0, -2)},
        "fft_fftn: expected each dimension once in 'dim', got -2 twice",
    ),
    ("fftn", (4, 4), {"s": (1, 2, 3)}, "fft_fftn: expected 's' to have at most 2 entries, got 3"),
]  # fmt: skip


@pytest.mark.parametrize("name, shape, keywords, text", ERRORS)
def test_errors(name, shape, keywords, text):
    with pytest.raises((RuntimeError, IndexError)) as caught:
        getattr(lamella.fft, name)(lamella.ones(*shape), **keywords)
    assert str(caught.value).splitlines()[0].startswith(text)


@pytest.mark.parametrize("shape", [(37,), (24, 100), (5, 64, 40), (3, 1009)], ids=str)
def test_threads_change_nothing(shape):
    x = lamella.from_numpy(numbers(shape, "complex64"))
    same_bits(lambda: lamella.view_as_real(lamella.fft.fftn(x)))


CAPABILITY = """
import numpy as np, lamella
for n in (5, 8, 60, 64, 100, 509, 1024):
    for shape in ((n,), (20, n), (n, 20)):
        x = np.random.default_rng(n).standard_normal(shape) + 0j
        for dim in range(len(shape)):
            found = lamella.fft.fft(lamella.from_numpy(x), dim=dim).numpy()
            assert np.allclose(found, np.fft.fft(x, axis=dim), rtol=0, atol=1e-12 * n), (n, shape)
        found = lamella.fft.rfft(lamella.from_numpy(x.real.copy())).numpy()
        assert np.allclose(found, np.fft.rfft(x.real), rtol=0, atol=1e-12 * n), (n, shape)
"""


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_capabilities(capability):
    environment = {**os.environ, "LAMELLA_CPU_CAPABILITY": capability}
    subprocess.run([sys.executable, "-c", CAPABILITY], env=environment, check=True)


def test_loaded_by_need():
    code = (
        "import lamella\n"
        "mapped = lambda: 'liblamella_more' in open('/proc/self/maps').read()\n"
        "lamella.ones(3) + 1\n"
        "assert not mapped()\n"
        "assert lamella.fft.fft(lamella.ones(4))[0] == 4\n"
        "assert mapped()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["_fft_r2c", "_fft_c2c", "_fft_c2r"])
def test_a_number_has_nothing_to_transform(name):
    x = lamella.tensor(1.0, dtype=lamella.float32 if name == "_fft_r2c" else lamella.complex64)
    with pytest.raises(RuntimeError) as error:
        getattr(lamella.ops.aten, name)(x, [0], 0, 1 if name == "_fft_c2r" else True)
    assert str(error.value) == (
        f"{name}: expected 'self' to have at least 1 dimension, got a tensor with 0"
    )


@pytest.mark.parametrize("name", ["rfft", "irfft", "hfft", "ihfft", "rfft2", "rfftn", "irfftn"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_meta_lays_results_out_as_they_are(name, order):
    is_complex = name in ("irfft", "hfft", "irfftn")
    for dim in (0, 1, 2) if name[-1] not in "2n" else ((0, 1), (2, 0), (1, 2)):
        results = []
        for device in ("cpu", "meta"):
            dtype = lamella.complex64 if is_complex else lamella.float32
            x = lamella.ones(3, 4, 5, dtype=dtype, device=device).permute(order)
            results.append(getattr(lamella.fft, name)(x, dim=dim))
        assert results[0].stride() == results[1].stride()
        assert results[0].shape == results[1].shape
