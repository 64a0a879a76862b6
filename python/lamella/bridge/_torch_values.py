"""Values of PyTorch and of Lamella, each as the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import lamella
from lamella.bridge import _transform
from lamella.bridge._library import Operator
from lamella.bridge._transform import Chain, Named


def is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def frozen(value: Any, type_: str) -> Any:
    """A value of an argument that is no tensor, as a literal that a chain can hold."""
    if isinstance(value, torch.dtype):
        return Named("dtype", str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return Named("device", str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return Named("name", str(value).rpartition(".")[2])
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v, type_) for v in value)
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


def memory_of(tensors: Sequence[torch.Tensor]) -> set[int]:
    return {x.untyped_storage().data_ptr() for x in tensors if x.numel() and not x.is_meta}


def run_chain(chain: Chain, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    taken = memory_of(xs)
    made = _transform.function(chain)([to_lamella(x) for x in xs])
    return [to_torch(y, taken, contiguous=True) for y in made if isinstance(y, lamella.Tensor)]


def thawed(entry: Named) -> Any:
    return torch.device(entry.name) if entry.kind == "device" else getattr(torch, entry.name)


def called(overload: Any, op: Operator, values: Sequence[Any]) -> Any:
    positional = [v for a, v in zip(op.arguments, values) if not a.kwarg_only]
    named = {a.name: v for a, v in zip(op.arguments, values) if a.kwarg_only}
    return overload(*positional, **named)


def tensors_of(args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for v in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(v, torch.Tensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += [x for x in v if isinstance(x, torch.Tensor)]
    return found
