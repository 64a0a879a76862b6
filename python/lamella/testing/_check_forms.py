"""Checks that layouts, Meta kernels, in-place and out forms, and threads agree with plain calls;
and that calls do not leak."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import threading
import time
from typing import Any

import lamella
from lamella import _C
from lamella.testing._calls import Call, describe, difference, guard_memory, plain, tensors_in
from lamella.testing._check_calls import first_line
from lamella.testing._examination import Examination
from lamella.testing._inputs import Sample, TensorSpec, arguments_of, contiguous_strides, layouts

_REPEATED = 10  # the number of calls of the check for leaks
_THREADS = 2
_THREAD_CALLS = 200
_THREAD_SECONDS = 0.5
# The number of elements of the largest tensor: calls with fewer do not release the GIL.
_LARGE = 1 << 16


def check_layouts(e: Examination) -> None:
    """Checks that the layout of an argument in memory does not change the result."""
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    for sample in itertools.islice(e.samples, 6):
        expected = e.call(sample)
        if expected.error is not None:
            continue
        values = expected.values()
        for name, moved in layouts(e.op, sample):
            call = e.call(moved)
            # An error is allowed, since an operator may refuse a layout.
            found = difference(values, call.values()) if call.error is None else None
            if found:
                e.report(
                    "layout-dependent",
                    f"{found} where argument '{name}' is {moved.values[name]}",
                    moved,
                )
                return


def check_meta(e: Examination) -> None:
    """Checks that the Meta kernel computes the shapes, dtypes and strides of the CPU's results."""
    if {"data_dependent_output", "dynamic_output_shape"} & e.op.tags:
        return
    if not any(result.is_tensor for result in e.op.returns):
        return
    if not any(True for sample in e.samples for _ in sample.specs()):
        return
    if not e.op.serves("Meta"):
        e.report("missing-meta", "no kernel for Meta: shapes are not known without computing")
        return
    for sample in e.samples:
        variants = [moved for _, moved in layouts(e.op, sample)] if e.tries_layouts else []
        for variant in [sample, *variants]:
            call = e.call(variant)
            if call.error is not None:
                continue
            shapes = e.call(variant, device="meta")
            if getattr(shapes.error, "of_data", False):  # a size that depends on data
                continue
            if shapes.error is not None:
                e.report(
                    "wrong-meta",
                    f"the Meta kernel fails where the CPU's does not: {first_line(shapes.error)}",
                    variant,
                )
                return
            found = _meta_difference(call, shapes)
            if found:
                e.report("wrong-meta", found, variant)
                return


def _meta_difference(call: Call, shapes: Call) -> str | None:
    for (name, real), (_, meta) in zip(call.outputs(), shapes.outputs()):
        reals, metas = list(tensors_in(real)), list(tensors_in(meta))
        if len(reals) != len(metas):
            return f"{name} has {len(reals)} tensors, Meta says {len(metas)}"
        for a, b in zip(reals, metas):
            if b.device.type != "meta":
                return f"{name} is on {b.device} where the arguments are on meta"
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{name} is {describe(a)}, Meta says {describe(b)}"
            strides = [(s, t) for n, s, t in zip(a.shape, a.stride(), b.stride()) if n > 1]
            if a.numel() and any(s != t for s, t in strides):
                return f"{name} has strides {list(a.stride())}, Meta says {list(b.stride())}"
    return None


def check_out(e: Examination) -> None:
    """Checks that the out form writes to its out arguments what the functional form returns."""
    functional = e.op.functional() if e.op.outs else None
    if functional is None:
        return
    outs = [a.name for a in e.op.outs]
    for sample in itertools.islice(e.samples, 8):
        inputs = Sample({k: v for k, v in sample.values.items() if k not in outs})
        expected = Call(functional, inputs)
        if expected.error is not None:
            continue
        results = [plain(value) for value in expected.results]
        if any(isinstance(value, list) for value in results) or len(results) != len(outs):
            continue
        shapes = {n: _out_spec(r) for n, r in zip(outs, results)}
        for specs in (
            {n: TensorSpec((0,), r.dtype, ()) for n, r in zip(outs, results)},
            shapes,
            {n: s.laid_out(_spread(s)) if s.shape else s for n, s in shapes.items()},
        ):
            call = e.call(Sample({**inputs.values, **specs}))
            if call.error is not None:
                if specs is shapes:
                    e.report(
                        "out-mismatch",
                        f"fails with an out of the right shape: {first_line(call.error)}",
                        call.sample,
                    )
                    return
                continue
            given = [("argument '" + n + "'", plain(call.made[n])) for n in outs]
            wanted = [(n, value) for (n, _), value in zip(given, results)]
            found = difference(wanted, given)
            moved = [
                n
                for n in outs
                if specs[n].shape == call.before[n][0].shape and _moved(call, n, specs[n])
            ]
            if found is None and moved:
                found = f"argument '{moved[0]}' of the right shape was given other memory"
            if found:
                e.report("out-mismatch", f"{found}, unlike {functional.full_name}", call.sample)
                return


