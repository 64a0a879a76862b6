"""Operators of Lamella as operators of PyTorch: what torch needs of each beside its kernel.

Note [The kernels of a bridged operator]
  CPU        liblamella_bridge.so calls Lamella; where an argument has no stable form, such as
             Scalar, a kernel in Python does, or gives its parts to one there.
  fake       shapes by the operator's policy where they are symbolic, else by its Meta kernel.
  Autograd   the kernel for the CPU, where nothing else is wanted: Note [Plain calls] in
             lamella/bridge/torch_autograd.cpp. Of other calls `_lamella_recorded_op` puts an
             autograd.Function around the operator, if a gradient is wanted. Its backward, jvp and
             vmap call `lamella_bridge::call`, one operator for all chains (_transform.py),
             which has the same Function around it: so every order of every transform is there.
  FuncTorchDynamicLayerFrontMode   the same Function, before functorch takes the tensors apart.
  Autocast   casts by the operator's class. A view is a composite: its geometry is that of the
  Meta kernel, and torch's as_strided makes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from lamella.bridge import _fake, _library, _transform
from lamella.bridge._library import Namespaces, Operator
from lamella.bridge._torch_function import (
    BACKWARDS,
    FRONT,
    Call,
    derived,
    first_order,
    has_first_order,
    is_wanted,
    name_apply,
)
from lamella.bridge._torch_kernels import implement, python_kernel
from lamella.bridge._torch_plain import keeper, open_torch
from lamella.bridge._torch_values import (
    called,
    frozen,
    is_tensor,
    tensors_of,
    thawed,
)
from lamella.bridge._transform import Chain

_blocks: dict[str, torch.library.Library] = {}
_loaded: dict[str, Namespaces] = {}


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


def _implement_autograd(
    op: Operator, overload: Any, block: torch.library.Library, name: str,
    recorded_name: str | None = None, kernel: Callable[..., Any] | None = None,
) -> None:  # fmt: skip
    """recorded_name: of the operator that C's kernel calls where a call is not plain. kernel: for
    the CPU, if it is in Python."""
    short = op.name.partition("::")[2]
    chains: dict[Any, Chain] = {}
    raw, redispatch = overload._op, overload.redispatch
    is_grad_enabled, any_wants = torch.is_grad_enabled, torch._C._any_requires_grad
    are_transforms_active = torch._C._are_functorch_transforms_active
    below_autograd, cpu = torch._C._after_autograd_keyset, torch._C.DispatchKey.CPU
    keep = keeper()

    def run(chain: Chain, tensors: Sequence[torch.Tensor]) -> Any:
        return called(overload, op, _transform.filled(chain.template, tensors, thawed))

    def below(args: Any, kwargs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return raw(*args, **kwargs)

    def functional(keys: Any, *args: Any, **kwargs: Any) -> Any:
        # Nothing is wanted of most calls, so this asks in as few steps as it can.
        if forward_ad._current_level < 0 and not (is_grad_enabled() and any_wants(*args, **kwargs)):
            left = keys & below_autograd
            if kernel is not None and left.highestPriorityTypeId() == cpu:
                return kernel(*args, **kwargs)  # what torch would call next
            return redispatch(left, *args, **kwargs)
        return recorded(*args, **kwargs)

    def from_c(*args: Any) -> Any:
        try:
            if forward_ad._current_level < 0:
                if not (is_grad_enabled() and any_wants(*args)):
                    with torch._C._AutoDispatchBelowAutograd():
                        return called(overload, op, args)
            return with_values(args)
        except Exception as error:
            keep(type(error), error)
            raise

    def recorded(*args: Any, **kwargs: Any) -> Any:
        return with_values(op.bound(args, kwargs))

    def with_values(values: Sequence[Any]) -> Any:
        key = _key_of(values)
        chain = chains.get(key) if key is not None else None
        if chain is None:
            chain, tensors = _transform.split(op, values, is_tensor, frozen)
            if key is not None and len(chains) < 1024:
                chains[key] = chain
        else:
            tensors = tensors_of(values)
        if are_transforms_active():
            call = Call(chain, lambda ys: run(chain, ys))
        else:  # the Function is given the very tensors
            call = Call(chain, lambda _: called(overload, op, values))
        return _rebuilt(op, call.apply(tensors))

    def writing(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        written = [v for a, v in zip(op.arguments, values) if a.is_write]
        if is_wanted(tensors_of(args, kwargs)):
            raise NotImplementedError(
                f"{short}: expected no argument to require gradients or to be transformed where "
                "it is written; call it without, or under no_grad()"
            )
        result = below(args, kwargs)
        flat = [x for v in written for x in (v if isinstance(v, (list, tuple)) else [v])]
        torch.autograd.graph.increment_version([x for x in flat if x is not None])
        return result

    if op.writes:
        block.impl(name, writing, "Autograd")
        block.impl(name, writing, FRONT)
        return
    if recorded_name is None:
        block.impl(name, functional, "Autograd", with_keyset=True)
    else:
        types = ", ".join(f"{a.type} a{i}" for i, a in enumerate(op.arguments))
        schema = f"({types}) -> ({', '.join(r.type for r in op.returns)})"
        block.define(recorded_name + schema)
        block.impl(recorded_name, from_c, "CompositeImplicitAutograd")
        if has_first_order(op):
            eager = f"{recorded_name}_eager"
            block.define(eager + schema)
            apply = first_order(op, overload)
            block.impl(eager, apply, "CompositeImplicitAutograd")
            name_apply(f"{op.name.partition('::')[0]}::{eager}", apply)
    block.impl(name, recorded, FRONT)


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
        chain, tensors = _transform.split(op, values, is_tensor, frozen)
        parts = _transform.metas(chain, [_fake.meta_of(x, int) for x in tensors])
        bases = {a.alias: v for a, v in zip(op.arguments, values) if a.alias}
        of_base = {a.alias: i for i, a in enumerate(op.arguments) if a.alias}
        out = []
        for r, part in zip(op.returns, parts):
            base = bases.get(r.alias)
            if base is None or not isinstance(base, torch.Tensor):
                raise NotImplementedError(f"{op.name}: expected each result to be a view")
            at = chain.template[of_base[r.alias]].numbers[0]
            made = []
            for y in part if isinstance(part, list) else [part]:
                if y.base != at or y.dtype != str(base.dtype)[6:]:
                    raise NotImplementedError(
                        f"{op.name}: expected a view of '{r.alias}' as its schema says, got a new "
                        "tensor or one of another dtype"
                    )
                offset = base.storage_offset() + y.offset
                made.append(base.as_strided(y.shape, y.stride, offset))
            out.append(made if isinstance(part, list) else made[0])
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
    if not implement("implement", op, f"{space}::{name}", None, form=1):
        kernel = python_kernel(op, block)
        block.impl(name, lambda *args, **kwargs: _only_new(op, kernel(*args, **kwargs)), "CPU")
    fake = _fake.of_operator(op)

    def fake_new(*args: Any, **kwargs: Any) -> Any:
        return _only_new(op, fake(*args, **kwargs))

    torch.library.register_fake(f"{space}::{name}", fake_new, lib=block)
    _implement_autograd(op, inner, block, name)

    def composite(*args: Any, **kwargs: Any) -> Any:
        values = op.bound(args, kwargs)
        written = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
        if twin is not None and is_wanted(tensors_of(values)):
            # The twin may save what is written next.
            before = [v.clone() if a.is_write else v for a, v in zip(op.arguments, values)]
            (only,) = written.values()
            return only.copy_(called(_overload_of(twin), op, before))
        made = called(inner, op, values)
        fresh = iter([made] if len(new) == 1 else list(made or ()))
        out = [written[r.alias] if r.is_write else next(fresh) for r in op.returns]
        return out[0] if len(out) == 1 else tuple(out)

    block.impl(public, composite, "CompositeImplicitAutograd")
    block.impl(public, composite, FRONT)


def _only_new(op: Operator, result: Any) -> Any:
    parts = [result] if len(op.returns) == 1 else list(result)
    made = [x for r, x in zip(op.returns, parts) if not r.is_write]
    return made[0] if len(made) == 1 else tuple(made) if made else None


def _has_plain_calls(op: Operator) -> bool:
    """Whether its kernel for autograd may be in C, for which a SymInt is a number."""
    return open_torch() and not any("SymInt" in a.type for a in op.arguments)


def _define_backward(op: Operator, block: torch.library.Library) -> None:
    """The operator of an operator's gradients by what its derivative saves, where it can be had."""
    if not op.has_backward or op.writes or any(r.is_list for r in op.returns):
        return
    if any("Tensor?" in a.type and a.is_list for a in op.arguments):
        return
    space, _, short = op.name.partition("::")
    name = f"_lamella_backward_{short}" + (f"_{op.overload}" if op.overload else "")
    slots, count = op.slots or (), len(op.returns)
    results = [f"Tensor r{r}" for r in op.saved_returns]
    types = [f"Tensor{'?' if count > 1 else ''} g{r}" for r in range(count)]
    types += [*(f"{a.type} a{i}" for i, a in enumerate(op.arguments)), *results, "int needs"]
    is_one = len(slots) == 1 and not op.arguments[slots[0]].is_list
    schema = f"({', '.join(types)}) -> Tensor{'' if is_one else '[]'}"
    block.define(name + schema)
    recorded = f"_lamella_recorded{name}" if _has_plain_calls(op) else None
    if not implement("backward", op, f"{space}::{name}", recorded):
        return
    packet = getattr(getattr(torch.ops, space), name).default
    arguments = slice(count, count + len(op.arguments))

    def wanted(values: Sequence[Any], needs: int) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for s, i in enumerate(slots):
            if needs >> s & 1 and values[i] is not None:
                found += values[i] if isinstance(values[i], (list, tuple)) else [values[i]]
        return found

    def fake(*args: Any) -> Any:
        made = [x.new_empty(x.shape) for x in wanted(args[arguments], args[-1])]
        return made[0] if is_one else made

    def autograd(*args: Any) -> Any:
        if not is_wanted(tensors_of(args)):
            with torch._C._AutoDispatchBelowAutograd():
                return packet(*args)
        return through_chain(*args)

    def from_c(*args: Any) -> Any:
        try:
            return autograd(*args)
        except Exception as error:
            keeper()(type(error), error)
            raise

    def through_chain(*args: Any) -> Any:
        # A second derivative goes through the chain, which computes the first anew.
        values, needs = args[arguments], args[-1]
        chain, xs = _transform.split(op, values, is_tensor, frozen)
        numbers = [
            n
            for s, i in enumerate(slots)
            if needs >> s & 1 and isinstance(chain.template[i], _transform.Place)
            for n in chain.template[i].numbers
        ]
        outs = tuple(r for r in range(count) if args[r] is not None)
        grads = [args[r] for r in outs]
        made = derived(chain.then("vjp", tuple(numbers), outs), [*grads, *xs])
        return made[0] if is_one else made

    torch.library.register_fake(f"{space}::{name}", fake, lib=block)
    if recorded is None:
        block.impl(name, autograd, "Autograd")
    else:
        block.define(recorded + schema)
        block.impl(recorded, from_c, "CompositeImplicitAutograd")
    block.impl(name, autograd, FRONT)
    block.impl(name, through_chain, "Batched")

    def backward(
        chain: Chain, xs: Any, results: Any, grads: Any, outs: tuple[int, ...], ins: tuple[int, ...]
    ) -> list[torch.Tensor]:
        needs, places, all_wanted = plan_of(chain, ins)
        values = _transform.filled(chain.template, xs, thawed)
        by_return = dict(zip(outs, grads))
        given = [by_return.get(r) for r in range(count)]
        made = packet(*given, *values, *results, needs)
        made = [made] if is_one else made
        if all_wanted:
            return made
        found = dict(zip(places, made))
        return [found[i] for i in ins]

    @functools.lru_cache(maxsize=1024)
    def plan_of(chain: Chain, ins: tuple[int, ...]) -> tuple[int, tuple[int, ...], bool]:
        places: list[int] = []
        needs = 0
        for s, i in enumerate(slots):
            entry = chain.template[i]
            if isinstance(entry, _transform.Place) and any(n in ins for n in entry.numbers):
                needs |= 1 << s
                places += entry.numbers
        return needs, tuple(places), tuple(places) == ins

    BACKWARDS[op.full_name] = (backward, packet)


