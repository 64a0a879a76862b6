"""Checks plain calls on the CPU: writes, aliases and results must agree with the schema, results
must be repeatable, and defaults must be accepted."""

from __future__ import annotations

import itertools
from typing import Any

import lamella
from lamella import _C
from lamella.testing._calls import Call, describe, difference, storage_of, tensors_in
from lamella.testing._examination import Examination
from lamella.testing._inputs import Sample
from lamella.testing._operator import Argument

# Fill bytes, other than the default, for uninitialized memory and for the memory around tensors.
_FRESH = 0xC3
_MARGIN = 0x5B


def check_calls(e: Examination) -> None:
    """Calls each sample once, and checks what the call writes, returns, aliases and changes."""
    written: set[str] = set()
    shared: set[str] = set()
    for sample in e.samples:
        damaged = _C._guarded_memory()[2]
        call = e.call(sample)
        if call.error is not None:
            continue
        if call.changed_state:
            e.report("state-changed", call.changed_state[0], sample)
        if _C._guarded_memory()[2] != damaged:
            e.report("out-of-bounds", "memory beside a tensor's own was written", sample)
        if _check_defined(e, call):
            continue
        written |= _check_writes(e, call)
        shared |= _check_aliases(e, call)
        _check_bounds(e, call)
    if e.samples and not e.findings:
        _check_kept_promises(e, written, shared)


def _check_defined(e: Examination, call: Call) -> bool:
    for argument, value in zip(e.op.returns, call.results):
        items = value if isinstance(value, (list, tuple)) else [value]
        if argument.is_tensor and not argument.is_optional and any(v is None for v in items):
            e.report("undefined-return", "an undefined tensor was returned", call.sample)
            return True
    return False


def _check_writes(e: Examination, call: Call) -> set[str]:
    written = set()
    for argument in e.op.arguments:
        before = call.before.get(argument.name, [])
        if not before:
            continue
        after = call.after(argument.name)
        change = next((c for c in (b.changes_to(a) for b, a in zip(before, after)) if c), None)
        if change is None:
            continue
        # The version of a declared written argument changes even if no element was written.
        if change != "marked as written":
            written.add(argument.name)
        if not argument.write:
            e.report(
                "undeclared-mutation",
                f"argument '{argument.name}' was {change}, its schema says {_spelled(argument)}",
                call.sample,
            )
        elif change == "written" and all(b.version == a.version for b, a in zip(before, after)):
            e.report(
                "unversioned-write",
                f"argument '{argument.name}' was written and its version did not change",
                call.sample,
            )
    return written


def _spelled(argument: Argument) -> str:
    return f"{argument.type} {argument.name}" if argument.name else argument.type


def _may_share(argument: Argument, result: Argument) -> bool:
    sets = set(argument.before) | set(argument.after)
    return bool(sets & set(result.after)) or ("*" in sets and bool(result.after))


def _check_aliases(e: Examination, call: Call) -> set[str]:
    """Checks the aliases of the results; returns the indices of those that alias as declared."""
    shared = set()
    owners: dict[int, str] = {}
    for index, (result, value) in enumerate(zip(e.op.returns, call.results)):
        addresses = {storage_of(t)[0] for t in tensors_in(value)} - {0}
        words = "the result" if len(e.op.returns) == 1 else f"return {index}"
        for argument in e.op.arguments:
            given = list(tensors_in(call.made.get(argument.name)))
            if not addresses & ({storage_of(t)[0] for t in given} - {0}):
                continue
            if _may_share(argument, result):
                shared.add(f"{index}")
            elif not result.after or not (argument.before or argument.after):
                e.report(
                    "undeclared-alias",
                    f"{words} shares memory with argument '{argument.name}', "
                    f"its schema says {_spelled(argument)} and returns {result.type}",
                    call.sample,
                )
        if result.after:
            continue
        for address in addresses:
            if address in owners and owners[address] != words:
                e.report(
                    "undeclared-alias",
                    f"{words} shares memory with {owners[address]}, its schema says no such thing",
                    call.sample,
                )
            owners[address] = words
    # A return that aliases a written argument must be that tensor object itself.
    for index, (result, value) in enumerate(zip(e.op.returns, call.results)):
        for argument in e.op.arguments:
            if argument.write and _may_share(argument, result):
                made = call.made.get(argument.name)
                if value is made:
                    shared.add(f"{index}")
                elif isinstance(value, lamella.Tensor) and isinstance(made, lamella.Tensor):
                    e.report(
                        "untrue-alias",
                        f"expected argument '{argument.name}' itself to be returned, "
                        f"got another tensor",
                        call.sample,
                    )
    return shared


