"""The coverage of op_db, PyTorch's own table of operators, by entry and dtype.

    python tests/python/op_db_table.py [--readme] [ENTRY ...]

prints a line for each entry: the dtypes on which its samples give PyTorch's values, then those that
differ, are absent, or have no result in PyTorch itself; the totals follow. `--readme` writes the
totals into the README, between its markers. Samples are chosen as in op_db.py, at most two for each
dtype; LAMELLA_OP_DB=all takes all.
"""

from __future__ import annotations

import collections
import sys
import warnings
from pathlib import Path

import torch
from op_db import ENTRIES
from op_db_mirror import Absent, name_of
from op_db_sample import NotChecked, SampleRun

README = Path(__file__).resolve().parents[2] / "README.md"
MARKS = ("<!-- op_db_table.py -->\n", "<!-- /op_db_table.py -->\n")
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


def outcome(entry, dtype, check):
    """ "right", or the problem; None if PyTorch has no result for any sample."""
    try:
        function = entry.function()
        samples = entry.samples(dtype, 2)
    except Absent as absent:
        return f"absent: {absent}"
    except Exception:
        return None
    ran, absent = 0, None
    for sample in samples:
        found = {}
        run = SampleRun(entry, function, sample, dtype)
        if check == "grad" and not run.gradients:
            continue
        try:
            run.check(("forward", check), found, "")
        except Absent as error:
            absent = error
            continue
        except NotChecked:
            continue
        if found:
            return f"differs: {next(iter(found.values()))}".replace("\n", " ")[:200]
        ran += 1
    if ran:
        return "right"
    return f"absent: {absent}" if absent else None


def table(totals):
    """The totals as a table of Markdown."""
    lines = [
        "| dtype | entries that PyTorch answers | right | differ | absent |",
        "|---|---|---|---|---|",
    ]
    for name, counts in totals.items():
        right, differ, absent = (counts[word] for word in ("right", "differs", "absent"))
        lines.append(f"| {name} | {right + differ + absent} | {right} | {differ} | {absent} |")
    return "\n".join(lines) + "\n"


def main(arguments):
    names = [a for a in arguments if a != "--readme"]
    totals = {name_of(d): collections.Counter() for d in DTYPES}
    totals["gradients (float64)"] = collections.Counter()
    for entry in ENTRIES:
        if names and entry.name not in names and entry.info.name not in names:
            continue
        found = {}
        dtypes = entry.info.dtypes
        for dtype in DTYPES:
            if dtype in dtypes:
                found[name_of(dtype)] = outcome(entry, dtype, "forward")
        if entry.info.supports_autograd and torch.float64 in dtypes:
            found["gradients (float64)"] = outcome(entry, torch.float64, "grad")
        for name, said in found.items():
            if said is not None:
                totals[name][said.partition(":")[0]] += 1
        right = [name for name, said in found.items() if said == "right"]
        none = [name for name, said in found.items() if said is None]
        rest = [f"{name} {said}" for name, said in found.items() if said not in ("right", None)]
        parts = [" ".join(right) + " right"] if right else []
        parts += [" ".join(none) + " unanswered by PyTorch"] if none else []
        print(f"{entry.name}: {'; '.join(parts + rest)}", flush=True)
    print(table(totals))
    if "--readme" in arguments:
        before, _, rest = README.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        README.write_text(before + MARKS[0] + "\n" + table(totals) + "\n" + MARKS[1] + after)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(sys.argv[1:])
