"""The Dirichlet and the beta distribution."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.distribution import ExponentialFamily
from lamella.compat.distributions.utils import broadcast_all

_POSITIVE = constraints.positive


class Dirichlet(ExponentialFamily):
    """Points of the simplex with the given concentrations."""

    arg_constraints = {"concentration": constraints.independent(_POSITIVE, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: expected 'concentration' to have one dimension or more")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Dirichlet:
        made = self._like(Dirichlet, _instance, batch_shape)
        made.concentration = self.concentration.expand(made._batch_shape + self._event_shape)
        return made

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        corner = (self.concentration < 1).all(dim=-1, keepdim=True)
        one = lamella.nn.functional.one_hot(mode.argmax(-1), self.concentration.shape[-1])
        return lamella.where(corner, one.to(mode.dtype), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        rest = total - self.concentration
        return self.concentration * rest / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return lamella._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (
            lamella.xlogy(self.concentration - 1.0, value).sum(-1)
            + lamella.lgamma(self.concentration.sum(-1))
            - lamella.lgamma(self.concentration).sum(-1)
        )

    def entropy(self) -> Tensor:
        k = self.concentration.size(-1)
        a0 = self.concentration.sum(-1)
        return (
            lamella.lgamma(self.concentration).sum(-1)
            - lamella.lgamma(a0)
            - (k - a0) * lamella.digamma(a0)
            - ((self.concentration - 1.0) * lamella.digamma(self.concentration)).sum(-1)
        )

    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - lamella.lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """Beta distribution: the first component of a Dirichlet of two."""

    arg_constraints = {"concentration1": _POSITIVE, "concentration0": _POSITIVE}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        pair = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(lamella.stack(pair, -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Beta:
        made = self._like(Beta, _instance, batch_shape)
        made._dirichlet = self._dirichlet.expand(batch_shape)
        return made

    @property
    def concentration1(self) -> Tensor:
        """The weight of 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The weight of 0."""
        return self._dirichlet.concentration[..., 1]

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._dirichlet.log_prob(lamella.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lamella.lgamma(x) + lamella.lgamma(y) - lamella.lgamma(x + y)
