"""Lamella beside PyTorch on the samples of op_db, PyTorch's own table of operators.

An entry of the table has a function of PyTorch's, often a lambda or a small wrapper. `ours` makes
the same function over Lamella: names are looked up by their path, Python functions of PyTorch's
test files are made again with `torch` standing for `lamella`. `Entry.failures` then runs both on
the entry's samples and says, check by check, what differs:

    forward   values, shapes and dtypes of the results
    grad      which results require gradients, and the gradients of the inputs
    gradgrad  second derivatives
    jvp       tangents of the results in forward mode
    fwdrev    tangents of the gradients: forward mode over reverse mode
    revfwd    gradients of the tangents: reverse mode over forward mode
    inplace   the in-place form: values and gradients
    out       `out=` with inputs that require gradients raises

Entries that Lamella does not have stand in op_db_absent.txt, checks that differ in
op_db_differs.txt, each with the reason. Both lists can only shrink: an entry that is there without
need fails the test too. LAMELLA_OP_DB=all takes all samples in place of a few, and
LAMELLA_OP_DB=shrink takes lines away that are not needed any more.

By hand: `python tests/python/op_db.py [ENTRY ...]` prints what differs now, and with
`--write-lists` writes both lists anew, for whoever adds operators that cannot agree yet.

The work is in parts: op_db_mirror.py turns functions and values of PyTorch's into Lamella's,
op_db_sample.py runs and compares one sample, and here are the entries and the lists.
"""

from __future__ import annotations

import itertools
import os
import warnings
from pathlib import Path

import torch
from op_db_mirror import Absent, invocations, ours, tensors_in
from op_db_sample import NotChecked, SampleRun, compared

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core as opinfo_core

TABLE = invocations.op_db

# Looks through the whole stack for a test case of unittest's, for each sample.
opinfo_core.extract_test_fn = common_utils.extract_test_fn = lambda: None

HERE = Path(__file__).resolve().parent
MODE = os.environ.get("LAMELLA_OP_DB", "")
CHECKS = ("forward", "grad", "gradgrad", "jvp", "fwdrev", "revfwd", "inplace", "out")

# Samples taken of each dtype, spread over those that an entry has.
COUNTS = {torch.float64: 3, torch.complex128: 2, torch.float32: 1, torch.int64: 1, torch.bool: 1}
GENERATED = 16
LARGEST = 20_000  # elements of all tensors of a sample


class Entry:
    def __init__(self, info):
        self.info = info
        self.name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name

    def function(self):
        """The entry's function over Lamella; raises Absent."""
        return ours(self.info.get_op())

    def samples(self, dtype):
        count = COUNTS[dtype]
        wants_grad = self.info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        torch.manual_seed(0)
        made = self.info.sample_inputs("cpu", dtype, requires_grad=wants_grad)
        if MODE == "all":
            return list(made)
        found = []
        for sample in itertools.islice(made, GENERATED):
            tensors = tensors_in([sample.input, sample.args, sample.kwargs], torch.Tensor)
            if sum(t.numel() for t in tensors) <= LARGEST:
                found.append(sample)
        if len(found) <= count:
            return found
        return [found[round(i * (len(found) - 1) / max(count - 1, 1))] for i in range(count)]

    def dtypes(self):
        """Those compared: float64, complex128 and float32, or else whole numbers or bool."""
        floating = [torch.float64, torch.complex128, torch.float32]
        has = [d for d in floating if d in self.info.dtypes]
        rest = [d for d in (torch.int64, torch.bool) if d in self.info.dtypes]
        return has or rest[:1] or ([] if self.info.dtypes else [torch.float32])

    def failures(self, checks=CHECKS):
        """From check to the first difference found. Raises Absent."""
        function = self.function()
        found = {}
        ran = 0
        absent = None
        for dtype in self.dtypes():
            for number, sample in enumerate(self.samples(dtype)):
                run = SampleRun(self, function, sample, dtype)
                try:
                    run.check(checks, found, f"{str(dtype)[6:]} sample {number}")
                except Absent as error:
                    absent = error
                    continue
                except NotChecked:
                    continue
                ran += 1
        compared["entries"] += ran > 0
        compared["samples"] += ran
        if ran == 0 and not found and absent is not None:
            raise absent
        return found


