"""Pruning: entries of a parameter are held at zero. `name` is computed before each call as the
product of a mask, name_mask, and the unmasked values, name_orig."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.parameter import Parameter

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
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


def _find(module: Any, name: str | None) -> Any:
    """The hook's key and the method for a pruned parameter (None: for any), or None."""
    hooks = {} if module._hooks is None else module._hooks.forward_pre
    for key, (hook, _) in hooks.items():
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name):
            return key, hook
    return None


def _original(function: str, module: Any, name: str) -> Tensor:
    found = module._parameters.get(f"{name}_orig" if _find(module, name) else name)
    if not isinstance(found, Tensor):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter '{name}'")
    return found


def _check_amount(method: str, amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, numbers.Real):
        raise TypeError(f"{method}: expected 'amount' to be a number, got {type(amount).__name__}")
    if isinstance(amount, numbers.Integral):
        if int(amount) < 0:
            raise ValueError(f"{method}: expected 'amount' not to be negative, got {amount}")
    elif not 0.0 <= amount <= 1.0:
        raise ValueError(f"{method}: expected 'amount' to be a share in [0, 1], got {amount}")


def _count(method: str, amount: Any, size: int) -> int:
    """The number of entries out of `size` for an amount, which is a number or a fraction."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if int(amount) > size:
        raise ValueError(f"{method}: expected 'amount' to be in [0, {size}], got {amount}")
    return int(amount)


class BasePruningMethod:
    """A way to choose entries: compute_mask() of a subclass selects those that stay.

    PRUNING_TYPE: for a parameter that is already pruned, a method sees the remaining entries
    ("unstructured"), the slices along its `dim` with remaining entries ("structured"), or all
    entries ("global").
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """1 for the entries that stay. default_mask: 1 for those that stayed so far."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected the class to define compute_mask()"
        )

    def apply_mask(self, module: Any) -> Tensor:
        """The parameter with its pruned entries at zero."""
        name = self._tensor_name
        original: Tensor = getattr(module, f"{name}_orig")
        mask = getattr(module, f"{name}_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Holds entries of a parameter at zero, by the values of the parameter or by
        importance_scores of its shape. Returns the method, or all of the parameter's together."""
        original = _original(cls.__name__, module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise ValueError(
                f"{cls.__name__}: expected 'importance_scores' to have the shape "
                f"{list(original.shape)}, got {list(importance_scores.shape)}"
            )
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        found = _find(module, name)
        before = lamella.ones_like(original.detach())
        if found is not None:
            before = getattr(module, f"{name}_mask").detach().clone()
            earlier = found[1]
            if not isinstance(earlier, PruningContainer):
                earlier = PruningContainer(earlier)
            earlier.add_pruning_method(method)
            method = earlier
        # Entries that are already pruned count as zeros.
        scores = getattr(module, name) if importance_scores is None else importance_scores
        # The module is still unchanged if this raises.
        mask = method.compute_mask(scores.detach(), before)
        if found is not None:
            del module._hooks.forward_pre[found[0]]
        else:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", mask)
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """The tensor with the chosen entries at zero."""
        default = lamella.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default)

    def remove(self, module: Any) -> None:
        """Makes the parameter an unmasked one with its current values."""
        name = self._tensor_name
        value = self.apply_mask(module).detach()
        original: Parameter = module._parameters[f"{name}_orig"]
        original.data = value
        for gone in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, gone)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """The methods of one parameter in the order of application; the last one computes the mask."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method for the same parameter."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                "PruningContainer: expected 'method' to be a BasePruningMethod, got "
                f"{type(method).__name__}"
            )
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"PruningContainer: expected 'method' to be of '{self._tensor_name}', got one of "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        seen: Any = [slice(None)] * t.dim()
        if method.PRUNING_TYPE == "unstructured":
            seen = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            seen[dim] = default_mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            seen = tuple(seen)
        elif method.PRUNING_TYPE != "global":
            raise ValueError(
                "PruningContainer: expected PRUNING_TYPE to be 'unstructured', 'structured' or "
                f"'global', got {method.PRUNING_TYPE!r}"
            )
        else:
            seen = tuple(seen)
        mask = default_mask.to(t.dtype, copy=True)
        mask[seen] = method.compute_mask(t[seen], default_mask=mask[seen]).to(t.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but creates a mask that can be changed."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes the entries where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(default_mask.dtype)


class RandomUnstructured(BasePruningMethod):
    """Prunes random entries; amount: their number, or a fraction."""

    def __init__(self, amount: float) -> None:
        _check_amount(type(self).__name__, amount)
        self.amount = amount

    def _worst_first(self, t: Tensor) -> Tensor:
        return -lamella.rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(type(self).__name__, self.amount, t.numel())
        mask = default_mask.clone(memory_format=lamella.contiguous_format)
        if count:
            mask.view(-1)[self._worst_first(t).reshape(-1).topk(count, largest=False)[1]] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """Prunes the entries with the smallest magnitude; amount: their number, or a fraction."""

    def _worst_first(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(BasePruningMethod):
    """Prunes random slices along a dimension; amount: their number, or a fraction."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(type(self).__name__, amount)
        self.amount, self.dim = amount, dim

    def _worst_first(self, t: Tensor) -> Tensor:
        return lamella.rand(t.size(self.dim))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        name = type(self).__name__
        if t.dim() < 2:
            raise ValueError(
                f"{name}: expected a parameter of at least 2 dimensions, got {list(t.shape)}"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(
                f"{name}: expected 'dim' to be in [{-t.dim()}, {t.dim() - 1}], got {self.dim}"
            )
        count = _count(name, self.amount, t.size(self.dim))
        if not count:
            return default_mask
        stays = lamella.ones(t.size(self.dim), dtype=default_mask.dtype)
        stays[self._worst_first(t).topk(count, largest=False)[1]] = 0
        shape = [1] * t.dim()
        shape[self.dim] = -1
        return default_mask * stays.view(shape)


class LnStructured(RandomStructured):
    """Prunes the slices along a dimension with the smallest norm of order n; amount: their number,
    or a fraction."""

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _worst_first(self, t: Tensor) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return t.norm(self.n, others)


def identity(module: Any, name: str) -> Any:
    """Identity.apply(); returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """RandomUnstructured.apply(); returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Any, name: str, amount: float, importance_scores: Tensor | None = None
) -> Any:
    """L1Unstructured.apply(); returns the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """RandomStructured.apply(); returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any,
    name: str,
    amount: float,
    n: float,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Any:
    """LnStructured.apply(); returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """CustomFromMask.apply(); returns the module. The mask has the parameter's shape."""
    shape = _original("custom_from_mask", module, name).shape
    if mask.shape != shape:
        raise ValueError(
            f"custom_from_mask: expected 'mask' to have the shape {list(shape)}, got "
            f"{list(mask.shape)}"
        )
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: Any = L1Unstructured,
    importance_scores: Mapping[tuple[Any, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Applies pruning_method(**kwargs) to pairs of module and name as if their entries were one
    parameter. importance_scores: by pair, replaces the parameter's values in the choice."""
    if not isinstance(parameters, Iterable):
        raise TypeError(
            "global_unstructured: expected 'parameters' to be pairs of module and name, got "
            f"{type(parameters).__name__}"
        )
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, Mapping):
        raise TypeError(
            "global_unstructured: expected 'importance_scores' to be a dict, got "
            f"{type(scores).__name__}"
        )
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            "global_unstructured: expected 'pruning_method' to be unstructured, got "
            f"{method.PRUNING_TYPE} {pruning_method.__name__}"
        )
    method._tensor_name = ""
    pairs = list(parameters)
    originals = [_original("global_unstructured", *pair).detach() for pair in pairs]
    judged = [scores.get(pair, values) for pair, values in zip(pairs, originals)]
    masks = [
        getattr(module, f"{name}_mask", lamella.ones_like(values))
        for (module, name), values in zip(pairs, originals)
    ]
    everything = PruningContainer(method).compute_mask(
        lamella.cat([values.reshape(-1) for values in judged]),
        lamella.cat([mask.reshape(-1) for mask in masks]),
    )
    parts = everything.split([values.numel() for values in originals])
    for (module, name), values, mask in zip(pairs, originals, parts):
        custom_from_mask(module, name, mask.view(values.shape))


def remove(module: Any, name: str) -> Any:
    """Makes the parameter an unmasked one with its current values. Returns the module."""
    found = _find(module, name)
    if found is None:
        raise ValueError(f"remove: '{name}' of {type(module).__name__} is not pruned")
    key, method = found
    method.remove(module)
    del module._hooks.forward_pre[key]
    return module


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of one in it, has a mask."""
    return any(_find(part, None) is not None for part in module.modules())
