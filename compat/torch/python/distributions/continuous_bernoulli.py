"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.distribution import ExponentialFamily
from lamella.compat.distributions.utils import (
    _parameters,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ContinuousBernoulli(ExponentialFamily):
    """A number in [0, 1] with density proportional to pˣ (1 - p)¹⁻ˣ (Loaiza-Ganem and Cunningham
    2019). For p within `lims`, near 1/2, normaliser and moments are Taylor expansions."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("ContinuousBernoulli: expected either 'probs' or 'logits'")
        given = probs if probs is not None else logits
        shape, self._param = _parameters(given)
        if probs is not None:
            self.probs = clamp_probs(self._param)
        else:
            self.logits = self._param
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ContinuousBernoulli:
        made: ContinuousBernoulli = self._expanded("probs logits _param", batch_shape, _instance)
        made._lims = self._lims
        return made

    param_shape = property(lambda self: self._param.size(), doc="The shape of the parameter.")
    _natural_params = property(lambda self: (self.logits,))

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return lamella.where(self._outside(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        cut = self._cut()
        ratio = lamella.log1p(-cut) - cut.log()
        low = lamella.where(cut <= 0.5, cut, 0.0)
        high = lamella.where(cut >= 0.5, cut, 1.0)
        size = lamella.where(cut <= 0.5, lamella.log1p(-2.0 * low), lamella.log(2.0 * high - 1.0))
        x = (self.probs - 0.5).square()
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return lamella.where(self._outside(), ratio.abs().log() - size, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (lamella.log1p(-cut) - cut.log())
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        return lamella.where(self._outside(), mean, taylor)

    @property
    def variance(self) -> Tensor:
        cut = self._cut()
        ratio = lamella.log1p(-cut) - cut.log()
        variance = cut * (cut - 1.0) / (1.0 - 2.0 * cut).square() + 1.0 / ratio.square()
        x = (self.probs - 0.5).square()
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return lamella.where(self._outside(), variance, taylor)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(lamella.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        loss = lamella.nn.functional.binary_cross_entropy_with_logits(
            logits, value, reduction="none"
        )
        return -loss + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        cut = self._cut()
        top = cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0
        inside = lamella.where(self._outside(), top / (2.0 * cut - 1.0), value)
        bounded = lamella.where(value <= 0.0, 0.0, inside)
        return lamella.where(value >= 1.0, 1.0, bounded)

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut()
        top = (-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()
        return lamella.where(self._outside(), top / (cut.log() - (-cut).log1p()), value)

    def entropy(self) -> Tensor:
        log_odds0, log_odds1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_odds0 - log_odds1) - self._log_norm() - log_odds0
