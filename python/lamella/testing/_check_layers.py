"""Checks operators under the layers: autograd, vmap, trace, autocast, and composite kernels."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import lamella
from lamella.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from lamella.testing._calls import Plain, difference, plain, tensors_in
from lamella.testing._check_calls import first_line
from lamella.testing._compliance import composite_check
from lamella.testing._examination import Examination
from lamella.testing._inputs import Sample, TensorSpec, arguments_of

# The largest number of elements of a call whose gradients are compared with finite differences.
_MAX_ELEMENTS = 200


def check_composite(e: Examination) -> None:
    """Checks that a composite kernel only calls operators."""
    if not e.op.is_composite:
        return
    for sample in itertools.islice(e.samples, 8):
        error = e.call(sample, around=composite_check).error
        if error is not None:
            e.report("composite-violation", first_line(error), sample)
            return


def _differentiable_samples(e: Examination) -> Iterator[Sample]:
    """Small samples with floating-point elements, in float64 if the operator takes it."""
    for sample in e.samples:
        specs = [spec for _, spec in sample.specs()]
        if not any(spec.is_floating and spec.values for spec in specs):
            continue
        if sum(spec.numel for spec in specs) > _MAX_ELEMENTS:
            continue
        if any(spec.is_floating and spec.dtype != lamella.float64 for spec in specs):
            double = e.maker.as_dtype(sample, lamella.float64)
            if e.accepts(double):
                sample = double
        yield sample


class _Differentiated:
    """A call as a function of those of its tensors that may require gradients."""

    def __init__(self, e: Examination, sample: Sample) -> None:
        self.op = e.op
        self.made = sample.make()
        self.names = [
            a.name
            for a in e.op.arguments
            if isinstance(sample.values.get(a.name), TensorSpec)
            and sample.values[a.name].is_floating
            and not a.is_out
        ]
        self.inputs = tuple(self.made[n].detach().requires_grad_() for n in self.names)
        declared = e.op.facts["derivative"]
        every = range(len(e.op.returns))
        written = any(a.write for a in e.op.arguments)
        all_of_them = declared is None or (written and not declared["differentiable"])
        self.differentiable = every if all_of_them else declared["returns"]
        self.single = any(self.made[n].dtype != lamella.float64 for n in self.names)

    def __call__(self, *tensors: lamella.Tensor) -> Any:
        made = {**self.made, **dict(zip(self.names, tensors))}
        for argument in self.op.arguments:
            if argument.write and argument.name in self.names:
                made[argument.name] = made[argument.name].clone()
        args, kwargs = arguments_of(self.op, made)
        result = self.op.call(*args, **kwargs)
        results = [result] if len(self.op.returns) == 1 else list(result or ())
        outputs = [
            t
            for place, value in enumerate(results)
            if place in self.differentiable
            for t in tensors_in(value)
            if t.dtype in _FLOATING
        ]
        if not outputs and not self.op.returns:
            outputs = [made[a.name] for a in self.op.arguments if a.write and a.name in self.names]
        return tuple(outputs)


_FLOATING = (lamella.float32, lamella.float64)


def check_gradients(e: Examination) -> None:
    """Checks that first and second gradients, and tangents, agree with finite differences."""
    declared = e.op.facts["derivative"]
    if e.op.outs:
        return
    writes = any(argument.write for argument in e.op.arguments)
    # A written argument always has a gradient, which is zero if its old value has no effect.
    if declared is not None and not declared["differentiable"] and not writes:
        return
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    for sample in itertools.islice(_differentiable_samples(e), 4):
        function = _Differentiated(e, sample)
        if not function.names:
            continue
        e.note(f"called for its gradient with {sample}")
        try:
            outputs = function(*function.inputs)
        except Exception as error:
            e.report(
                "lost-gradient",
                f"fails where an argument requires gradients: {first_line(error)}",
                sample,
            )
            return
        if not all(lamella.isfinite(y).all().item() for y in outputs):
            continue
        lost = _lost(function, outputs)
        if lost:
            e.report("lost-gradient", lost, sample)
            return
        # _lost() has checked that outputs without gradients do not depend on the inputs.
        tracked = [i for i, y in enumerate(outputs) if y.requires_grad]
        if not tracked or not _has_backward(function, outputs):
            continue
        if not _check_derivatives(e, function, tracked, sample):
            return


def _lost(function: _Differentiated, outputs: tuple[lamella.Tensor, ...]) -> str | None:
    """Describes an output that varies with an input but does not require gradients; None if there
    is none."""
    for index, output in enumerate(outputs):
        if output.requires_grad or not output.numel():
            continue
        with lamella.no_grad():
            base = function(*function.inputs)[index]
            for place, name in enumerate(function.names):
                moved = list(function.inputs)
                moved[place] = moved[place].detach() + 1e-3
                other = function(*moved)[index]
                if base.shape == other.shape and not lamella.equal(base, other):
                    return (
                        f"the result varies with argument '{name}', which requires gradients, "
                        f"and does not require them"
                    )
    return None


def _has_backward(function: _Differentiated, outputs: tuple[lamella.Tensor, ...]) -> bool:
    """Whether the operator has a derivative; an error that says that it has none is allowed."""
    wanted = [y for y in outputs if y.requires_grad]
    try:
        lamella.autograd.grad(
            wanted, function.inputs, [lamella.ones_like(y) for y in wanted], allow_unused=True
        )
    except NotImplementedError:
        return False
    except Exception:
        return True  # found by the comparison below
    return True


def _check_derivatives(
    e: Examination, function: _Differentiated, tracked: list[int], sample: Sample
) -> bool:
    def chosen(*tensors: lamella.Tensor) -> Any:
        outputs = function(*tensors)
        return tuple(outputs[i] for i in tracked)

    # Single precision allows only coarse finite differences.
    options: dict[str, Any] = {"eps": 1e-2, "atol": 2e-2, "rtol": 5e-2} if function.single else {}
    try:
        gradcheck(chosen, function.inputs, check_undefined_grad=False, **options)
    except (GradcheckError, RuntimeError, ValueError, TypeError) as error:
        e.report("wrong-gradient", first_line(error), sample)
        return False
    if function.single:
        return True
    try:
        gradcheck(
            chosen,
            function.inputs,
            check_undefined_grad=False,
            check_forward_ad=True,
            check_backward_ad=False,
        )
    except NotImplementedError:
        pass  # the operator has no formula for tangents
    except (GradcheckError, RuntimeError, ValueError, TypeError) as error:
        e.report("wrong-forward-gradient", first_line(error), sample)
        return False
    try:
        gradgradcheck(chosen, function.inputs, check_undefined_grad=False)
    except NotImplementedError:
        pass
    except (GradcheckError, RuntimeError, ValueError, TypeError) as error:
        if "once_differentiable" not in str(error):
            e.report("wrong-second-gradient", first_line(error), sample)
            return False
    return True


_EXAMPLES = 3


def check_batching(e: Examination) -> None:
    """Checks that the operator under vmap gives for each example the result of a plain call."""
    if e.op.outs or {"data_dependent_output", "dynamic_output_shape"} & e.op.tags:
        return
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    if e.found("layout-dependent"):
        return  # an example has another layout in a batch
    for sample in itertools.islice(e.samples, 6):
        names = [n for n, v in sample.values.items() if isinstance(v, TensorSpec)]
        if not names:
            continue
        examples = [_turned(sample, k) for k in range(_EXAMPLES)]
        for batched in [names] if len(names) == 1 else [names, names[:1], names[-1:]]:
            # An argument that is not batched is shared by all examples, so it cannot be written.
            if any(a.write and a.name not in batched for a in e.op.arguments if a.is_tensor):
                continue
            given = [
                sample if n == 0 else _mixed(sample, x, batched) for n, x in enumerate(examples)
            ]
            found = _batching_difference(e, given, batched)
            if found:
                e.report("wrong-batching", f"under vmap over {', '.join(batched)}: {found}", sample)
                return


def _turned(sample: Sample, by: int) -> Sample:
    """The sample with its values rotated, as another example."""
    turned = {
        name: dataclasses.replace(value, values=value.values[by:] + value.values[:by])
        for name, value in sample.values.items()
        if isinstance(value, TensorSpec)
    }
    return Sample({**sample.values, **turned})


def _mixed(sample: Sample, example: Sample, batched: list[str]) -> Sample:
    return Sample({**sample.values, **{name: example.values[name] for name in batched}})


def _batching_difference(e: Examination, examples: list[Sample], batched: list[str]) -> str | None:
    calls = [e.call(example) for example in examples]
    if any(call.error is not None for call in calls):
        return None
    made = examples[0].make()
    stacked = [lamella.stack([x.make()[name] for x in examples]) for name in batched]
    written = [a.name for a in e.op.arguments if a.write and a.name in batched]

    outputs = _function_of(e, made, batched, written)
    e.note(f"called under vmap over {', '.join(batched)} with {examples[0]}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # vmap warns if it calls the operator in a loop
            results = lamella.vmap(outputs)(*stacked)
    except Exception as error:
        return first_line(error)
    for k, call in enumerate(calls):
        alone = [*tensors_in(call.results), *(call.made[name] for name in written)]
        wanted = [(f"result {i} of example {k}", plain(t)) for i, t in enumerate(alone)]
        found = difference(wanted, [("", plain(t[k])) for t in results])
        if found:
            return found
    return None


def check_trace(e: Examination) -> None:
    """Checks that the traced graph of a call gives the operator's results for other values."""
    if {"data_dependent_output", "dynamic_output_shape"} & e.op.tags:
        return
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    for sample in itertools.islice(e.samples, 6):
        names = [n for n, v in sample.values.items() if isinstance(v, TensorSpec)]
        if not names:
            continue
        other = _turned(sample, 1)
        expected = e.call(other)
        if expected.error is not None:
            continue
        written = [a.name for a in e.op.arguments if a.write and a.name in names]
        function = _function_of(e, sample.make(), names, written)
        e.note(f"called under trace with {sample}")
        made, given = sample.make(), other.make()
        try:
            graph = lamella.trace(function, *(made[name] for name in names), check=False)
            results = graph(*(given[name] for name in names))
        except Exception as error:
            e.report("wrong-trace", f"under trace: {first_line(error)}", sample)
            return
        wanted = [*tensors_in(expected.results), *(expected.made[name] for name in written)]
        found = difference(
            [(f"result {i} of the graph", plain(t)) for i, t in enumerate(wanted)],
            [("", plain(t)) for t in tensors_in(results)],
        )
        if found:
            e.report("wrong-trace", f"{found}, called with other values", sample)
            return