def _check_bounds(e: Examination, call: Call) -> None:
    for name, value in call.outputs():
        for tensor in tensors_in(value):
            address, size = storage_of(tensor)
            if not tensor.numel() or not address:
                continue
            last = tensor.storage_offset() + sum(
                (n - 1) * s for n, s in zip(tensor.shape, tensor.stride())
            )
            if (last + 1) * tensor.element_size() > size:
                e.report(
                    "out-of-bounds",
                    f"{name}, {describe(tensor)} with strides {list(tensor.stride())}, "
                    f"reaches beyond its memory of {size} bytes",
                    call.sample,
                )


def _check_kept_promises(e: Examination, written: set[str], shared: set[str]) -> None:
    """Checks that each write and alias that the schema declares occurs for some sample."""
    for argument in e.op.arguments:
        given = any(
            spec.values for s in e.samples for name, spec in s.specs() if name == argument.name
        )
        if argument.write and not argument.is_out and given and argument.name not in written:
            e.report(
                "untrue-mutation",
                f"argument '{argument.name}' was never written, its schema says it is",
            )
    for index, result in enumerate(e.op.returns):
        sets = set(result.after)
        if not sets or f"{index}" in shared:
            continue
        for argument in e.op.arguments:
            if sets & (set(argument.before) | set(argument.after)) and _has_elements(
                e.samples, argument.name
            ):
                e.report(
                    "untrue-alias",
                    f"the result never shares memory with argument '{argument.name}', "
                    f"its schema says it may",
                )


def _has_elements(samples: list[Sample], name: str) -> bool:
    return any(spec.values for s in samples for n, spec in s.specs() if n == name)


def check_repeatable(e: Examination) -> None:
    """Checks that equal inputs give equal outputs, whatever uninitialized memory contains."""
    if "nondeterministic_bitwise" in e.op.tags:
        return
    for sample in e.samples:
        first = e.call(sample)
        if first.error is not None:
            e.report("nondeterministic", f"the same call failed later: {first.error}", sample)
            return
        values = first.values()
        for _ in range(2):
            again = e.call(sample)
            found = (
                f"a second call failed: {again.error}"
                if again.error is not None
                else difference(values, again.values(), exact=True)
            )
            if found:
                e.report("nondeterministic", f"{found} at a second call", sample)
                return
        if _raw(e.call(sample)) != _raw(e.call(sample, fresh=_FRESH)):
            e.report("uninitialised", "elements of the result were never written", sample)
            return
        found = difference(values, e.call(sample, margin=_MARGIN).values(), exact=True)
        if found:
            e.report(
                "out-of-bounds", "the result depends on what lies beside a tensor's memory", sample
            )
            return

    if "nondeterministic_seeded" in e.op.tags:
        return
    for sample in e.samples:
        first, other = e.call(sample), e.call(sample, seed=1)
        found = difference(first.values(), other.values(), exact=True)
        if found:
            e.report(
                "nondeterministic",
                "the result depends on the random generator, its tags do not say "
                "nondeterministic_seeded",
                sample,
            )
            return


def _raw(call: Call) -> list[Any]:
    return [repr(value) for value in call.values()]


def check_defaults(e: Examination) -> None:
    """Checks that arguments with a default may be omitted."""
    optional = [a for a in e.op.arguments if a.default is not None]
    if not optional:
        return
    for sample in itertools.islice(e.samples, 5):
        for argument in optional:
            without = sample.without(argument.name)
            error = e.call(without).error
            if error is not None and argument.name in sample.values:
                e.report(
                    "default-rejected",
                    f"argument '{argument.name}' may be left out, which fails: {first_line(error)}",
                    without,
                )
                return


def first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0]
