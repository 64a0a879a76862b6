"""A sample of the operators of op_db on the device; LAMELLA_OP_DB=all: all of them. By hand
operator_table.py runs them, and operator_count.py counts them."""

import os

import pytest

torch = pytest.importorskip("torch")

import operator_count  # noqa: E402
import operator_table  # noqa: E402

ALL = os.environ.get("LAMELLA_OP_DB") == "all"
ENTRIES = [one for one in operator_table.ENTRIES if ALL or operator_table.is_sampled(one.name, 12)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_entry(entry):
    dtypes = operator_table.DTYPES if ALL else operator_table.DTYPES[:2]
    try:
        assert not operator_table.failure(entry, dtypes, 2 if ALL else 1)
    except operator_table.Absent:
        pytest.skip("Lamella lacks it")


def test_the_device_has_operators():
    """Operators are counted: with kernels of the device, and by fallback."""
    device, fallback = operator_count.declarations()
    assert not set(device) & set(fallback)
    assert "aten::add.Tensor" in device and len(device) + len(fallback) > 390
