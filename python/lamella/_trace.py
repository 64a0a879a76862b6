"""lamella.trace: records the operator calls of a function as a Graph, and checks the Graph."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lamella
from lamella import _C, Tensor
from lamella._graph import Graph
from lamella._nest import Nest

__all__ = ["TracerWarning", "trace"]

if TYPE_CHECKING:
    from lamella.nn import Module

    # Runs the function on tensors: the recorder, the raw graph, and what was returned.
    _Record = Callable[[list[Tensor]], tuple[Any, Any, Nest]]


class TracerWarning(UserWarning):
    """Something that a traced function did is not part of its graph."""


def trace(
    fn: Callable[..., Any],
    *example_inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    check: bool = True,
    check_inputs: Sequence[tuple[Any, ...]] | None = None,
    strict: bool = False,
    decompose: bool = False,
    locations: bool = True,
) -> Graph:
    """Records the operators that fn(*example_inputs, **kwargs) calls, as a Graph.

    fn: a function or module that takes and returns tensors, and lists, tuples and dictionaries of
        them. Other arguments are fixed: the graph accepts only the same values.
    check: runs the function once more, with other values of the same shapes, and compares the graph
        with it; RuntimeError says what differs. check_inputs: tuples of arguments for this.
    strict: reading an element (bool(x), x.item(), x.tolist(), ...) raises; else TracerWarning says
        where a value became a constant.
    decompose: records the operators that a composite operator calls instead of that operator.
    locations: nodes record the file and line that called them.

    Tensors that are not arguments become parameters of the graph if they belong to the traced
    module or require gradients, else constants. Only one trace may run on a thread.
    """
    if not callable(fn):
        raise TypeError(f"trace: expected 'fn' to be callable, got {type(fn).__name__}")
    arguments = Nest.pack((example_inputs, dict(kwargs or {})))
    names = _names(fn, example_inputs, arguments)
    fresh: list[list[Tensor]] = []
    if check and check_inputs is None:
        fresh = [[_other(t) for t in arguments.tensors], [_copy(t) for t in arguments.tensors]]
    elif check and check_inputs is not None:
        for given in check_inputs:
            nest = Nest.pack((tuple(given), dict(kwargs or {})))
            if nest.form != arguments.form:
                raise ValueError("trace: expected 'check_inputs' to nest as the example inputs")
            fresh.append([_copy(t) for t in nest.tensors])

    def record(tensors: list[Tensor]) -> tuple[Any, Any, Nest]:
        recorder = _C._Recorder(decompose, strict, locations)
        seen = set()
        for i, tensor in enumerate(tensors):
            if id(tensor) in seen:  # another tensor object for the same memory
                tensors[i] = tensor = lamella.ops.aten.alias(tensor)
            seen.add(id(tensor))
            recorder.add_input(names[i], tensor)
        for name, tensor in _state(fn):
            recorder.name_parameter(name, tensor)
        args, keywords = arguments.unpack(tensors)
        returned = recorder.run(fn, args, keywords)
        results = Nest.pack(returned, what="trace: expected fn to return")
        return recorder, recorder.finish(results.tensors), results

    gradients = _gradients(fn)
    recorder, raw, results = record(list(arguments.tensors))
    for what, file, line in recorder.escapes():
        _warn(
            f"trace: {what} reads a tensor; its value becomes a constant of the graph", file, line
        )
    del recorder
    graph = Graph(raw, arguments.without_tensors(), results.without_tensors())
    if check:
        with gradients:
            _check(graph, record, fresh, check_inputs is None)
    return graph


def _warn(message: str, file: str, line: int) -> None:
    if file:
        warnings.warn_explicit(message, TracerWarning, file, line)
    else:
        warnings.warn(message, TracerWarning, stacklevel=3)


# ---- Names ---------------------------------------------------------------------------------------


def _module(fn: Any) -> Module | None:
    """The module whose method or call fn is, or None."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = getattr(fn, "__self__", fn)
    if "lamella.nn" not in sys.modules:
        return None
    return fn if isinstance(fn, lamella.nn.Module) else None


def _state(fn: Any) -> Iterator[tuple[str, Tensor]]:
    module = _module(fn)
    if module is None:
        return
    yield from module.named_parameters()
    yield from module.named_buffers()


class _gradients:
    """A context in which the parameters of a module have the gradients that they had when this
    object was made. On exit they get back those from before the context."""

    def __init__(self, fn: Any) -> None:
        module = _module(fn)
        self.rows = [] if module is None else [(p, p.grad) for p in module.parameters()]

    def __enter__(self) -> None:
        self.after = [p.grad for p, _ in self.rows]
        for p, before in self.rows:
            p.grad = before

    def __exit__(self, *error: object) -> None:
        for (p, _), after in zip(self.rows, self.after):
            p.grad = after


