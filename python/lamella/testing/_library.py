"""Checks all operators of a shared library, each in a child process.

The parent never loads the library, so that crashes and hangs become findings. A child writes one
JSON object per line: {"note": ...} before each call of the operator, and at its end
{"findings": [...]} or {"error": ...}.
"""

from __future__ import annotations

import dataclasses
import json
import os
import runpy
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import lamella
from lamella import _C
from lamella.testing._examination import Finding
from lamella.testing._inputs import Sample, sample_of
from lamella.testing._operator import Operator, defined_operators


class LibraryError(RuntimeError):
    """Raised if the library cannot be checked at all."""


@dataclasses.dataclass
class Report:
    """The findings for a library. operators: the names of the checked operators."""

    library: str
    operators: list[str]
    findings: list[Finding]

    def as_json(self) -> dict[str, Any]:
        return {
            "library": self.library,
            "operators": self.operators,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
        }


def check_library(
    path: str,
    *,
    namespace: str | None = None,
    op: str | None = None,
    seed: int = 0,
    inputs: str | None = None,
    silence: float = 30.0,
) -> Iterator[tuple[str, list[Finding]]]:
    """Yields the name of each operator with its findings.

    namespace, op: checks only operators of that namespace, or that operator. inputs: a Python file
    whose function inputs(name) returns a list of (args, kwargs) for an operator, or None. silence:
    a child that writes nothing for so many seconds counts as a hang.
    """
    path = os.fspath(path)

    def list_operators(tell: Callable[[dict[str, Any]], None]) -> None:
        before = set(defined_operators())
        lamella.load_library(path)
        after = defined_operators()
        # If a namespace is given, operators that it had before are checked, too.
        own = after if namespace is not None else [name for name in after if name not in before]
        tell({"operators": own})

    listed = _run_child(list_operators, silence)
    names = [(name, overload) for name, overload in listed.get("operators", [])]
    if listed.get("fault") or "operators" not in listed:
        raise LibraryError(listed.get("fault") or listed.get("error") or "could not be loaded")
    if namespace is not None:
        names = [n for n in names if n[0].startswith(namespace + "::")]
    if op is not None:
        names = [n for n in names if op in (n[0], f"{n[0]}.{n[1]}", n[0].partition("::")[2])]
    if not names:
        raise LibraryError("defines no operator" if op is None else f"defines no operator '{op}'")
    for name, overload in names:
        full_name = f"{name}.{overload}" if overload else name
        told = _run_child(
            lambda tell, n=name, o=overload: _examine(path, n, o, seed, inputs, tell), silence
        )
        if "error" in told:
            raise LibraryError(f"{full_name}: {told['error']}")
        findings = [Finding(**finding) for finding in told.get("findings", [])]
        if told.get("fault"):
            kind = told["kind"]
            text = told["fault"]
            findings.append(Finding(full_name, kind, text, told.get("note", "")))
        yield full_name, findings


def _examine(
    path: str,
    name: str,
    overload: str,
    seed: int,
    inputs: str | None,
    tell: Callable[[dict[str, Any]], None],
) -> None:
    from lamella.testing._opcheck import examine

    lamella.load_library(path)
    op = Operator(name, overload)
    given = _given(inputs, op) if inputs is not None else []
    findings = examine(op, seed=seed, given=given, note=lambda text: tell({"note": text}))
    tell({"findings": [dataclasses.asdict(finding) for finding in findings]})


def _given(inputs: str, op: Operator) -> list[Sample]:
    function = runpy.run_path(inputs).get("inputs")
    if function is None:
        raise ValueError(f"opcheck: expected {inputs} to define inputs(name)")
    return [sample_of(op, args, kwargs) for args, kwargs in function(op.full_name) or []]


# ---- Processes ---------------------------------------------------------------------------------


def _run_child(body: Callable[..., None], silence: float) -> dict[str, Any]:
    """Runs body(tell) in a child process; returns the latest value of each key that it told.

    The keys "fault" and "kind" are set if the child crashed or hung.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    fault_reading, fault_writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(fault_reading)
        _live(body, writing, fault_writing)
    os.close(writing)
    os.close(fault_writing)
    told: dict[str, Any] = {}
    hung = False
    with os.fdopen(reading, "rb", buffering=0) as pipe, os.fdopen(fault_reading, "rb") as faults:
        pending = b""
        while True:
            ready, _, _ = select.select([pipe], [], [], silence)
            if not ready:
                os.kill(child, signal.SIGKILL)
                hung = True
                break
            data = pipe.read(1 << 16)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                told.update(json.loads(line))
        _, status = os.waitpid(child, 0)
        fault = faults.read().decode()
    if hung:
        told["kind"] = "hang"
        told["fault"] = f"{told.get('note', 'loaded')}, did not return within {silence:g} s"
    elif os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status)).name
        told["kind"] = "crash"
        told["fault"] = f"ended the process with {number} when {told.get('note', 'loaded')}"
    elif os.WEXITSTATUS(status) == _C._GUARD_FAULT_STATUS and fault:
        told["kind"] = "out-of-bounds"
        told["fault"] = f"{fault.strip()} when {told.get('note', 'loaded')}"
    elif "findings" not in told and "operators" not in told and "error" not in told:
        told["kind"] = "crash"
        told["fault"] = (
            f"ended the process with status {os.WEXITSTATUS(status)} "
            f"when {told.get('note', 'loaded')}"
        )
    return told


def _live(body: Callable[..., None], writing: int, fault_writing: int) -> None:
    """Runs body(tell) in the child process, and exits."""

    def tell(what: dict[str, Any]) -> None:
        os.write(writing, json.dumps(what).encode() + b"\n")

    try:
        _C._report_guard_faults(fault_writing)
        body(tell)
    except BaseException as error:
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        tell({"error": text})
        os._exit(1)
    os._exit(0)


__all__ = ["LibraryError", "Report", "check_library"]
