"""Every operator of op_db in every dtype that PyTorch's table gives it: values, dtypes, shapes and
strides of the results, gradients in the small types, and the same shapes and strides on meta."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from op_db import PRESENT, opinfo_core  # noqa: E402
from op_db_mirror import Absent, fresh, mapped, name_of, tensors_in, to_lamella  # noqa: E402
from op_db_sample import NotChecked, SampleRun  # noqa: E402

import lamella  # noqa: E402

SAMPLES, GENERATED = 8, 64
DTYPES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
]  # fmt: skip
SMALL = (torch.float16, torch.bfloat16, torch.float32, torch.complex64)
# PyTorch's transforms lay their results out as their library does, not as they do on meta.
OWN_STRIDES = ("fft.",)
ON_META = (torch.float32, torch.complex128, torch.int64)


def onto_meta(tensor):
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def layout(entry, tensor):
    """Shape, dtype and the strides that say where elements are."""
    steps = [step for size, step in zip(tensor.shape, tensor.stride()) if size > 1]
    kept = tensor.numel() > 0 and not entry.name.startswith(OWN_STRIDES)
    return tuple(tensor.shape), name_of(tensor.dtype), steps if kept else None


def layouts(entry, function, call, convert, kind):
    first, args, kwargs = convert(call)
    return [layout(entry, t) for t in tensors_in(function(first, *args, **kwargs), kind)]


def problems(entry, function, dtype):
    """(check, difference) of the samples of a dtype."""
    samples = entry.samples(dtype, SAMPLES, GENERATED)
    if dtype in ON_META:
        samples += [sample.noncontiguous() for sample in samples]
    for number, sample in enumerate(samples):
        where = f"{name_of(dtype)} sample {number}"
        found = {}
        checks = ("forward", "grad") if dtype in SMALL else ("forward",)
        try:
            SampleRun(entry, function, sample, dtype).check(checks, found, where)
        except (Absent, NotChecked):
            continue
        if found:
            yield "small" if dtype in SMALL[:2] else "dtypes", next(iter(found.values()))
            continue
        call = [sample.input, list(sample.args), dict(sample.kwargs)]
        given = tensors_in(call, torch.Tensor)
        if any(t.layout != torch.strided for t in given):
            continue
        try:
            expected = layouts(entry, entry.info.get_op(), call, fresh, torch.Tensor)
        except Exception:  # PyTorch has no answer
            continue
        got = layouts(entry, function, call, to_lamella, lamella.Tensor)
        if got != expected:
            yield "strides", f"{where}: expected {expected}, got {got}"
        elif given and dtype in ON_META:
            try:
                call = mapped(call, onto_meta)
                on_meta = layouts(entry, function, call, to_lamella, lamella.Tensor)
            except Exception as error:
                on_meta = f"{type(error).__name__}: {error}"
            if on_meta != got:
                yield "meta", f"{where}: expected {got}, got {on_meta}"


def problems_of(entry):
    """From check to the first difference."""
    function, found = entry.function(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            if dtype in entry.info.supported_dtypes("cpu"):
                for check, difference in problems(entry, function, dtype):
                    found.setdefault(check, difference)
    return found


@pytest.mark.parametrize("entry", PRESENT, ids=lambda entry: entry.name)
def test_entry(entry):
    found = problems_of(entry)
    for check in ("dtypes", "small", "strides", "meta"):
        # PyTorch's kernels of 16 bits differ from machine to machine.
        if check != "small" or check in found:
            entry.hold(check, found.get(check))


KINDS = (opinfo_core.UnaryUfuncInfo, opinfo_core.BinaryUfuncInfo, opinfo_core.ReductionOpInfo)
ELEMENTWISE = """
from test_op_db_dtypes import KINDS, PRESENT, problems_of
for entry in PRESENT:
    if isinstance(entry.info, KINDS):
        found = problems_of(entry)
        assert all(entry.known(check) for check in found), (entry.name, found)
"""


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_elementwise_operators_with_each_capability(capability):
    environment = {**os.environ, "LAMELLA_CPU_CAPABILITY": capability}
    command = [sys.executable, "-c", ELEMENTWISE]
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parent)
