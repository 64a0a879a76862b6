"""Entries of parameters that are held at zero: a mask, name_mask, and the values without it,
name_orig, from which name is computed before each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.parameter import Parameter

__all__ = [
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class _Masked:
    """Computes a parameter of a module before each call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, inputs: Any) -> None:
        original = getattr(module, f"{self.name}_orig")
        setattr(module, self.name, getattr(module, f"{self.name}_mask") * original)


def _hook(module: Any, name: str | None) -> Any:
    hooks = {} if module._hooks is None else module._hooks.forward_pre
    for key, (hook, _) in hooks.items():
        if isinstance(hook, _Masked) and name in (None, hook.name):
            return key, hook
    return None


def _original(function: str, module: Any, name: str) -> Tensor:
    found = module._parameters.get(f"{name}_orig" if _hook(module, name) else name)
    if not isinstance(found, Tensor):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter '{name}'")
    return found


def _count(function: str, amount: float, size: int) -> int:
    """How many of `size` a number or a share is."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(
            f"{function}: expected 'amount' to be a number, got {type(amount).__name__}"
        )
    if isinstance(amount, int):
        if not 0 <= amount <= size:
            raise ValueError(f"{function}: expected 'amount' to be in [0, {size}], got {amount}")
        return amount
    if not 0.0 <= amount <= 1.0:
        raise ValueError(f"{function}: expected 'amount' to be a share in [0, 1], got {amount}")
    return round(amount * size)


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Holds the entries of a parameter at zero where a mask of its shape, or one from before, is 0.
    Returns the module."""
    original = _original("custom_from_mask", module, name)
    if mask.shape != original.shape:
        raise ValueError(
            f"custom_from_mask: expected 'mask' to have the shape {list(original.shape)}, got "
            f"{list(mask.shape)}"
        )
    mask = mask.to(original.dtype)
    found = _hook(module, name)
    if found is not None:
        mask = mask * getattr(module, f"{name}_mask")
        hook = found[1]
    else:
        hook = _Masked(name)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", original)
        module.register_forward_pre_hook(hook)
    module.register_buffer(f"{name}_mask", mask)
    hook(module, None)
    return module


def identity(module: Any, name: str) -> Any:
    """Holds nothing at zero, but with a mask that can be changed."""
    return custom_from_mask(
        module, name, lamella.ones_like(_original("identity", module, name).detach())
    )


def _kept(module: Any, name: str, original: Tensor) -> Tensor:
    """1 for the entries that are not held yet."""
    if _hook(module, name):
        return getattr(module, f"{name}_mask")
    return lamella.ones_like(original.detach())


def _least(importance: Tensor, kept: Tensor, count: int) -> Tensor:
    """The mask without the least important of what is kept."""
    flat = kept.reshape(-1).clone()
    if count:
        scores = lamella.where(flat > 0, importance.detach().reshape(-1), float("inf"))
        flat[lamella.topk(scores, count, largest=False)[1]] = 0
    return flat.reshape(kept.shape)


def l1_unstructured(
    module: Any, name: str, amount: float, importance_scores: Tensor | None = None
) -> Any:
    """Holds the entries at zero that are smallest in size, or by importance_scores: so many, or
    that share of what is not held yet."""
    original = _original("l1_unstructured", module, name)
    kept = _kept(module, name, original)
    count = _count("l1_unstructured", amount, int(kept.sum().item()))
    scores = original.detach().abs() if importance_scores is None else importance_scores.abs()
    return custom_from_mask(module, name, _least(scores, kept, count))


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Holds random entries at zero: so many, or that share of what is not held yet."""
    original = _original("random_unstructured", module, name)
    kept = _kept(module, name, original)
    count = _count("random_unstructured", amount, int(kept.sum().item()))
    return custom_from_mask(module, name, _least(lamella.rand_like(kept), kept, count))


def _slices(function: str, module: Any, name: str, amount: float, dim: int, scores: Any) -> Any:
    original = _original(function, module, name).detach()
    if not -original.dim() <= dim < original.dim():
        raise IndexError(
            f"{function}: expected 'dim' to be in [{-original.dim()}, {original.dim() - 1}], got "
            f"{dim}"
        )
    kept = _kept(module, name, original)
    others = [d for d in range(original.dim()) if d != dim % original.dim()]
    alive = (kept.sum(others) > 0).to(original.dtype)
    count = _count(function, amount, int(alive.sum().item()))
    mask = _least(scores(original, others), alive, count)
    shape = [1] * original.dim()
    shape[dim] = -1
    return custom_from_mask(module, name, mask.view(shape).expand(original.shape))


def ln_structured(
    module: Any,
    name: str,
    amount: float,
    n: float,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Any:
    """Holds the slices along a dimension at zero whose norm of order n is smallest."""

    def scores(original: Tensor, others: list[int]) -> Tensor:
        values = original if importance_scores is None else importance_scores
        return values.norm(n, others)

    return _slices("ln_structured", module, name, amount, dim, scores)


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Holds random slices along a dimension at zero."""

    def scores(original: Tensor, others: list[int]) -> Tensor:
        return lamella.rand(original.size(dim))

    return _slices("random_structured", module, name, amount, dim, scores)


def global_unstructured(
    parameters: Iterable[tuple[Any, str]], pruning_method: Any = None, *, amount: float
) -> None:
    """l1_unstructured() over pairs of module and name, all entries in one order. pruning_method:
    None, or l1_unstructured, which it is anyway."""
    if pruning_method not in (None, l1_unstructured):
        raise TypeError(
            "global_unstructured: expected 'pruning_method' to be None or l1_unstructured, got "
            f"{pruning_method!r}"
        )
    pairs = list(parameters)
    originals = [_original("global_unstructured", *pair).detach() for pair in pairs]
    kept = [_kept(*pair, original) for pair, original in zip(pairs, originals)]
    flat = lamella.cat([mask.reshape(-1) for mask in kept])
    sizes = lamella.cat([original.reshape(-1).abs() for original in originals])
    count = _count("global_unstructured", amount, int(flat.sum().item()))
    masks = _least(sizes, flat, count).split([original.numel() for original in originals])
    for (module, name), original, mask in zip(pairs, originals, masks):
        custom_from_mask(module, name, mask.view(original.shape))


def remove(module: Any, name: str) -> Any:
    """Makes the parameter one without mask, with the values it has. Returns the module."""
    found = _hook(module, name)
    if found is None:
        raise ValueError(f"remove: '{name}' of {type(module).__name__} is not pruned")
    key, hook = found
    hook(module, None)
    value = getattr(module, name).detach()
    del module._hooks.forward_pre[key]
    original: Parameter = module._parameters[f"{name}_orig"]
    original.data = value
    delattr(module, name)
    delattr(module, f"{name}_orig")
    delattr(module, f"{name}_mask")
    module.register_parameter(name, original)
    return module


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of one in it, has a mask."""
    return any(_hook(part, None) is not None for part in module.modules())