def _names(fn: Any, args: tuple[Any, ...], arguments: Nest) -> list[str]:
    """A name for each tensor argument: the name of the function's parameter, then the keys that
    lead to the tensor inside of it."""
    function = fn.forward if _module(fn) is fn and fn is not None else fn
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [f"{parameter.name}_{i}" for i in range(len(args) - len(positional))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
    positional += [f"input{i}" for i in range(len(positional), len(args))]
    names = []
    for place in arguments.places():
        top, *inside = place
        base = positional[inside[0]] if top == 0 else str(inside[0])
        names.append("_".join([base, *map(str, inside[1:])]))
    return names


# ---- Checking ------------------------------------------------------------------------------------


def _copy(tensor: Tensor) -> Tensor:
    with lamella.no_grad():
        copy = tensor.detach().clone()
    return copy.requires_grad_(tensor.requires_grad)


def _other(tensor: Tensor) -> Tensor:
    """Other values that a function of this tensor is likely to accept: its elements in another
    order, and for floating-point and complex tensors scaled down with the same sign."""
    if tensor.device.type == "meta":
        return tensor
    with lamella.no_grad():
        other = lamella.flip(tensor.detach(), list(range(tensor.dim())))
        if tensor.is_floating_point() or tensor.is_complex():
            other = other * 0.8125  # exact in every dtype, so that equal numbers stay equal
        made = lamella.empty_like(tensor.detach()).copy_(other)
    return made.requires_grad_(tensor.requires_grad)


def _check(graph: Graph, record: _Record, fresh: list[list[Tensor]], may_fail: bool) -> None:
    state = lamella.get_rng_state()
    outside = [graph._raw.tensor(i) for i in graph._raw.mutated() if i not in graph._raw.inputs()]
    kept = [_copy(t) for t in outside]

    def restore() -> None:
        with lamella.no_grad():
            for tensor, before in zip(outside, kept):
                tensor.copy_(before)

    try:
        for tensors in fresh:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lamella.manual_seed(0)
                given = [_copy(t) for t in tensors]
                try:
                    _, again, results = record(list(given))
                except Exception:
                    # A function may reject the values of _other(); the example's own come last.
                    if may_fail and tensors is not fresh[-1]:
                        continue
                    raise
            restore()
            difference = graph._raw.difference(again, False)
            if difference:
                raise RuntimeError(
                    "trace: expected fn to call the same operators each time, got another graph "
                    f"in a second run: {difference}"
                )
            lamella.manual_seed(0)
            mine = [_copy(t) for t in tensors]
            outputs = graph._raw.run(mine)
            restore()
            _compare(graph, results, outputs, zip(given, mine))
            if may_fail:
                break
    finally:
        restore()
        lamella.set_rng_state(state)


def _compare(
    graph: Graph, results: Nest, outputs: list[Tensor], inputs: Iterable[tuple[Tensor, Tensor]]
) -> None:
    if results.form != graph._results.form:
        raise RuntimeError(
            "trace: expected fn to return the same each time, got "
            f"{results.describe()} in a second run, and {graph._results.describe()} before"
        )
    rows = [(f"output {i}", a, b) for i, (a, b) in enumerate(zip(results.tensors, outputs))]
    rows += [(f"input {i}", a, b) for i, (a, b) in enumerate(inputs)]
    for what, expected, got in rows:
        if expected is None or got is None:
            continue
        text = _difference(expected, got)
        if text:
            raise RuntimeError(
                f"trace: expected the graph to give what fn gives, got another {what}: {text}"
            )
        if expected.requires_grad and not got.requires_grad:
            warnings.warn(
                f"trace: {what} of fn requires gradients and the graph's does not: a graph cannot "
                "record a Function written in Python",
                TracerWarning,
                stacklevel=5,
            )


def _difference(expected: Tensor, got: Tensor) -> str:
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return (
            f"{expected.dtype}{list(expected.shape)} and {got.dtype}{list(got.shape)} of the graph"
        )
    if expected.device.type == "meta" or expected.numel() == 0:
        return ""
    a, b = expected.detach(), got.detach()
    if not (a.is_floating_point() or a.is_complex()):
        return "" if bool((a == b).all()) else "values differ"
    wide = lamella.complex128 if a.is_complex() else lamella.float64
    a, b = a.to(wide), b.to(wide)
    same = (a == b) | ((a != a) & (b != b))
    if bool(same.all()):
        return ""
    gap = (a - b).abs()
    size = a.abs().clamp(min=1.0)
    tolerance = 64 * lamella.finfo(expected.dtype).eps
    wrong = ~(same | (gap <= tolerance * size))
    if not bool(wrong.any()):
        return ""
    worst = gap[wrong].max().item()
    return f"values differ by up to {worst:.3g}" if math.isfinite(worst) else "values differ"
