"""Values of PyTorch as those that chains hold, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lamella.bridge._library import Operator
from lamella.bridge._transform import Named


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
