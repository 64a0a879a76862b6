"""The table of the README: the cost of a call, an import, an install and a rebuild, with peers.

Between the two markers each machine has a group of rows; `make bench` replaces this machine's.
"""

from __future__ import annotations

import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import history

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"

# The same operator as an extension, in the spelling of each library.
SOURCE = """#include <%(header)s>
%(space)s::Tensor twice(const %(space)s::Tensor& self) { return self + self; }
%(macro)s(readme_table, m) { m.def("twice(Tensor self) -> Tensor", &twice); }
"""
SPELLINGS = {
    "lamella": {"header": "lamella/lamella.h", "space": "lamella", "macro": "LAMELLA_LIBRARY"},
    "torch": {
        "header": "torch/library.h>\n#include <ATen/ATen.h",
        "space": "at",
        "macro": "TORCH_LIBRARY",
    },
}


def installed_mb(name: str, build: Path) -> float | None:
    """Megabytes of a package's folders; Lamella's is the installed tree."""
    folders = [build / "prefix"]
    if name != "lamella":
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            return None
        package = Path(spec.origin).parent
        folders = [package, package.with_name(name + ".libs")]
    files = {f.resolve() for folder in folders if folder.is_dir() for f in folder.rglob("*")}
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc") / 1e6


def rebuild_seconds(name: str, build: Path) -> float | None:
    """Compiles an extension of one file, without optimisation; median of three."""
    if name not in SPELLINGS:
        return None
    flags = [f"-I{build}/prefix/include"]
    if name == "torch":
        if importlib.util.find_spec("torch") is None:
            return None
        include = Path(importlib.util.find_spec("torch").origin).parent / "include"
        flags = [f"-I{include}", f"-I{include}/torch/csrc/api/include"]
    times = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "extension.cpp"
        source.write_text(SOURCE % SPELLINGS[name])
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O0", "-fPIC", "-c", *flags,
                   str(source), "-o", str(source) + ".o"]  # fmt: skip
        for _ in range(3):
            begin = time.perf_counter()
            if subprocess.run(command, check=False, capture_output=True).returncode != 0:
                return None
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def write(
    calls: dict[str, dict[str, float]], imports: dict[str, float | None], build: Path
) -> None:
    """Puts the table into README.md. `calls`: rows of python_calls.py for each library."""
    names = ("lamella", "numpy", "torch")
    rows = [
        ("add of one element, from Python", "ns",
         {name: calls.get(name, {}).get("add(a, b), 1 element") for name in names}, 0),
        ("import", "ms", imports, 0),
        ("installed", "MB", {name: installed_mb(name, build) for name in names}, 0),
        ("rebuild of one operator in C++", "s",
         {name: rebuild_seconds(name, build) for name in names}, 1),
    ]  # fmt: skip
    lines = []
    for what, unit, got, digits in rows:
        cells = [f"{got[n]:,.{digits}f} {unit}" if got.get(n) is not None else "–" for n in names]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    groups = groups_of(table)
    groups[history.machine()] = lines
    made = ["| one thread | Lamella | NumPy | PyTorch |", "|---|---|---|---|"]
    for machine in sorted(groups):
        made += [f"| **{machine}** | | | |", *groups[machine]]
    readme.write_text("\n".join([before + BEGIN, *made, END + after]), encoding="utf-8")


def groups_of(table: str) -> dict[str, list[str]]:
    """The rows of a table by the machine that its headings, in bold, name."""
    groups: dict[str, list[str]] = {}
    for line in table.strip().splitlines()[2:]:
        heading = re.match(r"\| \*\*(.+)\*\* \|", line)
        if heading:
            rows = groups.setdefault(heading[1], [])
        else:
            rows.append(line)
    return groups


if __name__ == "__main__":
    sys.exit("run by bench/run.py")
