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

`Entry.wrong_error` runs the calls that the table says PyTorch refuses.

Where an entry cannot agree, in these checks or in those of other tests of op_db, op_db_known.txt
says so, with the reason. It can only shrink: a line that is not needed fails the tests too.
LAMELLA_OP_DB=all takes all samples in place of a few.

By hand: `python tests/python/op_db.py [ENTRY ...]` prints what differs now, and with `--write`
writes anew what op_db_known.txt says of these checks, for whoever adds operators that cannot agree
yet. `python tests/python/op_db_table.py` prints which dtypes of each entry are right.

The work is in parts: op_db_mirror.py turns functions and values of PyTorch's into Lamella's,
op_db_sample.py runs and compares one sample, and here are the entries and what is known of them.
"""

from __future__ import annotations

import itertools
import os
import warnings
from pathlib import Path

import torch
from op_db_mirror import Absent, fresh, invocations, ours, tensors_in, to_lamella
from op_db_sample import NotChecked, SampleRun, compared

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core as opinfo_core

TABLE = invocations.op_db

# Looks through the whole stack for a test case of unittest's, for each sample.
opinfo_core.extract_test_fn = common_utils.extract_test_fn = lambda: None

HERE = Path(__file__).resolve().parent
KNOWN_PATH = HERE / "op_db_known.txt"
MODE = os.environ.get("LAMELLA_OP_DB", "")
CHECKS = ("forward", "grad", "gradgrad", "jvp", "fwdrev", "revfwd", "inplace", "out")

# Samples taken of each dtype, spread over those that an entry has.
COUNTS = {torch.float64: 3, torch.complex128: 2, torch.float32: 1, torch.int64: 1, torch.bool: 1}
GENERATED = 16
LARGEST = 20_000  # elements of all tensors of a sample


def read_known():
    """(entry, check) -> reason, of the lines `entry check check: reason`."""
    known = {}
    for line in KNOWN_PATH.read_text().splitlines():
        if not line.startswith("#"):
            words, _, reason = line.partition(": ")
            name, *checks = words.split(" ")
            known.update({(name, check): reason for check in checks})
    return known


KNOWN = read_known()


def error_of(function, convert, call):
    """The exception of a call, including that of making its arguments; None if it returns."""
    try:
        first, args, kwargs = convert(call)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(first, *args, **kwargs)
    except Exception as error:
        return error
    return None


class Entry:
    def __init__(self, info):
        self.info = info
        self.name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        self.has_values = not self.known("values")

    def known(self, check):
        """Why the entry cannot pass the check; None where it can."""
        return KNOWN.get((self.name, check))

    def hold(self, check, problem):
        """Fails for a problem that is not known, and for one that is known and is gone."""
        known = self.known(check)
        assert known or not problem, problem
        assert problem or not known, f"passes now: take '{check}' off op_db_known.txt"

    def require_compared(self, test, ran):
        """A test of the entry has compared something, unless it is known that it cannot."""
        self.hold(f"nothing.{test}", None if ran else "nothing was compared")

    def function(self):
        """The entry's function over Lamella; raises Absent."""
        return ours(self.info.get_op())

    def samples(self, dtype, count=None, generated=GENERATED):
        """At most `count` samples, by default as in COUNTS, spread over those generated."""
        count = count or COUNTS[dtype]
        wants_grad = self.info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        torch.manual_seed(0)
        made = self.info.sample_inputs("cpu", dtype, requires_grad=wants_grad)
        if MODE == "all":
            return list(made)
        found = []
        for sample in itertools.islice(made, generated):
            tensors = tensors_in([sample.input, sample.args, sample.kwargs], torch.Tensor)
            if sum(t.numel() for t in tensors) <= LARGEST:
                found.append(sample)
        if len(found) <= count:
            return found
        return [found[round(i * (len(found) - 1) / max(count - 1, 1))] for i in range(count)]

    def wrong_error(self):
        """The first of the calls that PyTorch refuses, by the entry's own table of them, that
        Lamella takes or refuses with an error of another kind. Raises Absent."""
        function = self.function()
        for number, wrong in enumerate(self.error_inputs()):
            sample = wrong.sample_input
            call = [sample.input, list(sample.args), dict(sample.kwargs)]
            expected = error_of(self.info.get_op(), fresh, call)
            if expected is None:  # from some calls of the table only the gradient is refused
                continue
            got = error_of(function, to_lamella, call)
            compared["errors"] += 1
            if not isinstance(got, type(expected)):
                said = "none" if got is None else f"{type(got).__name__}: {got}"
                return f"call {number}: expected {type(expected).__name__}: {expected}, got {said}"
        return None

    def error_inputs(self):
        return self.info.error_inputs("cpu") if self.info.error_inputs_func else []

    def calls(self):
        """Input, arguments and keywords of each sample of the first dtype."""
        for dtype in self.dtypes()[:1]:
            for sample in self.samples(dtype):
                yield [sample.input, list(sample.args), dict(sample.kwargs)]

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


ENTRIES = [Entry(info) for info in TABLE]
# The entries that Lamella must have; a missing one fails its tests.
DENSE = [entry for entry in ENTRIES if not entry.known("sparse")]
PRESENT = [entry for entry in DENSE if not entry.known("absent")]


# ---- What is known -------------------------------------------------------------------------------


def summary():
    """A summary of this process's comparisons."""
    if not compared["entries"]:
        return {}
    absent = {name for name, check in KNOWN if check == "absent"}
    differ = {name for name, check in KNOWN if check in CHECKS}
    return {**compared, "absent": len(absent), "differ": len(differ)}


def reason_of(text):
    """A difference in one line, without where it was found."""
    line = text.splitlines()[0].partition(": ")[2]
    line = line.replace("Differs: ", "", 1).partition(" (the operator was registered at")[0]
    return line[:160].rstrip(": ")


def write_known():
    """Rewrites the lines of absent and differing entries in CHECKS, keeping their reasons."""
    lines = [line for line in KNOWN_PATH.read_text().splitlines() if line.startswith("#")]
    for entry in ENTRIES:
        found = {check: reason for (name, check), reason in KNOWN.items() if name == entry.name}
        old = {check: found.pop(check) for check in ("absent", *CHECKS) if check in found}
        try:
            for check, text in entry.failures().items():
                found[check] = old.get(check) or reason_of(text)
        except Absent as error:
            found["absent"] = old.get("absent", f"{error} is missing")
        for reason in dict.fromkeys(found.values()):
            checks = [check for check in found if found[check] == reason]
            lines.append(f"{entry.name} {' '.join(checks)}: {reason}")
    KNOWN_PATH.write_text("\n".join(lines) + "\n")


def main(names):
    """Prints the differences of the named entries, or of all, whether known or not."""
    if names == ["--write"]:
        write_known()
        names = ["none"]
    for entry in ENTRIES:
        if names and entry.name not in names and entry.info.name not in names:
            continue
        try:
            for check, text in entry.failures().items():
                print(f"{entry.name} {check}: {text}")
            if wrong := entry.wrong_error():
                print(f"{entry.name} errors: {wrong}")
        except Absent as absent:
            print(f"{entry.name}: absent: {absent}")
    print(summary())


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
