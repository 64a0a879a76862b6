"""Examination: the samples of one operator, and the findings of its checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamella.testing._calls import Call
from lamella.testing._inputs import Maker, Sample
from lamella.testing._operator import Operator

_MAX_SAMPLES = 40


@dataclasses.dataclass
class Finding:
    """An error of an operator.

    kind: such as "undeclared-mutation". inputs: the call that shows it. check: the name of the
    check that found it.
    """

    operator: str
    kind: str
    text: str
    inputs: str = ""
    schema: str = ""
    check: str = ""

    def line(self) -> str:
        return f"{self.operator}  {self.kind}  {self.text}"


class Examination:
    """The state of the checks of one operator. note(text) is called before each call of the
    operator, so that a parent process knows which call crashed."""

    def __init__(
        self,
        op: Operator,
        *,
        seed: int = 0,
        given: Sequence[Sample] = (),
        only_given: bool = False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.op = op
        self.note = note
        self.findings: list[Finding] = []
        self.rejected: list[Sample] = []
        self.check = ""  # the name of the running check
        self.tries_layouts = True
        self.answered = ""  # the first line of the first error
        self.maker = Maker(op, seed, self.accepts)
        self.samples: list[Sample] = [s for s in given if self.accepts(s)]
        self.refused = next((e for e in map(self._error, given) if e is not None), None)
        if only_given:
            return
        if not self.samples:
            first = self.maker.first()
            self.samples = [] if first is None else [first]
        for base in self.samples[:1]:
            for sample in self.maker.more(base):
                if len(self.samples) >= _MAX_SAMPLES:
                    break
                if self.accepts(sample):
                    self.samples.append(sample)
                else:
                    self.rejected.append(sample)

    def call(self, sample: Sample, **options: Any) -> Call:
        where = f" on {options['device']}" if "device" in options else ""
        self.note(f"called{where} with {sample or 'no arguments'}")
        return Call(self.op, sample, **options)

    def accepts(self, sample: Sample) -> bool:
        error = self._error(sample)
        self.answered = self.answered or (error or "").partition("\n")[0]
        return error is None

    def _error(self, sample: Sample) -> str | None:
        error = self.call(sample).error
        return None if error is None else str(error)

    def report(self, kind: str, text: str, sample: Sample | None = None) -> None:
        """Adds a finding; only the first one of each kind is kept."""
        if not self.found(kind):
            inputs = "" if sample is None else str(sample)
            schema = f"{self.op.namespace}::{self.op.facts['schema']}"
            self.findings.append(Finding(self.op.full_name, kind, text, inputs, schema, self.check))

    def found(self, *kinds: str) -> bool:
        return any(finding.kind in kinds for finding in self.findings)
