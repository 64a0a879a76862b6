"""Forward, gradients, second gradients, forward mode, in-place forms and `out=` of every operator
that PyTorch's table op_db lists and Lamella has, against PyTorch. See op_db.py.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # the table's module needs it

import op_db  # noqa: E402


@pytest.fixture(scope="module")
def needed():
    """What the lists have to name still, filled by the tests."""
    absent, differs = {}, {}
    yield absent, differs
    if op_db.MODE == "shrink":
        op_db.ABSENT.shrink(absent)
        op_db.DIFFERS.shrink(differs)


@pytest.mark.parametrize("entry", op_db.ENTRIES, ids=lambda entry: entry.name)
def test_entry(entry, needed):
    absent, differs = needed
    known, _ = op_db.DIFFERS.entries.get(entry.name, (set(), ""))
    try:
        found = entry.failures()
    except op_db.Absent as error:
        absent[entry.name] = set()
        assert entry.name in op_db.ABSENT.entries, f"{error} is missing, and op_db_absent.txt not"
        return
    differs[entry.name] = set(found)
    new = {check: text for check, text in found.items() if check not in known}
    assert not new, "\n".join(f"{check}: {text}" for check, text in new.items())
    if op_db.MODE in ("", "all"):
        assert entry.name not in op_db.ABSENT.entries, "is here now: take it off op_db_absent.txt"
    if op_db.MODE == "":
        gone = known - set(found)
        assert not gone, f"agree now: take {sorted(gone)} off op_db_differs.txt"


def test_lists_name_entries():
    names = {entry.name for entry in op_db.ENTRIES}
    for known in (op_db.ABSENT, op_db.DIFFERS):
        assert set(known.entries) <= names
        for name, (checks, reason) in known.entries.items():
            assert reason, name
            assert checks <= set(op_db.CHECKS), name
    assert all(checks for checks, _ in op_db.DIFFERS.entries.values())
    assert not set(op_db.ABSENT.entries) & set(op_db.DIFFERS.entries)