def _autocast_dtype(word: str, lower: torch.dtype, tensors: Sequence[Any]) -> torch.dtype | None:
    """What autocast casts floating-point arguments to, by the operator's class; None: nothing."""
    if word == "lower_precision":
        return lower
    if word == "widest":
        wide = any(x.dtype == torch.float32 for x in tensors)
        return torch.float32 if wide else lower
    return torch.float32 if word in ("float32", "float32_set_dtype") else None


def _autocast(op: Operator, overload: Any, device: str) -> Callable[..., Any]:
    short = op.name.partition("::")[2]
    key = getattr(torch._C.DispatchKey, f"Autocast{device.upper()}")
    keys = torch._C.DispatchKeySet(key)
    sets_dtype = [i for i, a in enumerate(op.arguments) if a.type == "ScalarType?"][:1]
    if op.autocast != "float32_set_dtype":
        sets_dtype = []

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if op.autocast == "banned":
            raise RuntimeError(
                f"{short}: expected to be called outside of autocast for {device}, because it is "
                "unsafe in lower precision; take its arguments to float32 inside of "
                "autocast(enabled=False)"
            )
        with torch._C._ExcludeDispatchKeyGuard(keys):
            values = op.bound(args, kwargs)
            cast = _autocast_dtype(
                op.autocast, torch.get_autocast_dtype(device), tensors_of(values)
            )

            def is_eligible(x: Any) -> bool:
                on_device = is_tensor(x) and x.device.type == device
                return bool(on_device and x.is_floating_point() and x.dtype != torch.float64)

            def one(x: Any) -> Any:
                if isinstance(x, (list, tuple)):
                    return [one(v) for v in x]
                return x.to(cast) if is_eligible(x) else x

            if sets_dtype:
                (at,) = sets_dtype
                if values[at] is None and is_eligible(values[0]):
                    values[at] = torch.float32
            elif cast is not None:
                values = [one(x) for x in values]
            return called(overload, op, values)

    return kernel


