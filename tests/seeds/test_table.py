"""tests/seeds/seeds.md names only tests that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "tests" / "seeds" / "seeds.md"


def rows():
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = re.split(r"(?<!\\)\|", line.strip())
        if len(cells) == 4 and not set(cells[1].strip()) <= set("-"):
            if cells[1].strip() != "requirement":
                yield cells[1].strip(), re.findall(r"`([^`]+)`", cells[2])


def test_there_are_rows():
    assert len(list(rows())) >= 40


@pytest.mark.parametrize("requirement, tests", list(rows()))
def test_row(requirement, tests):
    assert tests, "a row without a test"
    for test in tests:
        path, _, name = test.partition("#")
        file = ROOT / path
        assert file.is_file(), path
        if name:
            assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), test
