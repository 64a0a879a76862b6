"""Operators of Lamella as operators of PyTorch: what torch needs of each beside its kernel.

Note [The kernels of a bridged operator]
  CPU        liblamella_bridge.so calls Lamella; where an argument has no stable form, such as Scalar,
             a kernel in Python does.
  fake       shapes by the operator's policy where they are symbolic, else by its Meta kernel.
  Autograd   an autograd.Function around the operator, if a gradient is wanted. Its backward, jvp and
             vmap call `lamella_bridge::call`, one operator for all chains (_transform.py), which has
             the same Function around it: so every order of every transform is there.
  FuncTorchDynamicLayerFrontMode   the same Function, before functorch takes the tensors apart.
  Autocast   casts by the operator's class.
  A view is a composite: its geometry is that of the Meta kernel, and torch's as_strided makes it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

import lamella
from lamella.bridge import _fake, _library, _transform
from lamella.bridge._library import Namespaces, Operator
from lamella.bridge._transform import Chain, Named

_FRONT = "FuncTorchDynamicLayerFrontMode"
_blocks: dict[str, torch.library.Library] = {}
_loaded: dict[str, Namespaces] = {}


def _is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def _frozen(value: Any, type_: str) -> Any:
    """A value of an argument that is no tensor, as a literal that a chain can hold."""
    if isinstance(value, torch.dtype):
        return Named("dtype", str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return Named("device", str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return Named("name", str(value).rpartition(".")[2])
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(v, type_) for v in value)
    for symbolic, plain in (
        (torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool),
    ):  # fmt: skip
        if isinstance(value, symbolic):
            return plain(value)
    return value


# ---- Tensors of both kinds ----


def to_lamella(x: torch.Tensor) -> Any:
    x = x.detach()
    if x.is_meta:
        made = lamella.empty_strided(
            tuple(x.shape), x.stride(), dtype=getattr(lamella, str(x.dtype)[6:]), device="meta"
        )
        return made
    return lamella.from_dlpack(x.resolve_conj().resolve_neg())


def to_torch(y: Any, taken: set[int], contiguous: bool = False) -> torch.Tensor:
    """A result as a tensor of torch, copied where it shares memory with one in `taken`."""
    y = y.detach().resolve_conj().resolve_neg()
    if y.device.type == "meta":
        return torch.empty_strided(
            tuple(y.shape), y.stride(), dtype=getattr(torch, repr(y.dtype)[8:]), device="meta"
        )
    place = y.untyped_storage().data_ptr()
    if place in taken or (contiguous and not y.is_contiguous()):
        y = y.clone(memory_format=lamella.contiguous_format)
        place = y.untyped_storage().data_ptr()
    if y.numel():
        taken.add(place)
    return torch.from_dlpack(y)


def _memory_of(tensors: Sequence[torch.Tensor]) -> set[int]:
    return {x.untyped_storage().data_ptr() for x in tensors if x.numel() and not x.is_meta}


def run_chain(chain: Chain, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    taken = _memory_of(xs)
    made = _transform.function(chain)([to_lamella(x) for x in xs])
    return [to_torch(y, taken, contiguous=True) for y in made if isinstance(y, lamella.Tensor)]


def _python_kernel(op: Operator) -> Callable[..., Any]:
    """The CPU and Meta kernel of an operator in Python."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        chain, tensors = _transform.split(op, values, _is_tensor, _frozen)
        taken = _memory_of(tensors)
        given = [to_lamella(x) for x in tensors]
        result = op.apply(_transform.filled(chain.template, given, _transform.thawed))
        written = {r.alias: v for r, v in zip(op.arguments, values) if r.is_write}
        parts = [result] if len(op.returns) == 1 else list(result or ())
        out = []
        for r, part in zip(op.returns, parts):
            if r.is_write:
                out.append(written[r.alias])
            elif r.is_tensor:
                items = part if isinstance(part, (list, tuple)) else [part]
                made = [y if y is None else to_torch(y, taken) for y in items]
                out.append(made if isinstance(part, (list, tuple)) else made[0])
            else:
                out.append(part)
        return out[0] if len(out) == 1 else tuple(out) if out else None

    return kernel


# ---- Gradients, tangents and batches ----


