"""Every operator of op_db through lamella.compile: values, shapes and dtypes of the eager call."""

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lamella.hlo")

from op_db import PRESENT  # noqa: E402
from op_db_mirror import fresh, tensors_in, to_lamella  # noqa: E402

import lamella  # noqa: E402

LARGEST = 3000
# The largest difference, relative to numbers of size 1.
TOLERANCES = {
    torch.float32: 2e-4,
    torch.bfloat16: 3e-2,
    torch.complex64: 2e-4,
    torch.int64: 1e-5,
    torch.uint8: 1e-5,
    torch.bool: 1e-5,
}
# The contents of uninitialized memory are not compared.
WITHOUT_VALUES = ("empty", "new_empty")


def samples(entry, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            made = list(itertools.islice(entry.info.sample_inputs("cpu", dtype), 12))
        except (RuntimeError, ValueError):
            # PyTorch makes some samples with operators that do not take the dtype, or says so.
            assert dtype not in entry.info.supported_dtypes("cpu"), f"{entry.name}, {dtype}"
            return []
    small = [
        one
        for one in made
        if sum(t.numel() for t in tensors_in([one.input, one.args, one.kwargs], torch.Tensor))
        <= LARGEST
    ]
    return small[:: max(1, len(small) // 2)][:2]


def call(function, sample):
    lamella.manual_seed(1)
    with lamella.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = fresh(to_lamella([sample.input, *sample.args]))
        return function(*args, **fresh(to_lamella(dict(sample.kwargs))))


@pytest.mark.parametrize("entry", PRESENT, ids=lambda entry: entry.name)
def test_entry(entry):
    function = entry.function()
    for dtype, tolerance in TOLERANCES.items():
        for sample in samples(entry, dtype):
            try:
                expected = call(function, sample)
            except Exception:  # noqa: BLE001
                continue  # eager refuses this
            got = call(lamella.compile(function), sample)
            mine, eager = tensors_in(got, lamella.Tensor), tensors_in(expected, lamella.Tensor)
            assert len(mine) == len(eager)
            for a, b in zip(mine, eager):
                assert a.dtype == b.dtype and a.shape == b.shape
                if entry.name.startswith(WITHOUT_VALUES) or a.dtype == lamella.complex32:
                    continue
                wide = lamella.complex128 if b.is_complex() else lamella.float64
                a, b = a.to(wide), b.to(wide)
                assert lamella.allclose(
                    a, b, rtol=tolerance, atol=tolerance, equal_nan=True
                ), f"{dtype}: expected {b}, got {a}"
