"""Every schema that PyTorch registers can be read, and prints back as PyTorch prints it."""

import fresh_torch
import pytest

from lamella import _C

torch = pytest.importorskip("torch")


def test_all_schemas_round_trip():
    schemas = fresh_torch.registered_schemas()
    assert len(schemas) > 2000
    different = []
    for text in schemas:
        once = _C._parse_schema(text)
        if once != _C._parse_schema(once):
            different.append((text, once))
    assert not different, different[:5]


def test_native_functions_round_trip():
    import os
    import re

    import torchgen

    path = os.path.join(
        os.path.dirname(torchgen.__file__), "packaged/ATen/native/native_functions.yaml"
    )
    with open(path, encoding="utf-8") as file:
        lines = re.findall(r"^- func: (.*)$", file.read(), re.MULTILINE)
    assert len(lines) > 2500
    for line in lines:
        text = line.strip().strip("'\"")
        assert _C._parse_schema(_C._parse_schema(text)) == _C._parse_schema(text), text


def test_errors_point_at_the_column():
    with pytest.raises(ValueError) as caught:
        _C._parse_schema("f(tensor x) -> Tensor")
    lines = str(caught.value).splitlines()
    assert lines[0] == "schema error at column 3: unknown type 'tensor'; did you mean 'Tensor'?"
    assert lines[2].index("^") == lines[1].index("tensor")