# ---- The lists of what is missing ----------------------------------------------------------------


class KnownList:
    """Lines `entry: reason` (absent) or `entry check check: reason` (differs)."""

    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().splitlines() if path.exists() else []
        self.entries = {}
        for line in self.lines:
            if line and not line.startswith("#"):
                words, _, reason = line.partition(": ")
                name, *checks = words.split(" ")
                self.entries[name] = (set(checks), reason)

    def shrink(self, needed):
        """Takes away lines and checks that are not in `needed` (from entry to checks)."""
        kept = []
        for line in self.lines:
            words, separator, reason = line.partition(": ")
            name, *checks = words.split(" ")
            if not line or line.startswith("#"):
                kept.append(line)
            elif name in needed:
                left = [check for check in checks if check in needed[name]]
                if left or not checks:
                    kept.append(" ".join([name, *left]) + separator + reason)
        self.path.write_text("\n".join(kept) + "\n")


ENTRIES = [Entry(info) for info in TABLE]
ABSENT = KnownList(HERE / "op_db_absent.txt")
DIFFERS = KnownList(HERE / "op_db_differs.txt")
# Those that Lamella is to have: whichever is not there is a failure of whoever calls it.
PRESENT = [entry for entry in ENTRIES if entry.name not in ABSENT.entries]
# Where none of an entry's samples can be compared by a test, which these name: can only shrink.
NOTHING = KnownList(HERE / "op_db_nothing.txt")


def require_compared(entry, test, ran):
    """A test of an entry has compared something, or op_db_nothing.txt says that it cannot."""
    listed = test in NOTHING.entries.get(entry.name, (set(), ""))[0]
    assert ran or listed, f"nothing was compared, and op_db_nothing.txt does not name {test}"
    assert not (ran and listed), f"is compared now: take {test} off op_db_nothing.txt"


def summary():
    """What was compared, by this process."""
    if not compared["entries"]:
        return {}
    return {**compared, "absent": len(ABSENT.entries), "differ": len(DIFFERS.entries)}


def reason_of(texts):
    """The first difference in one line, without where it was found."""
    line = next(iter(texts.values())).splitlines()[0].partition(": ")[2]
    line = line.replace("Differs: ", "", 1).partition(" (the operator was registered at")[0]
    return line[:160].rstrip(": ")


def write_lists():
    """Writes both lists as they are needed now, with the reasons that they have."""
    absent, differs = [], []
    for entry in ENTRIES:
        try:
            found = entry.failures()
        except Absent as error:
            known = ABSENT.entries.get(entry.name, (None, f"{error} is missing"))
            absent.append(f"{entry.name}: {known[1]}")
            continue
        if found:
            checks, reason = DIFFERS.entries.get(entry.name, (set(), ""))
            reason = reason if set(found) <= checks else reason_of(found)
            differs.append(f"{entry.name} {' '.join(found)}: {reason}")
    for known, lines in ((ABSENT, absent), (DIFFERS, differs)):
        head = [line for line in known.lines if line.startswith("#")]
        known.path.write_text("\n".join(head + lines) + "\n")


def main(names):
    """Prints the differences of the named entries, or of all, whether known or not."""
    if names == ["--write-lists"]:
        write_lists()
        names = ["none"]
    for entry in ENTRIES:
        if names and entry.name not in names and entry.info.name not in names:
            continue
        try:
            for check, text in entry.failures().items():
                print(f"{entry.name} {check}: {text}")
        except Absent as absent:
            print(f"{entry.name}: absent: {absent}")
    print(summary())


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
