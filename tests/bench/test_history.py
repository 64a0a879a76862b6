"""Figures kept by commit and machine (bench/history.py) and the README's table by machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import history  # noqa: E402
import readme  # noqa: E402


def entry(row: str, us: float, ratio: float | None = None) -> dict:
    return {"row": row, "us": {"lamella": us}, **({} if ratio is None else {"ratio": ratio})}


def test_rows_that_became_slower_are_named(tmp_path, capsys):
    history.keep("kernels", [entry("add", 1.0, 0.5), entry("exp", 2.0, 0.4)], tmp_path)
    history.keep("other", [entry("add", 1.0, 5.0)], tmp_path)
    assert capsys.readouterr().out == ""
    history.keep("kernels", [entry("add", 2.0, 0.9), entry("exp", 3.0, 0.41)], tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        f"rows more than 1.25 x slower than at {history.commit()}: 1",
        "  add: 0.50 -> 0.90 x best peer",
    ]
    (file,) = tmp_path.iterdir()
    runs = [json.loads(line) for line in file.read_text().splitlines()]
    assert [run["topic"] for run in runs] == ["kernels", "other", "kernels"]
    assert runs[2]["rows"] == {"add": [2.0, 0.9], "exp": [3.0, 0.41]}


def test_rows_without_a_peer_are_not_kept(tmp_path):
    history.keep("kernels", [entry("add", 1.0), entry("exp", 2.0, 0.4)], tmp_path)
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["rows"] == {"exp": [2.0, 0.4]}


def test_each_machine_has_a_group_of_rows():
    table = "\n| | a |\n|---|---|\n| **one, 2 cores** | |\n| x | 1 |\n| **two** | |\n| x | 2 |\n"
    assert readme.groups_of(table) == {"one, 2 cores": ["| x | 1 |"], "two": ["| x | 2 |"]}
