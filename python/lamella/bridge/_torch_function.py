"""Gradients, tangents and batches of operators in PyTorch: one autograd.Function for all chains.

PyTorch differentiates outside of functorch, under functorch, and while it traces;
`register_autograd` serves none of forward mode, functorch and a second derivative."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from lamella.bridge import _arrays, _fake, _library, _torch_values, _transform
from lamella.bridge._library import Operator
from lamella.bridge._torch_plain import keeper, open_torch
from lamella.bridge._transform import Chain

# Its kernels run before functorch takes tensors apart.
FRONT = "FuncTorchDynamicLayerFrontMode"


class Call:
    """One call that torch may differentiate: a chain, and how it is run on tensors of torch."""

    def __init__(self, chain: Chain, run: Callable[[Sequence[torch.Tensor]], Any]) -> None:
        self.chain = chain
        self.run: Any = run
        # After a call of the operator itself: the number of results in each return.
        self.counts: tuple[int, ...] = ()

    def apply(self, xs: Sequence[torch.Tensor]) -> list[Any]:
        active = torch._C._are_functorch_transforms_active()
        if active:
            functorch = torch._C._functorch
            top = functorch.peek_interpreter_stack()
            if top is not None and top.key() == functorch.TransformType.Functionalize:
                raise NotImplementedError(
                    f"{self.chain.operator}: torch.func.functionalize cannot go through it"
                )
        made: Any = (_Transformed if active else _Eager).apply(self, *xs)
        return list(made)

    def backward_operator(self) -> Any:
        if self.chain.transforms or self.chain.operator not in BACKWARDS:
            return None
        return BACKWARDS[self.chain.operator][0]


# For an operator, by its name: the function that gives a chain's gradients by what the derivative
# saves, and torch's operator that this function calls.
BACKWARDS: dict[str, tuple[Callable[..., Any], Any]] = {}


def _can_have_gradient(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def _keep(ctx: Any, call: Call, xs: Sequence[torch.Tensor], output: Sequence[Any]) -> None:
    """Notes in ctx what backward and jvp need."""
    ctx.call = call
    ctx.set_materialize_grads(False)
    ctx.inputs = len(xs)
    saved: tuple[Any, ...] = ()
    if call.chain.transforms:
        ctx.differentiable = [_can_have_gradient(y) for y in output]
    else:
        said = _transform.differentiable_results(call.chain, call.counts)
        ctx.differentiable = [d and _can_have_gradient(y) for d, y in zip(said, output)]
        if call.backward_operator() is not None:
            saved = tuple(output[r] for r in _library.named(call.chain.operator).saved_returns)
    if not all(ctx.differentiable):
        ctx.mark_non_differentiable(
            *(y for d, y in zip(ctx.differentiable, output) if not d and _torch_values.is_tensor(y))
        )
    ctx.save_for_backward(*xs, *saved)
    if saved or forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        ctx.save_for_forward(*xs, *saved)


class _Rules(torch.autograd.Function):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        xs, results = saved[: ctx.inputs], saved[ctx.inputs :]
        known = (
            None if ctx.call.chain.transforms else _transform.differentiable_inputs(ctx.call.chain)
        )
        ins = tuple(
            i
            for i, x in enumerate(xs)
            if ctx.needs_input_grad[i + 1]
            and _can_have_gradient(x)
            and (known is None or i in known)
        )
        outs = tuple(o for o, g in enumerate(grads) if g is not None)
        made: list[Any] = [None] * (len(xs) + 1)
        if ins and outs:
            given = [grads[o] for o in outs]
            backward = ctx.call.backward_operator()
            plain = not torch._C._are_functorch_transforms_active() and not torch.is_grad_enabled()
            if backward is not None and plain:
                with torch._C._AutoDispatchBelowAutograd():
                    found = backward(ctx.call.chain, xs, results, given, outs, ins)
            else:
                found = derived(ctx.call.chain.then("vjp", ins, outs), [*given, *xs])
            for i, g in zip(ins, found):
                made[i + 1] = g
        return tuple(made)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        xs = ctx.saved_tensors[: ctx.inputs]
        ins = tuple(i for i, t in enumerate(tangents[1:]) if t is not None)
        outs = tuple(o for o, d in enumerate(ctx.differentiable) if d)
        made: list[Any] = [None] * len(ctx.differentiable)
        if ins and outs:
            given = [tangents[i + 1] for i in ins]
            found = derived(ctx.call.chain.then("jvp", ins, outs), [*given, *xs])
            for o, t in zip(outs, found):
                made[o] = t
        return tuple(made)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Any, *xs: Any) -> Any:
        dims = in_dims[1:]
        moved = [x if d is None else x.movedim(d, 0) for x, d in zip(xs, dims)]
        batched = tuple(d is not None for d in dims)
        if any(not r.is_tensor for r in _library.named(call.chain.operator).returns):
            raise NotImplementedError(
                f"{call.chain.operator}: has results that are no tensors, which vmap cannot give"
            )
        if _transform.takes_batches(call.chain):
            full = [x if b else x.expand(info.batch_size, *x.shape) for x, b in zip(moved, batched)]
            if len({x.shape for x in full}) == 1:
                result = call.run(full)
                call.counts = call.counts or _transform.counts(call.chain, result)
                made = _transform.flat(result)
                return tuple(made), tuple(0 for _ in made)
        made = derived(call.chain.then("vmap", batched), moved)
        if not call.counts and not call.chain.transforms:
            call.counts = (len(made),)
        return tuple(made), tuple(0 for _ in made)


class _Transformed(_Rules):
    """Under functorch's transforms."""

    @staticmethod
    def forward(call: Any, *xs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            result = call.run(xs)
        call.counts = _transform.counts(call.chain, result)
        return tuple(_transform.flat(result))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _keep(ctx, inputs[0], inputs[1:], output)


class _Eager(_Rules):
    """Outside of them, where this form costs less."""

    @staticmethod
    def forward(ctx: Any, call: Any, *xs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            result = call.run(xs)
        call.run = None  # it may hold the arguments
        call.counts = _transform.counts(call.chain, result)
        output = tuple(_transform.flat(result))
        _keep(ctx, call, xs, output)
        return output


def gradient_functions(name: str, overload: str, slow: Any) -> Any:
    """The forward and backward of an operator for an autograd.Function, in C; None: there are none.
    slow: the backward that may be recorded."""
    _arrays.functions()
    make = ctypes.PyDLL(_library.native()._name).lamella_bridge_torch_gradient
    make.argtypes, make.restype = [ctypes.py_object] * 3, ctypes.py_object
    return make(name, overload, slow)


def bound_method(function: Any) -> Any:
    """A function of C that a class binds as its method."""
    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(function)


def name_apply(operator: str, function: Any) -> None:
    """Lets the kernel in C call what an operator of PyTorch calls."""
    name = ctypes.PyDLL(_library.native()._name).lamella_bridge_torch_apply
    name.argtypes, name.restype = [ctypes.c_char_p, ctypes.py_object], None
    name(operator.encode(), function)


def has_first_order(op: Operator) -> bool:
    has_lists = any(v.is_list for v in (*op.arguments, *op.returns))
    is_one = len(op.returns) == 1 and op.is_differentiable(0)
    return op.full_name in BACKWARDS and is_one and not has_lists


def first_order(op: Operator, overload: Any) -> Callable[..., Any]:
    """The operator with its gradients in eager programs, for has_first_order(). The operator of the
    gradients has a graph where one is wanted."""
    packet = BACKWARDS[op.full_name][1]
    places = [i for i, a in enumerate(op.arguments) if a.is_tensor]
    slots, saves_result = op.slots or (), bool(op.saved_returns)
    raw, gradients, count, keep = overload._op, packet._op, len(op.arguments), keeper()
    by_name = any(a.kwarg_only for a in op.arguments)
    only, only_tensors = count == len(slots) == 1, len(places) == count

    def forward(ctx: Any, *args: Any) -> Any:
        try:
            made = _torch_values.called(overload, op, args) if by_name else raw(*args)
        except Exception as error:
            keep(type(error), error)
            raise
        given = args if only_tensors else [args[i] for i in places]
        ctx.save_for_backward(*given, made) if saves_result else ctx.save_for_backward(*given)
        if not only_tensors:
            ctx.rest = [None if a.is_tensor else v for a, v in zip(op.arguments, args)]
        return made

    def backward(ctx: Any, grad: Any) -> Any:
        saved = ctx.saved_tensors
        if only:
            return gradients(grad, *saved, 1)
        needed = ctx.needs_input_grad
        values = list(ctx.rest) if not only_tensors else [None] * count
        for i, x in zip(places, saved):
            values[i] = x
        needs = 0
        for s, i in enumerate(slots):
            if needed[i]:
                needs |= 1 << s
        made: list[Any] = [None] * count
        if needs == 0:  # what wants a gradient has none
            return tuple(made)
        found = gradients(grad, *values, *saved[len(places) :], needs)
        if len(slots) == 1:
            made[slots[0]] = found
        else:
            found = iter(found)
            for i in slots:
                if needed[i]:
                    made[i] = next(found)
        return tuple(made)

    in_c = gradient_functions(op.name, op.overload, backward)
    rules = {
        "forward": staticmethod(in_c[0] if in_c else forward),
        "backward": staticmethod(in_c[1] if in_c else backward),
    }
    function = type(op.name.partition("::")[2], (torch.autograd.Function,), rules)
    if in_c:  # torch's engine calls it at once
        backward_class: Any = function
        backward_class._backward_cls.apply = bound_method(in_c[1])
    # Function.apply itself asks for functorch, which has no part here.
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply
    return apply


_DERIVED = torch.library.Library("lamella_bridge", "DEF")
_DERIVED.define("call(str chain, Tensor[] tensors) -> Tensor[]")
_derived_op = torch.ops.lamella_bridge.call.default


def derived(chain: Chain, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A chain of transforms as a call of torch's operator, which may be differentiated again."""
    made: list[torch.Tensor] = _derived_op(chain.text(), list(xs))
    return made


def _derived_autograd(text: str, xs: Sequence[torch.Tensor]) -> list[Any]:
    if not is_wanted(xs):
        with torch._C._AutoDispatchBelowAutograd():
            made: list[Any] = _derived_op(text, xs)
            return made
    return Call(_transform.parse(text), lambda ys: _derived_op(text, list(ys))).apply(xs)


def is_wanted(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a call with the tensors is to be recorded."""
    if torch.is_grad_enabled():
        for x in tensors:
            if x.requires_grad:
                return True
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


open_torch()
_library.check(_library.native().lamella_bridge_torch_chains())
_DERIVED.impl("call", _derived_autograd, "Autograd")
_DERIVED.impl("call", _derived_autograd, FRONT)
torch.library.register_fake(
    "lamella_bridge::call", lambda text, xs: _fake.chain(_transform.parse(text), xs), lib=_DERIVED
)


def _derived_batched(text: str, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A call with the batched tensors of torch.autograd.grad(is_grads_batched=True), which are not
    functorch's."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    key = torch._C._parse_dispatch_key("Batched")
    batched = tuple(torch._C._dispatch_keys(x).has(key) for x in xs)
    plain = [torch._remove_batch_dim(x, level, 0, 0) if b else x for x, b in zip(xs, batched)]
    made = derived(_transform.parse(text).then("vmap", batched), plain)
    return [torch._add_batch_dim(y, 0, level) for y in made]


_DERIVED.impl("call", _derived_batched, "Batched")