class Call:
    """One call that torch may differentiate: a chain, and how it is run on tensors of torch."""

    def __init__(self, chain: Chain, run: Callable[[Sequence[torch.Tensor]], Any]) -> None:
        self.chain, self.run = chain, run
        # Of an operator's own call: how many results each return has, once it ran.
        self.counts: tuple[int, ...] = ()

    def apply(self, xs: Sequence[torch.Tensor]) -> list[Any]:
        active = torch._C._are_functorch_transforms_active()
        made: Any = (_Transformed if active else _Eager).apply(self, *xs)
        return list(made)

    def backward_operator(self) -> Any:
        return None if self.chain.transforms else _BACKWARDS.get(self.chain.operator)


# Operators that compute gradients by what a derivative saves, by the name of their operator.
_BACKWARDS: dict[str, Any] = {}


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
            *(y for d, y in zip(ctx.differentiable, output) if not d and _is_tensor(y))
        )
    ctx.save_for_backward(*xs, *saved)
    if saved or forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        ctx.save_for_forward(*xs, *saved)


class _Rules(torch.autograd.Function):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        xs, results = saved[: ctx.inputs], saved[ctx.inputs :]
        known = None if ctx.call.chain.transforms else _transform.differentiable_inputs(ctx.call.chain)
        ins = tuple(
            i
            for i, x in enumerate(xs)
            if ctx.needs_input_grad[i + 1] and _can_have_gradient(x) and (known is None or i in known)
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
        made = derived(call.chain.then("vmap", batched), moved)
        if not call.counts and not call.chain.transforms:
            call.counts = (len(made),)
        return tuple(made), tuple(0 for _ in made)


class _Transformed(_Rules):
    """Under functorch's transforms."""

    @staticmethod
    def forward(call: Any, *xs: Any) -> Any:  # type: ignore[override]
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
    def forward(ctx: Any, call: Any, *xs: Any) -> Any:  # type: ignore[override]
        with torch._C._AutoDispatchBelowAutograd():
            result = call.run(xs)
        call.counts = _transform.counts(call.chain, result)
        output = tuple(_transform.flat(result))
        _keep(ctx, call, xs, output)
        return output


_DERIVED = torch.library.Library("lamella_bridge", "DEF")
_DERIVED.define("call(str chain, Tensor[] tensors) -> Tensor[]")
_derived_op = torch.ops.lamella_bridge.call.default


def derived(chain: Chain, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A chain of transforms as a call of torch's operator, which may be differentiated again."""
    made: list[torch.Tensor] = _derived_op(chain.text(), list(xs))
    return made


def _derived_autograd(text: str, xs: Sequence[torch.Tensor]) -> list[Any]:
    if not _is_wanted(xs):
        with torch._C._AutoDispatchBelowAutograd():
            made: list[Any] = _derived_op(text, xs)
            return made
    return Call(_transform.parse(text), lambda ys: _derived_op(text, list(ys))).apply(xs)


def _tensors_of(args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for v in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(v, torch.Tensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += [x for x in v if isinstance(x, torch.Tensor)]
    return found


def _is_wanted(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a call with the tensors is to be recorded."""
    if forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


_DERIVED.impl("call", lambda text, xs: run_chain(_transform.parse(text), xs), "CPU")
_DERIVED.impl("call", lambda text, xs: _fake.chain(_transform.parse(text), xs), "Meta")
_DERIVED.impl("call", _derived_autograd, "Autograd")
_DERIVED.impl("call", _derived_autograd, _FRONT)
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


# ---- Registration ----


def _kept_error(error: RuntimeError) -> Exception:
    """The error of the kind that Lamella's kernel raised; torch makes each a RuntimeError."""
    status = _library.native().lamella_bridge_torch_status()
    return error if status in (0, 1) else _library.error_of(status, str(error))


def _functional_twin(op: Operator, everything: Sequence[Operator]) -> Operator | None:
    """The operator that computes what an in-place one writes: with its name less the `_`."""
    if not op.name.endswith("_") or sum(a.is_write for a in op.arguments) != 1:
        return None
    for other in everything:
        same = [(a.name, a.type) for a in other.arguments] == [
            (a.name, a.type) for a in op.arguments
        ]
        if other.name == op.name[:-1] and same and not other.writes and len(other.returns) == 1:
            return other
    return None


def _autograd_kernel(op: Operator, overload: Any) -> Callable[..., Any]:
    short = op.name.partition("::")[2]
    chains: dict[Any, Chain] = {}

    def run(chain: Chain, tensors: Sequence[torch.Tensor]) -> Any:
        return _called(overload, op, _transform.filled(chain.template, tensors, _thawed))

    def below(args: Any, kwargs: Any) -> Any:
        try:
            with torch._C._AutoDispatchBelowAutograd():
                return overload(*args, **kwargs)
        except RuntimeError as error:
            raise _kept_error(error) from None

    def functional(*args: Any, **kwargs: Any) -> Any:
        if not _is_wanted(_tensors_of(args, kwargs)):
            return below(args, kwargs)
        key = None if kwargs else _key_of(args)
        chain = chains.get(key) if key is not None else None
        if chain is None:
            chain, tensors = _transform.split(op, op.bound(args, kwargs), _is_tensor, _frozen)
            if key is not None and len(chains) < 1024:
                chains[key] = chain
        else:
            tensors = _tensors_of(args)
        call = Call(chain, lambda ys: run(chain, ys))
        try:
            made = call.apply(tensors)
        except RuntimeError as error:
            raise _kept_error(error) from None
        return _rebuilt(op, made)

    def writing(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        written = [v for a, v in zip(op.arguments, values) if a.is_write]
        if _is_wanted(_tensors_of(args, kwargs)):
            raise NotImplementedError(
                f"{short}: expected no argument to require gradients or to be transformed where "
                "it is written; call it without, or under no_grad()"
            )
        result = below(args, kwargs)
        flat = [x for v in written for x in (v if isinstance(v, (list, tuple)) else [v])]
        torch.autograd.graph.increment_version([x for x in flat if x is not None])
        return result

    return writing if op.writes else functional


_PLAIN = (int, float, bool, str, complex, type(None))


def _key_of(args: Sequence[Any]) -> Any:
    """What a call's chain depends on, where that is cheap to say; None: it is not."""
    key: list[Any] = []
    for v in args:
        if isinstance(v, torch.Tensor):
            key.append(True)
        elif type(v) in _PLAIN:
            key.append((type(v), v if v != 0 else str(v)))  # -0.0 is another number than 0.0
        elif isinstance(v, (list, tuple)) and all(type(x) in _PLAIN for x in v):
            key.append(tuple((type(x), x) for x in v))
        else:
            return None
    return tuple(key)


def _called(overload: Any, op: Operator, values: Sequence[Any]) -> Any:
    positional = [v for a, v in zip(op.arguments, values) if not a.kwarg_only]
    named = {a.name: v for a, v in zip(op.arguments, values) if a.kwarg_only}
    return overload(*positional, **named)


def _thawed(entry: Named) -> Any:
    return torch.device(entry.name) if entry.kind == "device" else getattr(torch, entry.name)


def _rebuilt(op: Operator, made: list[Any]) -> Any:
    """Opened results with their lists; only the last return may be a list of unknown length."""
    lists = [r.is_list for r in op.returns]
    if not any(lists):
        return made[0] if len(op.returns) == 1 else tuple(made) if made else None
    if sum(lists) != 1:
        raise NotImplementedError(
            f"{op.name}: expected at most one of its returns to be a list where gradients are "
            "wanted"
        )
    at = lists.index(True)
    size = len(made) - len(lists) + 1
    parts = [*made[:at], made[at : at + size], *made[at + size :]]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _overload_of(op: Operator) -> Any:
    space, _, name = op.name.partition("::")
    return getattr(getattr(getattr(torch.ops, space), name), op.overload or "default")


def _view(op: Operator) -> Callable[..., Any]:
    """A view, as a composite of as_strided."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        chain, tensors = _transform.split(op, values, _is_tensor, _frozen)
        metas = [
            lamella.empty_strided(
                tuple(map(int, x.shape)), tuple(map(int, x.stride())),
                dtype=getattr(lamella, str(x.dtype)[6:]), device="meta",
            )
            for x in tensors
        ]  # fmt: skip
        result = op.apply(_transform.filled(chain.template, metas, _transform.thawed))
        bases = {a.alias: v for a, v in zip(op.arguments, values) if a.alias}
        of_base = {a.alias: i for i, a in enumerate(op.arguments) if a.alias}
        parts = [result] if len(op.returns) == 1 else list(result)
        out = []
        for r, part in zip(op.returns, parts):
            base = bases.get(r.alias)
            if base is None or not isinstance(base, torch.Tensor):
                raise NotImplementedError(f"{op.name}: expected each result to be a view")
            place = chain.template[of_base[r.alias]]
            meta = metas[place.numbers[0]]
            made = []
            for y in part if isinstance(part, (list, tuple)) else [part]:
                if y._base is not meta or y.dtype != meta.dtype:
                    raise NotImplementedError(
                        f"{op.name}: expected a view of '{r.alias}' as its schema says, got a new "
                        "tensor or one of another dtype"
                    )
                made.append(
                    base.as_strided(
                        tuple(y.shape), y.stride(), base.storage_offset() + y.storage_offset()
                    )
                )
            out.append(made if isinstance(part, (list, tuple)) else made[0])
        return out[0] if len(out) == 1 else tuple(out)

    return kernel


def _define_write(op: Operator, block: torch.library.Library, twin: Operator | None) -> None:
    """An operator that returns what it writes, which torch cannot trace, as a composite of one that
    returns only what is new."""
    _, _, short = op.name.partition("::")
    public = f"{short}.{op.overload}" if op.overload else short
    name = f"_lamella_write_{short}" + (f"_{op.overload}" if op.overload else "")
    new = [r for r in op.returns if not r.is_write]
    before, _, _ = op.schema.partition("::")[2].partition("(")
    arguments = op.schema.partition("::")[2][len(before) :].rpartition(" -> ")[0]
    block.define(f"{name}{arguments} -> ({', '.join(r.type for r in new)})")
    inner = getattr(getattr(torch.ops, op.name.partition("::")[0]), name).default
    space = op.name.partition("::")[0]
    if not _implement("implement", op, f"{space}::{name}", is_write=True):
        kernel = _python_kernel(op)
        block.impl(name, lambda *args, **kwargs: _only_new(op, kernel(*args, **kwargs)), "CPU")
    fake = _fake.of_operator(op)

    def fake_new(*args: Any, **kwargs: Any) -> Any:
        return _only_new(op, fake(*args, **kwargs))

    block.impl(name, fake_new, "Meta")
    torch.library.register_fake(f"{space}::{name}", fake_new, lib=block)
    kernel_of_autograd = _autograd_kernel(op, inner)
    block.impl(name, kernel_of_autograd, "Autograd")
    block.impl(name, kernel_of_autograd, _FRONT)

    def composite(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        written = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
        if twin is not None and _is_wanted(_tensors_of(values)):
            # The twin may save what is written next.
            before = [v.clone() if a.is_write else v for a, v in zip(op.arguments, values)]
            (only,) = written.values()
            return only.copy_(_called(_overload_of(twin), op, before))
        made = _called(inner, op, values)
        fresh = iter([made] if len(new) == 1 else list(made or ()))
        out = [written[r.alias] if r.is_write else next(fresh) for r in op.returns]
        return out[0] if len(out) == 1 else tuple(out)

    block.impl(public, composite, "CompositeImplicitAutograd")
    block.impl(public, composite, _FRONT)


def _only_new(op: Operator, result: Any) -> Any:
    parts = [result] if len(op.returns) == 1 else list(result)
    made = [x for r, x in zip(op.returns, parts) if not r.is_write]
    return made[0] if len(made) == 1 else tuple(made) if made else None


def _define_backward(op: Operator, block: torch.library.Library) -> None:
    """The operator of an operator's gradients by what its derivative saves, where it can be had."""
    if not op.has_backward or op.writes or any(r.is_list for r in op.returns):
        return
    if any("Tensor?" in a.type and a.is_list for a in op.arguments):
        return
    space, _, short = op.name.partition("::")
    name = f"_lamella_backward_{short}" + (f"_{op.overload}" if op.overload else "")
    types = ", ".join(f"{a.type} a{i}" for i, a in enumerate(op.arguments))
    block.define(
        f"{name}(Tensor[] grads, int given, {types + ', ' if types else ''}Tensor[] results, "
        "int needs) -> Tensor[]"
    )
    if not _implement("backward", op, f"{space}::{name}"):
        return
    packet = getattr(getattr(torch.ops, space), name).default
    slots = op.slots or ()

    def wanted(values: Sequence[Any], needs: int) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for s, i in enumerate(slots):
            if needs >> s & 1 and values[i] is not None:
                found += values[i] if isinstance(values[i], (list, tuple)) else [values[i]]
        return found

    def fake(grads: Any, given: int, *rest: Any) -> list[torch.Tensor]:
        return [x.new_empty(x.shape) for x in wanted(rest[:-2], rest[-1])]

    def autograd(*args: Any) -> Any:
        if not _is_wanted(_tensors_of(args)):
            with torch._C._AutoDispatchBelowAutograd():
                return packet(*args)
        return through_chain(*args)

    def through_chain(*args: Any) -> Any:
        # A second derivative goes through the chain, which computes the first anew.
        grads, given, *values = args
        values, needs = values[:-2], values[-1]
        chain, xs = _transform.split(op, values, _is_tensor, _frozen)
        numbers = [
            n
            for s, i in enumerate(slots)
            if needs >> s & 1 and isinstance(chain.template[i], _transform.Place)
            for n in chain.template[i].numbers
        ]
        outs = tuple(r for r in range(len(op.returns)) if given >> r & 1)
        return derived(chain.then("vjp", tuple(numbers), outs), [*grads, *xs])

    torch.library.register_fake(f"{space}::{name}", fake, lib=block)
    block.impl(name, autograd, "Autograd")
    block.impl(name, autograd, _FRONT)
    block.impl(name, through_chain, "Batched")

    def backward(
        chain: Chain, xs: Any, results: Any, grads: Any, outs: tuple[int, ...], ins: tuple[int, ...]
    ) -> list[torch.Tensor]:
        needs, places, all_wanted = plan_of(chain, ins)
        values = _transform.filled(chain.template, xs, _thawed)
        made = packet(list(grads), sum([1 << o for o in outs]), *values, list(results), needs)
        if all_wanted:
            return made
        found = dict(zip(places, made))
        return [found[i] for i in ins]

    @functools.lru_cache(maxsize=1024)
    def plan_of(chain: Chain, ins: tuple[int, ...]) -> tuple[int, tuple[int, ...], bool]:
        needs, places = 0, []
        for s, i in enumerate(slots):
            entry = chain.template[i]
            if isinstance(entry, _transform.Place) and any(n in ins for n in entry.numbers):
                needs |= 1 << s
                places += entry.numbers
        return needs, tuple(places), tuple(places) == ins

    _BACKWARDS[op.full_name] = backward


def _implement(what: str, op: Operator, torch_name: str, is_write: bool = False) -> bool:

    is_done = ctypes.c_int32()
    function = getattr(_library.native(), f"lamella_bridge_torch_{what}")
    _library.check(
        function(
            op.name.encode(), op.overload.encode(), torch_name.encode(), b"CPU", int(is_write),
            ctypes.byref(is_done),
        )
    )  # fmt: skip
    return bool(is_done.value)


# What autocast does to floating-point arguments of each class.
def _autocast(op: Operator, overload: Any, device: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        lower = torch.get_autocast_dtype(device)
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device.upper()}"))
        ):
            values = [*args, *kwargs.values()]
            tensors = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v])]
            cast = _fake.autocast_dtype(op.autocast, lower, tensors)

            def one(x: Any) -> Any:
                if isinstance(x, (list, tuple)):
                    return [one(v) for v in x]
                eligible = (
                    isinstance(x, torch.Tensor) and x.is_floating_point()
                    and x.device.type == device and x.dtype != torch.float64
                )  # fmt: skip
                return x.to(cast) if eligible and cast is not None else x

            return overload(*map(one, args), **{k: one(v) for k, v in kwargs.items()})

    return kernel


def _register(op: Operator, everything: Sequence[Operator]) -> None:
    space, _, short = op.name.partition("::")
    name = f"{short}.{op.overload}" if op.overload else short
    block = _blocks.setdefault(space, torch.library.Library(space, "FRAGMENT"))
    tags = (torch.Tag.pt2_compliant_tag,)
    block.define(op.schema.partition("::")[2], tags=tags)
    overload = _overload_of(op)
    if op.is_view:
        block.impl(name, _view(op), "CompositeImplicitAutograd")
        block.impl(name, _view(op), _FRONT)
        return
    if any(r.is_write for r in op.returns):
        _define_write(op, block, _functional_twin(op, everything))
        return
    if not _implement("implement", op, op.full_name):
        block.impl(name, _python_kernel(op), "CPU")
    fake = _fake.of_operator(op)
    block.impl(name, fake, "Meta")
    torch.library.register_fake(op.full_name, fake, lib=block)
    _define_backward(op, block)
    kernel = _autograd_kernel(op, overload)
    block.impl(name, kernel, "Autograd")
    block.impl(name, kernel, _FRONT)
    if op.autocast:
        block.impl(name, _autocast(op, overload, "cpu"), "AutocastCPU")


@functools.cache
def _open() -> None:
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    _library.check(_library.native().lamella_bridge_torch_open(path.encode()))


def load(path: str) -> Namespaces:
    if path not in _loaded:
        _open()
        found = _library.operators(path)
        _library.remember(found)
        for op in found:
            _register(op, found)
        _loaded[path] = _library.namespaces(
            path,
            found,
            lambda name, _: getattr(getattr(torch.ops, name.partition("::")[0]), name.partition("::")[2]),
        )
    return _loaded[path]
