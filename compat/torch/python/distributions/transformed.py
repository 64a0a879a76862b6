"""Distributions that are transforms of other distributions."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.compound import TransformedDistribution
from lamella.compat.distributions.continuous import (
    Cauchy,
    Exponential,
    Gamma,
    Normal,
    Uniform,
    gumbel_entropy,
)
from lamella.compat.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from lamella.compat.distributions.utils import broadcast_all, euler_constant


class _Transformed(TransformedDistribution):
    """The base: expands its own parameters, those in arg_constraints, to the batch shape."""

    _names = ""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(type(self), _instance, batch_shape)
        for name in self._names.split():
            setattr(made, name, getattr(self, name).expand(made._batch_shape))
        made.base_dist = self.base_dist.expand(batch_shape)
        made.transforms = self.transforms
        return made


class LogNormal(_Transformed):
    """Log-normal distribution: the exponential of normal values."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc, doc="The mean of the logarithm.")

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(_Transformed):
    """The base for absolute values of a distribution that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._base(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale, doc="The scale of the values.")
    mode = property(lambda self: lamella.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return lamella.where(lamella.as_tensor(value) >= 0, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of normal values."""

    _base = Normal

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The absolute value of Cauchy values."""

    _base = Cauchy

    @property
    def mean(self) -> Tensor:
        return lamella.full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    variance = property(lambda self: self.base_dist.variance)


class Gumbel(_Transformed):
    """Gumbel distribution, the limit of the maximum of many values, with `loc` and `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _names = "loc scale"

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = lamella.finfo(self.loc.dtype)
        low, high = (
            lamella.full_like(self.loc, info.tiny),
            lamella.full_like(self.loc, 1 - info.eps),
        )
        base = Uniform(low, high, validate_args=validate_args)
        if not isinstance(loc, Tensor) and not isinstance(scale, Tensor):
            base = Uniform(info.tiny, 1 - info.eps, validate_args=validate_args)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-lamella.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.loc.expand(batch_shape), self.scale.expand(batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return gumbel_entropy(self.scale)


class Weibull(_Transformed):
    """Weibull distribution: powers of exponential values."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(lamella.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.scale.expand(batch_shape), self.concentration.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        return self.scale * lamella.exp(lamella.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        inner = ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal
        return self.scale * inner

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        second = lamella.exp(lamella.lgamma(1 + 2 * r))
        return self.scale.pow(2) * (second - lamella.exp(2 * lamella.lgamma(1 + r)))

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + lamella.log(self.scale * r) + 1


class Pareto(_Transformed):
    """Values above `scale` with a tail of power `alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.scale.expand(batch_shape), self.alpha.expand(batch_shape))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class InverseGamma(_Transformed):
    """The reciprocal of gamma values."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, power, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma values."""
        return self.base_dist.concentration

    rate = property(lambda self: self.base_dist.rate, doc="The inverse scale of the gamma values.")

    @property
    def mean(self) -> Tensor:
        return lamella.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        less = (self.concentration - 1).square() * (self.concentration - 2)
        return lamella.where(self.concentration > 2, self.rate.square() / less, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Kumaraswamy(_Transformed):
    """Kumaraswamy distribution: a number in [0, 1] from a uniform one by two powers."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = lamella.zeros_like(self.concentration0)
        base = Uniform(zeros, zeros + 1, validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        first, second = self.concentration1, self.concentration0
        return type(self)(first.expand(batch_shape), second.expand(batch_shape))

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        arg = 1 + n / a
        return lamella.exp(b.log() + arg.lgamma() + b.lgamma() - (arg + b).lgamma())

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return lamella.where((a < 1) | (b < 1), math.nan, log_mode.exp())

    variance = property(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t1, t0 = 1 - a.reciprocal(), 1 - b.reciprocal()
        h0 = lamella.digamma(b + 1) + euler_constant
        return t0 + t1 * h0 - lamella.log(a) - lamella.log(b)


class LogisticNormal(_Transformed):
    """Points of the simplex from normal values, by stick breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return TransformedDistribution.expand(self, batch_shape, _instance)

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="The means of the normal values.")

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal values."""
        return self.base_dist.base_dist.scale
