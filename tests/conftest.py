"""Skips are for features that a machine lacks, and are counted.

If a test is skipped for a reason that is not in the table, or more often than the table allows, the
run fails at its end, so that missing builds or packages cannot hide tests. Cases that do not apply
are not generated in the first place.
"""

from __future__ import annotations

import gc
import os
import re
import sys

import pytest

# Tests compile anew; those of compiled code on disk have folders of their own.
os.environ["LAMELLA_CACHE"] = "off"

# What a reason begins with, how many tests may give it, and on what machine.
ALLOWED = [
    (r"nvcc is not installed", 10, "no CUDA"),
    (r"NVIDIA's headers of the libraries are not installed", 1, "no headers of CUDA's libraries"),
    (r"the stand-in for (asan|tsan) is not built", 15, "outside of tools/sanitize.sh"),
    (r"Graphviz is not installed", 1, "no Graphviz"),
    (r"node is not installed", 1, "no Node.js"),
    (r"valgrind is not installed", 10, "no valgrind"),
    (r"no C compiler", 1, "no C compiler"),
    (r"there is no compiler", 40, "no LLVM"),
    (r"MPI is not installed", 40, "no MPI"),
    (r"(NCCL is not installed|no GPU is here)", 1, "no NCCL or no GPU"),
    (r"the tutorial's text is not beside this checkout", 1, "a checkout alone"),
    (r"the custom-call guide is not beside this checkout", 20, "a checkout alone"),
    (r"the package index has no ", 60, "no network"),
    (r"ARRAY_API_TESTS names no folder", 1, "no array-api-tests, which no package index has"),
    (r"runs each capability itself", 3, "LAMELLA_CPU_CAPABILITY is set"),
    (r"the sanitizers' build has this machine's capability alone", 4, "under a sanitizer"),
    (r"debug builds verify a module after each pass", 2, "under a sanitizer"),
]
if sys.version_info < (3, 11):  # JAX is not there for it in the version that is the oracle
    ALLOWED.append((r"(could not import '(jax|jaxlib)|JAX |XLA )", 40, "Python before 3.11"))
if sys.version_info < (3, 10):
    newer = r"could not import '(torch|expecttest|array_api_compat|array_api_extra)"
    ALLOWED.append((newer, 80, "Python before 3.10"))

# Nothing is garbage while tests are collected, and what they import stays to the end: no search for
# garbage goes through it, which would take a third of a second each time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


_skipped: list[tuple[str, str]] = []  # test or file, reason


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as skipped as well.
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped.append((report.nodeid, reason.removeprefix("Skipped: ")))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def excess(skipped: list[tuple[str, str]]) -> list[str]:
    """The skips beyond the table, one a line."""
    lines, counts = [], [0] * len(ALLOWED)
    for test, reason in skipped:
        rows = [n for n, (begins, _, _) in enumerate(ALLOWED) if re.match(begins, reason)]
        if not rows:
            lines.append(f"{test}: '{reason}' is no reason to skip")
            continue
        counts[rows[0]] += 1
    for (begins, most, machine), count in zip(ALLOWED, counts):
        if count > most:
            lines.append(f"'{begins}' ({machine}): expected at most {most} skips, got {count}")
    return lines


# What each process compared with PyTorch's table of operators: tests/python/op_db.py.
_compared: list[dict[str, int]] = []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    _compared.append(getattr(node, "workeroutput", {}).get("op_db", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    table = sys.modules.get("op_db")
    here = table.summary() if table is not None else {}
    if hasattr(session.config, "workeroutput"):  # a process among others, of pytest-xdist
        session.config.workeroutput["op_db"] = here
        return
    _compared.append(here)
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and excess(_skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    compared = [one for one in _compared if one]
    if compared:
        total = {key: sum(one[key] for one in compared) for key in compared[0]}
        terminalreporter.write_line(
            f"op_db: {total['entries']} operators compared with PyTorch on "
            f"{total['samples']} samples ({total['gradients']} with gradients), "
            f"{compared[0]['absent']} absent, {compared[0]['differ']} known to differ"
        )
    lines = excess(_skipped)
    if lines:
        terminalreporter.section("skips that are not allowed (tests/conftest.py)", sep="=")
        for line in lines:
            terminalreporter.write_line(line)