def _register(op: Operator, everything: Sequence[Operator]) -> None:
    space, _, short = op.name.partition("::")
    name = f"{short}.{op.overload}" if op.overload else short
    if space not in _blocks:
        _blocks[space] = torch.library.Library(space, "FRAGMENT")
    block = _blocks[space]
    tags = (torch.Tag.pt2_compliant_tag,)
    block.define(op.schema.partition("::")[2], tags=tags)
    overload = _overload_of(op)
    if op.is_view:
        block.impl(name, _view(op), "CompositeImplicitAutograd")
        block.impl(name, _view(op), FRONT)
        return
    if any(r.is_write for r in op.returns):
        _define_write(op, block, _functional_twin(op, everything))
        return
    recorded: str | None = "_lamella_recorded_" + name.replace(".", "_")
    # torch's C function for calls reads results by types in the reverse order.
    results = [r.type for r in op.returns]
    if op.writes or results != results[::-1] or not _has_plain_calls(op):
        recorded = None
    _define_backward(op, block)
    form = 2 if has_first_order(op) else 0
    kernel = None
    if not implement("implement", op, op.full_name, recorded, form):
        recorded, kernel = None, python_kernel(op, block)
        block.impl(name, kernel, "CPU")
    fake = _fake.of_operator(op)
    torch.library.register_fake(op.full_name, fake, lib=block)
    _implement_autograd(op, overload, block, name, recorded, kernel)
    if op.autocast and op.autocast != "none":
        block.impl(name, _autocast(op, overload, "cpu"), "AutocastCPU")


def _packet(name: str, problems: dict[str, str]) -> Any:
    space, _, short = name.partition("::")
    if name not in problems:
        return getattr(getattr(torch.ops, space), short)

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{short}: PyTorch cannot have it: {problems[name]}")

    return refused


def load(path: str) -> Namespaces:
    if path not in _loaded:
        found = _library.operators(path)
        _library.remember(found)
        problems: dict[str, str] = {}
        for op in found:
            try:
                _register(op, found)
            except RuntimeError as error:
                problems[op.name] = str(error).partition("\n")[0]
        _loaded[path] = _library.namespaces(path, found, lambda name, _: _packet(name, problems))
    return _loaded[path]