def _out_spec(result: Any) -> TensorSpec:
    zero: Any = False if result.dtype == lamella.bool else 0
    return TensorSpec(result.shape, result.dtype, (zero,) * len(result.values))


def _spread(spec: TensorSpec) -> list[int]:
    return [2 * s for s in contiguous_strides(spec.shape)]


def _moved(call: Call, name: str, spec: TensorSpec) -> bool:
    before, after = call.before[name][0], call.after(name)[0]
    if not spec.values:
        return False
    return before.storage[0] != after.storage[0] or before.strides != after.strides


def check_inplace(e: Examination) -> None:
    """Checks that the in-place form writes to its first argument what the functional form
    returns."""
    functional = e.op.functional() if e.op.is_inplace else None
    if functional is None:
        return
    name = e.op.arguments[0].name
    for sample in itertools.islice(e.samples, 8):
        expected = Call(functional, sample)
        call = e.call(sample)
        if expected.error is not None or call.error is not None or len(expected.results) != 1:
            continue
        wanted, got = plain(expected.results[0]), plain(call.made[name])
        if isinstance(wanted, list) or wanted.dtype != got.dtype:
            continue
        found = difference([(f"argument '{name}'", wanted)], [("", got)])
        if found:
            e.report("inplace-mismatch", f"{found}, unlike {functional.full_name}", sample)
            return


def check_leaks(e: Examination) -> None:
    """Checks that calls do not leak tensors, whether they succeed or fail."""
    for where, samples in (("a call", e.samples[:4]), ("a call that fails", e.rejected[:4])):
        for sample in samples:
            left = [_left_behind(e, sample) for _ in range(2)]
            if min(blocks for blocks, _ in left) >= _REPEATED:
                blocks, size = left[1]
                e.report(
                    "leak",
                    f"{where} leaves {_count(blocks / _REPEATED)} and "
                    f"{size // _REPEATED} bytes behind",
                    sample,
                )
                return


def _count(blocks: float) -> str:
    return "1 storage" if blocks == 1 else f"{blocks:g} storages"


def _left_behind(e: Examination, sample: Sample) -> tuple[int, int]:
    e.call(sample)
    gc.collect()
    before = _C._guarded_memory()
    for _ in range(_REPEATED):
        e.call(sample)
    gc.collect()
    after = _C._guarded_memory()
    return after[0] - before[0], after[1] - before[1]


def check_threads(e: Examination) -> None:
    """Checks that concurrent calls from several threads do not affect each other."""
    sample = next((s for s in e.samples if any(spec.numel > 1 for _, spec in s.specs())), None)
    if sample is None or any(a.write for a in e.op.arguments):
        return
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    base = _large(e, sample)
    if base is None:
        return
    samples = [base] + [_shifted(base, k + 1) for k in range(_THREADS - 1)]
    calls = [Call(e.op, s) for s in samples]
    if any(call.error is not None for call in calls):
        return
    found: list[str] = []
    gate = threading.Barrier(_THREADS)

    def work(index: int) -> None:
        args, kwargs = arguments_of(e.op, calls[index].made)
        gate.wait()
        for _ in range(_THREAD_CALLS):
            if found or time.monotonic() - start > _THREAD_SECONDS:
                return
            try:
                result = e.op.call(*args, **kwargs)
            except Exception as error:
                found.append(f"a call failed: {first_line(error)}")
                return
            results = [result] if len(e.op.returns) == 1 else list(result or ())
            if not _same_elements(calls[index].results, results):
                found.append("the result changed")

    e.note(f"called from {_THREADS} threads at once with {base}")
    guard_memory(0, 0)
    start = time.monotonic()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if found:
        e.report("thread-unsafe", f"{found[0]} while another thread called it as well", sample)


def _large(e: Examination, sample: Sample) -> Sample | None:
    """The sample with a tensor of _LARGE elements; None if that is refused or too slow."""
    largest = max(spec.numel for _, spec in sample.specs())
    times = 1
    while largest * times < _LARGE:
        times = min(times * 8, -(-_LARGE // largest))
        base = e.maker.enlarged(sample, times)
        start = time.monotonic()
        call = e.call(base)
        if call.error is not None or time.monotonic() - start > 1:
            return None
        if sum(t.numel() for _, value in call.outputs() for t in tensors_in(value)) > 8 * _LARGE:
            return None
    return base


def _shifted(sample: Sample, by: int) -> Sample:
    """The sample with rotated values, so that mixed-up results are detected."""
    values: dict[str, Any] = {}
    for name, value in sample.values.items():
        if isinstance(value, TensorSpec):
            turned = value.values[by:] + value.values[:by]
            value = dataclasses.replace(value, values=turned)
        values[name] = value
    return Sample(values)


def _same_elements(expected: list[Any], results: list[Any]) -> bool:
    pairs = list(zip(tensors_in(expected), tensors_in(results)))
    if all(lamella.equal(a, b) for a, b in pairs):
        return True
    return difference([("", plain(expected))], [("", plain(results))]) is None
