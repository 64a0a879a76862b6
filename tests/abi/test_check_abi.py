"""tools/check_abi.py distinguishes additions from changes."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SPEC = importlib.util.spec_from_file_location("check_abi", ROOT / "tools" / "check_abi.py")
check_abi = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_abi)

RECORD = {
    "value LAMELLA_ABI_MAJOR": "1",
    "value LAMELLA_ABI_MINOR": "0",
    "struct lamella_tensor": "96 bytes",
    "symbol lamella_fail": "LAMELLA_1.0: lamella_status lamella_fail(void)",
}
MINOR = {"value LAMELLA_ABI_MINOR": "1"}
MAJOR = "; this takes a new LAMELLA_ABI_MAJOR"


@pytest.mark.parametrize(
    "change, errors",
    [
        ({}, []),
        (MINOR, []),
        ({"struct lamella_tensor": "104 bytes"},
         ["struct lamella_tensor: was '96 bytes', is '104 bytes'" + MAJOR]),
        ({**MINOR, "struct lamella_tensor": None},
         ["struct lamella_tensor: was '96 bytes', is gone" + MAJOR]),
        ({"value LAMELLA_NEW": "3"},
         ["value LAMELLA_NEW: is new, so LAMELLA_ABI_MINOR is to be more than 0"]),
        ({**MINOR, "value LAMELLA_NEW": "3"}, []),
        ({**MINOR, "symbol lamella_new": "LAMELLA_1.1: void lamella_new(void)"}, []),
        ({**MINOR, "symbol lamella_new": "LAMELLA_1.0: void lamella_new(void)"},
         ["symbol lamella_new: is new, so its symbol version is to be LAMELLA_1.1"]),
        ({"value LAMELLA_ABI_MAJOR": "2"},
         ["the record is of version 1: write it anew with --write"]),
    ],
)  # fmt: skip
def test_compare(change, errors):
    found = {name: rest for name, rest in {**RECORD, **change}.items() if rest is not None}
    assert list(check_abi.compare(RECORD, found)) == errors


def test_the_headers_are_read():
    headers = check_abi.Headers()
    assert {"lamella_tensor", "struct lamella_operator", "lamella_backend"} <= set(headers.structs)
    fields = [check_abi.name_of(field) for field in headers.structs["lamella_value"]]
    assert fields == ["as", "size", "tag", "flags", "reserved"]
