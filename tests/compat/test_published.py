"""Unmodified packages from the package index: each program of packages/ has the same output as with
PyTorch for the same seed."""

import os
import pathlib
import re

import index_packages
import pytest
from test_programs import printed_by_lamella, same
from torch_programs import printed_by_torch

pytest.importorskip("torch")

PROGRAMS = pathlib.Path(__file__).parent / "packages"


def installed(requirement):
    """The folder of one package without its dependencies; skips the test if there is no index."""
    folder = index_packages.installed(requirement)
    return folder or pytest.skip(f"the package index has no {requirement} for us")


def test_every_program_names_its_packages():
    for program in PROGRAMS.glob("*.py"):
        head = r"(# packages: \S+==\S+(, \S+==\S+)*\n)+\"\"\""
        assert re.match(head, program.read_text()), program


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.stem[4:])
def test_package(program, tmp_path, monkeypatch):
    lines = re.findall(r"^# packages: (.*)$", program.read_text(), re.MULTILINE)
    needs = ", ".join(lines).split(", ")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(installed(need)) for need in needs))
    ours = printed_by_lamella(program, folder=tmp_path)
    assert ours.count("\n") > 1
    # Steps of an optimizer carry the last bits of sums along.
    same(ours, printed_by_torch(program, folder=tmp_path), tolerance=2e-3)
