"""Continuous univariate distributions."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import lamella
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.distribution import Distribution, ExponentialFamily
from lamella.compat.distributions.utils import _parameters, broadcast_all, euler_constant

_POSITIVE, _REAL = constraints.positive, constraints.real


class _LocScale(Distribution):
    arg_constraints = {"loc": _REAL, "scale": _POSITIVE}
    support = _REAL
    has_rsample = True
    _expandable = "loc scale"

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        shape, self.loc, self.scale = _parameters(loc, scale)
        super().__init__(shape, validate_args=validate_args)


class Normal(_LocScale, ExponentialFamily):
    """Normal distribution: mean `loc`, standard deviation `scale`."""

    _mean_carrier_measure = 0

    mean = property(lambda self: self.loc)
    mode = mean

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with lamella.no_grad():
            return lamella.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = lamella.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        number = isinstance(self.scale, Number)
        log_scale = math.log(self.scale) if number else self.scale.log()
        squares = (value - self.loc) ** 2 / (2 * self.variance)
        return -squares - log_scale - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 0.5 * (1 + lamella.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * lamella.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + lamella.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.pow(2) / y + 0.5 * lamella.log(-math.pi / y)


class Laplace(_LocScale):
    """Laplace distribution: two exponential tails of scale `scale` around `loc`."""

    mean = property(lambda self: self.loc)
    mode = mean

    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = lamella.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * lamella.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -lamella.log(2 * self.scale) - lamella.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * lamella.expm1(-off.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * lamella.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + lamella.log(2 * self.scale)


class Cauchy(_LocScale):
    """Cauchy distribution: the ratio of two normal values, scaled by `scale` around `loc`."""

    @property
    def mean(self) -> Tensor:
        return lamella.full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return lamella.full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        ratio = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (ratio**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return lamella.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return lamella.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """Uniform distribution from `low` to `high`."""

    has_rsample = True
    _expandable = "low high"

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        shape, self.low, self.high = _parameters(low, high)
        super().__init__(shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rand = lamella.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + rand * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        above = self.low.le(value).type_as(self.low)
        below = self.high.gt(value).type_as(self.low)
        return lamella.log(above.mul(below)) - lamella.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return lamella.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """Exponential distribution: waiting times between events of `rate`."""

    arg_constraints = {"rate": _POSITIVE}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = "rate"

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        shape, self.rate = _parameters(rate)
        super().__init__(shape, validate_args=validate_args)

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: lamella.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 1 - lamella.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -lamella.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - lamella.log(self.rate)

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -lamella.log(-x)


class Gamma(ExponentialFamily):
    """Gamma distribution: shape `concentration`, inverse scale `rate`."""

    arg_constraints: Any = {"concentration": _POSITIVE, "rate": _POSITIVE}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expandable = "concentration rate"

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        shape, self.concentration, self.rate = _parameters(concentration, rate)
        super().__init__(shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = lamella._standard_gamma(self.concentration.expand(shape))
        value = drawn / self.rate.expand(shape)
        value.detach().clamp_(min=lamella.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = lamella.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_value(value)
        return (
            lamella.xlogy(self.concentration, self.rate)
            + lamella.xlogy(self.concentration - 1, value)
            - self.rate * value
            - lamella.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return lamella.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - lamella.log(self.rate) + lamella.lgamma(a) + (1.0 - a) * lamella.digamma(a)

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lamella.lgamma(x + 1) + (x + 1) * lamella.log(-y.reciprocal())


class Chi2(Gamma):
    """Chi-squared distribution: the sum of `df` squares of standard normal values."""

    arg_constraints = {"df": _POSITIVE}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2, doc="The number of squares.")


class StudentT(Distribution):
    """Student's t: a normal value divided by the root of a mean of `df` squares."""

    arg_constraints = {"df": _POSITIVE, "loc": _REAL, "scale": _POSITIVE}
    support = _REAL
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> StudentT:
        made = self._expanded("df loc scale", batch_shape, _instance)
        made._chi2 = self._chi2.expand(batch_shape)
        return made

    mean = property(lambda self: lamella.where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        heavy = lamella.where(self.df > 1, math.inf, math.nan).to(self.df.dtype)
        return lamella.where(self.df > 2, finite, heavy)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = lamella.empty(shape, dtype=self.df.dtype, device=self.df.device).normal_()
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * lamella.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (value - self.loc) / self.scale
        z = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + lamella.lgamma(0.5 * self.df)
            - lamella.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * lamella.log1p(y**2.0 / self.df) - z

    def entropy(self) -> Tensor:
        lbeta = (
            lamella.lgamma(0.5 * self.df) + math.lgamma(0.5) - lamella.lgamma(0.5 * (self.df + 1))
        )
        gap = lamella.digamma(0.5 * (self.df + 1)) - lamella.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * gap + 0.5 * self.df.log() + lbeta


class FisherSnedecor(Distribution):
    """F distribution: the ratio of two means of squares."""

    arg_constraints = {"df1": _POSITIVE, "df2": _POSITIVE}
    support = _POSITIVE
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        shape, self.df1, self.df2 = _parameters(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> FisherSnedecor:
        made = self._expanded("df1 df2", batch_shape, _instance)
        made._gamma1 = self._gamma1.expand(batch_shape)
        made._gamma2 = self._gamma2.expand(batch_shape)
        return made

    mean = property(lambda self: lamella.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return lamella.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        less = (self.df2 - 2).pow(2) * (self.df2 - 4)
        variance = 2 * self.df2.pow(2) * (self.df1 + self.df2 - 2) / (self.df1 * less)
        return lamella.where(self.df2 > 4, variance, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x1 = self._gamma1.rsample(sample_shape).view(shape)
        x2 = self._gamma2.rsample(sample_shape).view(shape)
        tiny = lamella.finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        ct1, ct2 = self.df1 * 0.5, self.df2 * 0.5
        ct3 = self.df1 / self.df2
        t1 = (ct1 + ct2).lgamma() - ct1.lgamma() - ct2.lgamma()
        t2 = ct1 * ct3.log() + (ct1 - 1) * lamella.log(value)
        return t1 + t2 - (ct1 + ct2) * lamella.log1p(ct3 * value)


def gumbel_entropy(scale: Tensor) -> Tensor:
    """The entropy of a Gumbel distribution."""
    return scale.log() + (1 + euler_constant)


def shape_of(*values: Any) -> Size:
    """The broadcast shape of the values; () for numbers."""
    return Size(_parameters(*values)[0])


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution: the excess over a threshold `loc`, with `scale` and the
    shape `concentration`: heavy-tailed if that is positive, exponential at 0, bounded if it is
    negative (Coles 2001, section 4.2)."""

    arg_constraints = {"loc": _REAL, "scale": _POSITIVE, "concentration": _REAL}
    has_rsample = True
    _expandable = "loc scale concentration"

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        shape, self.loc, self.scale, self.concentration = _parameters(loc, scale, concentration)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """[loc, inf), or [loc, loc - scale / concentration] for a negative concentration."""
        k = self.concentration
        end = lamella.where(k < 0, self.loc - self.scale / k, math.inf)
        return constraints.interval(self.loc, end)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """A mask of the (nearly) zero concentrations, and the concentrations with 1 in these
        places."""
        is_exponential = lamella.isclose(self.concentration, lamella.zeros_like(self.concentration))
        return is_exponential, lamella.where(is_exponential, 1.0, self.concentration)

    def _log_growth(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """log(1 + k z) / k, or z for k = 0, with z = (value - loc) / scale; and k, the
        concentration."""
        z = (value - self.loc) / self.scale
        is_exponential, k = self._parts()
        growth = lamella.where(is_exponential, z, lamella.log1p(k * z) / k)
        return growth, lamella.where(is_exponential, 0.0, k)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = lamella.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self._at(u)

    def _at(self, p: Tensor) -> Tensor:
        is_exponential, k = self._parts()
        logs = lamella.log1p(-p)
        return self.loc + self.scale * lamella.where(
            is_exponential, -logs, lamella.expm1(-k * logs) / k
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        growth, k = self._log_growth(value)
        return -self.scale.log() - (1 + k) * growth

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of exceeding `value`."""
        self._check_value(value)
        return -self._log_growth(value)[0]

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of cdf()."""
        return lamella.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self._at(value)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return lamella.where(k < 1, self.loc + self.scale / (1 - k), math.nan)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        found = self.scale.pow(2) / ((1 - k).pow(2) * (1 - 2 * k))
        return lamella.where(k < 0.5, found, math.nan)

    mode = property(lambda self: self.loc)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
