"""lamella.testing.opcheck: checks one operator against its schema and under the layers: autograd,
vmap, tracing and autocast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lamella
from lamella.testing import _check_calls, _check_forms, _check_layers
from lamella.testing._calls import guarded_memory
from lamella.testing._examination import Examination, Finding
from lamella.testing._inputs import Sample, sample_of
from lamella.testing._operator import Operator, operator_of

Check = Callable[[Examination], None]

# The checks, in the order in which they run. A finding of the first group means that values cannot
# be trusted, so the further checks are then skipped.
_FIRST: dict[str, Check] = {
    "calls": _check_calls.check_calls,
    "repeatable": _check_calls.check_repeatable,
    "composite": _check_layers.check_composite,
}
_FURTHER: dict[str, Check] = {
    "defaults": _check_calls.check_defaults,
    "layouts": _check_forms.check_layouts,
    "meta": _check_forms.check_meta,
    "out": _check_forms.check_out,
    "inplace": _check_forms.check_inplace,
    "leaks": _check_forms.check_leaks,
    "threads": _check_forms.check_threads,
    "gradients": _check_layers.check_gradients,
    "batching": _check_layers.check_batching,
    "trace": _check_layers.check_trace,
    "autocast": _check_layers.check_autocast,
}
ALL = (*_FIRST, *_FURTHER)

# The names of torch.library.opcheck for groups of checks. They do not include "layouts".
_GROUPS = {
    "test_schema": ("calls", "repeatable", "defaults"),
    "test_autograd_registration": ("gradients",),
    "test_faketensor": ("meta",),
    "test_aot_dispatch_static": ("composite", "trace", "gradients"),
    "test_aot_dispatch_dynamic": ("composite", "trace", "gradients"),
}


class OpCheckError(RuntimeError):
    """Raised by opcheck() if it found errors, which are in `findings`."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(_told(finding) for finding in findings))
        self.findings = list(findings)


def _told(finding: Finding) -> str:
    return finding.line() + (f"\n  called with {finding.inputs}" if finding.inputs else "")


def examine(
    op: Operator,
    *,
    seed: int = 0,
    given: Sequence[Sample] = (),
    only_given: bool = False,
    checks: Sequence[str] = ALL,
    note: Callable[[str], None] = lambda text: None,
) -> list[Finding]:
    """Runs checks on an operator and returns what they found.

    given: the first samples; unless only_given, more are made from the schema.
    """
    numbers = lamella.get_rng_state()
    try:
        with guarded_memory():
            e = Examination(op, seed=seed, given=given, only_given=only_given, note=note)
            e.tries_layouts = "layouts" in checks
            if not e.samples:
                why = e.refused or "give some with --inputs"
                if not e.refused and e.answered:
                    why += f"; those that were made were answered: {e.answered}"
                e.report("unchecked", f"no inputs are known that the operator takes: {why}")
                return e.findings
            for group in (_FIRST, _FURTHER):
                for e.check, check in group.items():
                    if e.check in checks:
                        check(e)
                if e.findings:
                    break
            return e.findings
    finally:
        lamella.set_rng_state(numbers)


def _checks_of(name: str) -> tuple[str, ...]:
    if name not in ALL and name not in _GROUPS:
        raise ValueError(
            f"opcheck: expected 'test_utils' to name checks, got '{name}': "
            f"{', '.join((*ALL, *_GROUPS))}"
        )
    return _GROUPS.get(name, (name,))


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = ALL,
    raise_exception: bool = True,
) -> dict[str, str]:
    """Checks an operator with the given arguments.

    op: an overload of lamella.ops, or a name with one overload. The arguments are copied for each
    call; other dtypes of float tensors are also tried, and with the check "layouts" other layouts.
    test_utils: names of checks, or of torch.library.opcheck's groups. Returns for each name
    "SUCCESS", the findings, or "SKIPPED" for checks that do not run because plain calls are wrong.
    Raises OpCheckError if there are findings, unless raise_exception is False.
    A kernel that accesses memory outside of its tensors crashes the process; `lamella opcheck` runs
    the checks in child processes instead.
    """
    operator = operator_of(op)
    sample = sample_of(operator, args, dict(kwargs or {}))
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    groups = {name: _checks_of(name) for name in names}
    wanted = {check for checks in groups.values() for check in checks}
    findings = examine(operator, given=[sample], only_given=True, checks=tuple(wanted))
    if findings and raise_exception:
        raise OpCheckError(findings)
    failed = {finding.check for finding in findings}
    results: dict[str, str] = {}
    for name, checks in groups.items():
        own = [_told(f) for f in findings if f.check in checks or not f.check]
        if own:
            results[name] = "\n".join(own)
        else:
            skipped = failed & set(_FIRST) and set(checks) <= set(_FURTHER)
            results[name] = "SKIPPED" if skipped else "SUCCESS"
    return results
