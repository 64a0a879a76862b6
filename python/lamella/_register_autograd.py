"""Gradients written in Python for operators: lamella.library.register_autograd()."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

from lamella import _C, Tensor
from lamella.autograd.function import Function


def _flatten(values: Iterable[Any]) -> tuple[list[Any], _Plan]:
    """The tensors among the values and in lists among them, and the plan by which _rebuild() puts
    the values together again."""
    tensors: list[Any] = []
    plan: _Plan = []
    for value in values:
        if isinstance(value, Tensor):
            plan.append(len(tensors))
            tensors.append(value)
        elif (
            isinstance(value, (list, tuple))
            and value
            and all(each is None or isinstance(each, Tensor) for each in value)
        ):
            start = len(tensors)
            tensors.extend(value)
            plan.append((start, len(tensors), type(value)))
        else:
            plan.append(_Plain(value))
    return tensors, plan


class _Plain:
    """A value that is not a tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


# An entry for each value: the value in a _Plain, the index of its tensor, or for a list of tensors
# the begin and end index and the type of the list.
_Plan = list[Union[_Plain, int, tuple[int, int, type]]]


def _rebuild(plan: _Plan, tensors: Sequence[Any]) -> list[Any]:
    values: list[Any] = []
    for entry in plan:
        if isinstance(entry, _Plain):
            values.append(entry.value)
        elif isinstance(entry, int):
            values.append(tensors[entry])
        else:
            start, end, kind = entry
            values.append(kind(tensors[start:end]))
    return values


class _Call:
    """The values of one call of the operator besides its tensors, passed through Function.apply."""

    __slots__ = ("keywords", "output_plan", "plan", "single")

    def __init__(self, plan: _Plan, keywords: dict[str, Any]) -> None:
        self.plan = plan
        self.keywords = keywords
        self.output_plan: _Plan = []
        self.single = False


def _spread(name: str, plan: _Plan, grads: Any) -> list[Any]:
    """Flattens the gradients of the operator's arguments to a gradient for each tensor."""
    grads = list(grads) if isinstance(grads, tuple) else [grads]
    while len(grads) > len(plan) and grads[-1] is None:
        grads.pop()
    # Arguments that are no tensors may be left out at the end: they may be defaults.
    if all(isinstance(entry, _Plain) for entry in plan[len(grads) :]):
        grads += [None] * (len(plan) - len(grads))
    if len(grads) != len(plan):
        raise RuntimeError(
            f"{name}: expected 'backward' to return {len(plan)} gradients, one for each argument, "
            f"got {len(grads)}"
        )
    flat: list[Any] = []
    for i, (entry, each) in enumerate(zip(plan, grads)):
        if isinstance(entry, _Plain):
            if each is not None:
                raise RuntimeError(
                    f"{name}: expected gradient {i} to be None, as argument {i} is not a Tensor, "
                    f"got {type(each).__name__}"
                )
        elif isinstance(entry, int):
            flat.append(each)
        else:
            start, end, _ = entry
            count = end - start
            if each is None:
                each = [None] * count
            if not isinstance(each, (list, tuple)) or len(each) != count:
                raise RuntimeError(
                    f"{name}: expected gradient {i} to be a list of {count}, as argument {i} is one"
                )
            flat.extend(each)
    return flat


def make_kernel(
    op: Any, name: str, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
) -> tuple[Callable[..., Any], type[Function]]:
    """The kernel for the key Autograd, which wraps the call below autograd in a Function; and a
    Function class with the plain backward, for calls without lists of tensors.
    """

    arguments = op._schema.arguments
    positional = [each.default_value for each in arguments if not each.kwarg_only]
    by_name = {each.name: each.default_value for each in arguments if each.kwarg_only}

    def forward(ctx: Any, call: _Call, *tensors: Any) -> tuple[Any, ...]:
        args = _rebuild(call.plan, tensors)
        output = _C._call_below_autograd(op, args, call.keywords)
        if setup_context is not None:
            needs = ctx.needs_input_grad[1:]
            ctx.needs_input_grad = tuple(_rebuild(_flags(call.plan), needs))
            # The operator's defaults stand for what the caller left out.
            inputs = (*args, *positional[len(args) :])
            if by_name:
                setup_context(
                    ctx=ctx,
                    inputs=inputs,
                    keyword_only_inputs=by_name | call.keywords,
                    output=output,
                )
            else:
                setup_context(ctx=ctx, inputs=inputs, output=output)
        ctx._call = call
        call.single = not isinstance(output, (tuple, list))
        flat, call.output_plan = _flatten((output,) if call.single else output)
        return tuple(flat)

    def run_backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        call: _Call = ctx._call
        given = _rebuild(call.output_plan, grads)
        given = [None if isinstance(e, _Plain) else g for e, g in zip(call.output_plan, given)]
        return (None, *_spread(name, call.plan, backward(ctx, *given)))

    label = name.replace("::", "_").replace(".", "_")
    make: Any = type(Function)
    generated = make(
        f"GeneratedBackwardFor_{label}",
        (Function,),
        {
            "__module__": "lamella.library",
            "forward": staticmethod(forward),
            "backward": staticmethod(run_backward),
        },
    )
    apply = generated.apply

    def kernel(*args: Any, **keywords: Any) -> Any:
        tensors, plan = _flatten(args)
        recorded = _C.is_grad_enabled() and any(
            each is not None and each.requires_grad for each in tensors
        )
        # Calls with tangents go through the Function, which raises since it has no jvp.
        if not recorded and not any(_C._has_tangent(each) for each in tensors):
            return _C._call_below_autograd(op, args, keywords)
        call = _Call(plan, keywords)
        flat = apply(call, *tensors)
        output = _rebuild(call.output_plan, flat)
        return output[0] if call.single else tuple(output)

    direct = make(
        f"GeneratedBackwardFor_{label}",
        (Function,),
        {
            "__module__": "lamella.library",
            "_operator_name": name,
            "backward": staticmethod(backward),
        },
    )
    return kernel, direct


def _flags(plan: _Plan) -> _Plan:
    """The plan for one flag in place of each tensor; values that are not tensors become False."""
    return [_Plain(False) if isinstance(entry, _Plain) else entry for entry in plan]
