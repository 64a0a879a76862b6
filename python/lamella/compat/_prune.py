"""The classes of torch.nn.utils.prune: a method for each of lamella.nn.utils.prune's functions."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.utils import prune


class BasePruningMethod:
    """A way to choose entries: subclasses say which by compute_mask(), apply() holds them at 0."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """1 for the entries that stay. default_mask: those that stayed until now."""
        raise NotImplementedError

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """The tensor with the chosen entries at 0."""
        default = lamella.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default)

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Holds entries of a parameter at zero. Returns the method."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = prune._original(cls.__name__, module, name)
        scores = original if importance_scores is None else importance_scores
        mask = method.compute_mask(scores.detach(), prune._kept(module, name, original))
        prune.custom_from_mask(module, name, mask)
        return method


class Identity(BasePruningMethod):
    """Nothing is held at zero."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """What a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(default_mask.dtype)


class RandomUnstructured(BasePruningMethod):
    """Random entries: so many, or that share of those that stayed."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        return lamella.rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = prune._count(type(self).__name__, self.amount, int(default_mask.sum().item()))
        return prune._least(self._scores(t), default_mask, count)


class L1Unstructured(RandomUnstructured):
    """The smallest entries."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(BasePruningMethod):
    """Random slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount, self.dim = amount, dim

    def _scores(self, t: Tensor, others: list[int]) -> Tensor:
        return lamella.rand(t.size(self.dim))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        alive = (default_mask.sum(others) > 0).to(default_mask.dtype)
        count = prune._count(type(self).__name__, self.amount, int(alive.sum().item()))
        shape = [1] * t.dim()
        shape[self.dim] = -1
        return default_mask * prune._least(self._scores(t, others), alive, count).view(shape)


class LnStructured(RandomStructured):
    """The slices along a dimension with the smallest norms."""

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, others: list[int]) -> Tensor:
        return t.norm(self.n, others)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._methods = list(methods)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """One more."""
        self._methods.append(method)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        for method in self._methods:
            default_mask = method.compute_mask(t, default_mask)
        return default_mask
