"""Forward, gradients, second gradients, forward mode, in-place forms, `out=` and errors of every
operator that PyTorch's table op_db lists and Lamella has, against PyTorch. See op_db.py.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # the table's module needs it

import op_db  # noqa: E402


@pytest.mark.parametrize("entry", op_db.ENTRIES, ids=lambda entry: entry.name)
def test_entry(entry):
    try:
        found = entry.failures()
    except op_db.Absent as error:
        entry.hold("absent", f"{error} is missing")
        return
    entry.hold("absent", None)
    for check in op_db.CHECKS:
        entry.hold(check, found.get(check))
    entry.hold("errors", entry.wrong_error())


def test_known_names_entries_and_checks():
    names = {entry.name for entry in op_db.ENTRIES}
    tests = {"conj.complex128", "conj.float64", "composite", "functionalize", "layers", "trace"}
    checks = {
        "absent", "sparse", *op_db.CHECKS, "errors", "values", "dtypes", "small", "strides",
        "meta", "autocast", "backend",
        "conj.forward", "conj.inplace",
        "functionalize.call", "functionalize.inplace", "functionalize.out",
        "vmap.refused", "vmap.loop", "composite", "trace", "mode", "wrapper",
        *(f"nothing.{test}" for test in tests),
    }  # fmt: skip
    for (name, check), reason in op_db.KNOWN.items():
        assert name in names and check in checks and reason, (name, check, reason)
    absent = {name for name, check in op_db.KNOWN if check == "absent"}
    assert not absent & {name for name, check in op_db.KNOWN if check in op_db.CHECKS}
