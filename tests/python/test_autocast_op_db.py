"""Every operator of op_db under autocast on the CPU: dtypes and values as PyTorch's.

Each entry's first samples run in a region of bfloat16 and of float16, from float32 and from inputs
of the lower precision. Entries that Lamella does not have are those of test_op_db_gradients.py.
"""

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")

from op_db import PRESENT  # noqa: E402
from op_db_mirror import (  # noqa: E402
    SEEDED,
    Absent,
    fresh,
    name_of,
    tensors_in,
    to_lamella,
    to_torch,
)
from op_db_sample import same  # noqa: E402

import lamella  # noqa: E402

SAMPLES = 2
LARGEST = 4000


def samples(entry, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            made = list(
                itertools.islice(entry.info.sample_inputs("cpu", dtype, requires_grad=False), 8)
            )
        except Exception:  # noqa: BLE001
            return []
    small = [
        one
        for one in made
        if sum(t.numel() for t in tensors_in([one.input, one.args, one.kwargs], torch.Tensor))
        <= LARGEST
    ]
    return small[:SAMPLES]


def run(module, function, sample, convert, region):
    args = [convert(sample.input), *convert(list(sample.args))]
    kwargs = convert(dict(sample.kwargs))
    with module.autocast("cpu", dtype=getattr(module, region or "bfloat16"), enabled=bool(region)):
        return function(*args, **kwargs)


def compare(entry, function, sample, region, dtype):
    """Raises where Lamella differs. region: a dtype's name, None for none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = run(torch, entry.info.get_op(), sample, fresh, region)
    except Exception:  # noqa: BLE001  # PyTorch itself cannot
        return
    values = entry.info.get_op() is not SEEDED and entry.has_values
    ours = run(lamella, function, sample, to_lamella, region)
    same(ours, theirs, f"{region} region, {name_of(dtype)} inputs", values=False)
    if not values or sample.kwargs.get("dropout_p"):
        return
    for mine, other in zip(tensors_in(ours, lamella.Tensor), tensors_in(theirs, torch.Tensor)):
        if other.numel() > 0:
            # Sums of products in lower precision may cancel.
            finite = (
                other.abs().nan_to_num(0, 0, 0).max().item() if other.dtype != torch.bool else 1
            )
            limit = 0.05 * max(1.0, finite)
            torch.testing.assert_close(
                to_torch(mine), other, rtol=0.05, atol=limit, equal_nan=True, check_stride=False
            )


def problem_of(entry, function):
    """The difference under autocast, for samples that agree without it."""
    for region, dtype in (
        ("bfloat16", torch.float32),
        ("bfloat16", torch.bfloat16),
        ("float16", torch.float32),
        ("float16", torch.float16),
    ):
        for sample in samples(entry, dtype):
            try:
                compare(entry, function, sample, region, dtype)
            except Absent:
                continue
            except Exception as error:  # noqa: BLE001
                try:
                    compare(entry, function, sample, None, dtype)
                except Exception:  # noqa: BLE001  # no matter of autocast's
                    continue
                return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("entry", PRESENT, ids=lambda entry: entry.name)
def test_entry(entry):
    entry.hold("autocast", problem_of(entry, entry.function()))