def _function_of(
    e: Examination, made: dict[str, Any], names: list[str], written: list[str]
) -> Callable[..., Any]:
    """The operator as a function of some of its tensors, which also returns those it writes."""

    def function(*tensors: lamella.Tensor) -> Any:
        values = {**made, **dict(zip(names, tensors))}
        args, kwargs = arguments_of(e.op, values)
        result = e.op.call(*args, **kwargs)
        return (*tensors_in(result), *(values[name] for name in written))

    return function


def check_autocast(e: Examination) -> None:
    """Checks that the operator gives the same result under autocast, up to lower precision."""
    if any(a.write for a in e.op.arguments):
        return
    if any(tag.startswith("nondeterministic") for tag in e.op.tags):
        return
    # Only float32 samples, since autocast casts between float32 and the lower precision.
    bases = [s for s in e.samples if any(spec.dtype == lamella.float32 for _, spec in s.specs())]
    for sample in itertools.islice(bases, 4):
        expected = e.call(sample)
        if expected.error is not None:
            continue
        call = e.call(sample, around=_autocast_region)
        if call.error is not None:
            e.report("wrong-autocast", f"under autocast: {first_line(call.error)}", sample)
            return
        wanted = [(name, _coarse(value)) for name, value in expected.values()]
        found = difference(wanted, [("", _coarse(value)) for _, value in call.values()])
        if found:
            e.report("wrong-autocast", f"under autocast {found}", sample)
            return


def _autocast_region() -> Any:
    return lamella.autocast("cpu", dtype=lamella.bfloat16)


def _coarse(value: Any) -> Any:
    """Marks floating-point contents as bfloat16, so that they are compared with its tolerance."""
    if isinstance(value, list):
        return [_coarse(item) for item in value]
    if isinstance(value, Plain) and value.dtype in (*_FLOATING, lamella.bfloat16, lamella.float16):
        return dataclasses.replace(value, dtype=lamella.bfloat16)
    return value
