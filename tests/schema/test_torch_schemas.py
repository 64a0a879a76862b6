"""Every signature PyTorch ships or registers is parsed and printed back, none lost."""

import pathlib
import re
import subprocess

import fresh_torch
import pytest
from build_tree import BUILD

torch = pytest.importorskip("torch")
torchgen = pytest.importorskip("torchgen")


def _run(lines, *options):
    result = subprocess.run(
        [BUILD / "tests" / "schema" / "schema_roundtrip", *options],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout


def _yaml_signatures():
    path = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    return re.findall(r"^- func: (.*?)\s*$", path.read_text(), flags=re.M)


def _registered_signatures():
    return fresh_torch.registered_schemas()


def test_native_functions_yaml():
    lines = _yaml_signatures()
    assert len(lines) > 2500
    assert _run(lines) == (0, f"{len(lines)} signatures, 0 lost\n")


def test_registered_signatures_print_back_exactly():
    lines = _registered_signatures()
    assert len(lines) > 4000
    assert _run(lines, "--exact", "--registered") == (0, f"{len(lines)} signatures, 0 lost\n")


def test_resolved_form_is_what_torch_registers():
    """Each yaml line, defaults resolved, is exactly what torch prints for that operator."""
    status, out = _run(_yaml_signatures(), "--resolved")
    assert status == 0
    registered = set(_registered_signatures())
    printed = [line if "::" in line.split("(")[0] else "aten::" + line for line in out.splitlines()]
    assert [line for line in printed if line not in registered] == []


def test_a_lost_signature_is_noticed():
    status, out = _run(["foo(tensor x) -> Tensor"])
    assert status == 1
    assert "unknown type 'tensor'; did you mean 'Tensor'?" in out
