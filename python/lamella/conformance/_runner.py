"""Runs checks in child processes, and collects their results.

A child runs one check after another and reports each before it begins. If the child ends, or is
silent for too long, that check has failed, and a new child continues with the next one. The parent
never loads the library, since threads of the library would not survive a fork.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lamella.conformance._missing import Missing


@dataclasses.dataclass
class Finding:
    """The outcome of one check."""

    name: str
    status: str  # "ok", "missing", "failed", "crashed", "timeout"
    text: str = ""

    def line(self) -> str:
        return f"{self.name}  {self.status}" + (f"  {self.text}" if self.text else "")


@dataclasses.dataclass
class Report:
    library: str
    device: str
    loaded: bool = True
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status != "ok"]

    def summary(self) -> str:
        failed = len(self.failures())
        word = "check" if len(self.findings) == 1 else "checks"
        return f"{self.device}: {len(self.findings)} {word}, {failed} not passed"

    def as_json(self) -> dict[str, Any]:
        return {
            "library": self.library,
            "device": self.device,
            "loaded": self.loaded,
            "passed": not self.failures(),
            "checks": [dataclasses.asdict(finding) for finding in self.findings],
        }


def check_backend(
    library: str,
    device: str,
    *,
    without: Sequence[str] = (),
    only: str | None = None,
    timeout: float = 60.0,
    show: Callable[[Finding], None] | None = None,
) -> Report:
    """Checks the backend in `library`, whose device type is `device`.

    without: optional parts that the backend does not have. only: runs the checks whose names
    contain this text. timeout: seconds for one check. show: called with each finding at once.
    """
    from lamella.conformance import _checks, _operators

    report = Report(os.fspath(library), device)
    checks = [check for check in _checks.CHECKS if check.part not in without]
    checks += _operators.checks()
    if only is not None:
        checks = [check for check in checks if only in check.name]
    for finding in _run_all(report, checks, timeout):
        report.findings.append(finding)
        if show is not None:
            show(finding)
    return report


def _run_all(report: Report, checks: Sequence[Any], timeout: float) -> Iterator[Finding]:
    begin = 0
    while begin < len(checks):
        child, pipe = _start(report, checks[begin:])
        name = None
        for message in _messages(pipe, timeout):
            if "error" in message:
                report.loaded = False
                yield Finding("load", "failed", message["error"])
                begin = len(checks)
            elif "begin" in message:
                name = message["begin"]
            else:
                name = None
                begin += 1
                yield Finding(message["end"], message["status"], message["text"])
        status = _end(child)
        os.close(pipe)
        if name is None and begin < len(checks):
            name = checks[begin].name
        if begin < len(checks):
            begin += 1
            if status == -signal.SIGKILL:
                yield Finding(str(name), "timeout", f"took longer than {timeout:g} s")
            else:
                yield Finding(str(name), "crashed", _how(status))


def _how(status: int) -> str:
    if status < 0:
        return f"the process ended by {signal.Signals(-status).name}"
    return f"the process ended with status {status}"


def _start(report: Report, checks: Sequence[Any]) -> tuple[int, int]:
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child != 0:
        os.close(writer)
        return child, reader
    status = 1
    try:
        os.close(reader)
        _child(report, checks, writer)
        status = 0
    finally:
        # _exit() skips the exit handlers and buffers that were inherited from the parent.
        os._exit(status)


def _child(report: Report, checks: Sequence[Any], writer: int) -> None:
    import lamella

    def say(**message: Any) -> None:
        os.write(writer, json.dumps(message).encode() + b"\n")

    try:
        lamella.load_library(report.library)
        device = lamella.device(report.device)
    except (OSError, RuntimeError) as error:
        say(error=_one_line(error))
        return
    for check in checks:
        say(begin=check.name)
        status, text = "ok", ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check.run(device)
        except Missing as missing:
            status, text = "missing", _one_line(missing)
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            status, text = "failed", kind + _one_line(error)
        say(end=check.name, status=status, text=text)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


def _messages(pipe: int, timeout: float) -> Iterator[dict[str, Any]]:
    """The messages of a child, until it ends or is silent for `timeout` seconds."""
    buffer = b""
    until = time.monotonic() + timeout
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        data = os.read(pipe, 65536)
        if not data:
            return
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            yield json.loads(line)
        until = time.monotonic() + timeout


def _end(child: int) -> int:
    """Waits shortly for a child, kills it if it still runs, and returns its exit status, negative
    for a signal."""
    for _ in range(20):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
