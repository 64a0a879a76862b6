"""Distributions composed of other distributions."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.discrete import Categorical, _Binary, _OfCategorical, _one_of
from lamella.compat.distributions.distribution import Distribution
from lamella.compat.distributions.transforms import (
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
)
from lamella.compat.distributions.utils import _sum_rightmost, broadcast_all, clamp_probs


class Independent(Distribution):
    """A distribution whose last batch dimensions are treated as event dimensions."""

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                f"Independent: expected at most {len(batch)} dimensions, got "
                f"{reinterpreted_batch_ndims}"
            )
        shape = tuple(batch) + tuple(base_distribution.event_shape)
        split = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        made = self._get_checked_instance(Independent, _instance)
        inner = tuple(self.event_shape)[: self.reinterpreted_batch_ndims]
        # Set before _like(): Pyro's subclass stores its attributes in base_dist.
        made.base_dist = self.base_dist.expand(Size(tuple(batch_shape) + inner))
        made.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._like(Independent, made, batch_shape)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        region, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(region, count) if count else region

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("enumerate_support: expected no reinterpreted dimensions")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a base distribution's values after a sequence of transforms."""

    arg_constraints: Any = {}
    base_dist: Any

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        self.transforms = list(given) if isinstance(given, (list, tuple)) else [None]
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("TransformedDistribution: expected 'transforms' to be Transforms")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"TransformedDistribution: expected {whole.domain.event_dim} dimensions or more, "
                f"got {list(base_shape)}"
            )
        forward_shape = Size(tuple(whole.forward_shape(base_shape)))
        expanded = Size(tuple(whole.inverse_shape(forward_shape)))
        if expanded != base_shape:
            batch = tuple(expanded)[: len(expanded) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(batch)
        more = whole.domain.event_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        event = max(whole.codomain.event_dim, len(base_distribution.event_shape) + change)
        cut = len(forward_shape) - event
        shape = tuple(forward_shape)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(TransformedDistribution, _instance, batch_shape)
        shape = tuple(batch_shape) + tuple(self.event_shape)
        for transform in reversed(self.transforms):
            shape = tuple(transform.inverse_shape(Size(shape)))
        cut = len(shape) - len(self.base_dist.event_shape)
        made.base_dist = self.base_dist.expand(Size(shape[:cut]))
        made.transforms = self.transforms
        return made

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with lamella.no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        event = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(slope, event - transform.domain.event_dim)
            y = x
        own = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(own, event - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._check_value(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value


class MixtureSameFamily(Distribution):
    """A mixture: the components lie along the last batch dimension."""

    arg_constraints: Any = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily: expected the mixture to be a Categorical")
        count = component_distribution.batch_shape[-1]
        if mixture_distribution.probs.shape[-1] != count:
            raise ValueError(
                f"MixtureSameFamily: expected {count} weights, got "
                f"{mixture_distribution.probs.shape[-1]}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        batch = component_distribution.batch_shape[:-1]
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = Size(tuple(batch_shape))
        made = self._like(MixtureSameFamily, _instance, batch_shape)
        inner = batch_shape + Size((self._num_component,))
        made._component_distribution = self._component_distribution.expand(inner)
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        made._num_component, made._event_ndims = self._num_component, self._event_ndims
        return made

    def __repr__(self) -> str:
        parts = f"{self._mixture_distribution},\n  {self._component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The probabilities of the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        dim = -1 - self._event_ndims
        return (self._weights() * self.component_distribution.mean).sum(dim)

    @property
    def variance(self) -> Tensor:
        dim = -1 - self._event_ndims
        probs, parts = self._weights(), self.component_distribution
        spread = (probs * (parts.mean - self.mean.unsqueeze(dim)).pow(2.0)).sum(dim)
        return (probs * parts.variance).sum(dim) + spread

    def cdf(self, value: Tensor) -> Tensor:
        below = self.component_distribution.cdf(value.unsqueeze(-1 - self._event_ndims))
        return (below * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        log_x = self.component_distribution.log_prob(value.unsqueeze(-1 - self._event_ndims))
        log_mix = lamella.log_softmax(self.mixture_distribution.logits, dim=-1)
        return lamella.logsumexp(log_x + log_mix, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with lamella.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            dim = len(Size(tuple(sample_shape))) + len(self.batch_shape)
            places = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            places = places.expand(chosen.shape + Size((1,)) + self.event_shape)
            return lamella.gather(values, dim, places).squeeze(dim)


class LogitRelaxedBernoulli(_Binary):
    """The log odds of a relaxed Bernoulli value."""

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.temperature = self.temperature
        return made

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(lamella.rand(shape, dtype=probs.dtype))
        odds = uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return lamella.as_tensor(self.temperature).log() + diff - 2 * diff.exp().log1p()


class _Relaxed(TransformedDistribution):
    """The values of `_base` behind the transform `_into`."""

    has_rsample = True
    _base: Any
    _into: Any

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._base(temperature, probs, logits, validate_args)
        super().__init__(base, self._into(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="The temperature.")
    logits = property(lambda self: self.base_dist.logits, doc="The log odds or probabilities.")
    probs = property(lambda self: self.base_dist.probs, doc="The probability or probabilities.")


class RelaxedBernoulli(_Relaxed):
    """A number in (0, 1), mostly near 0 or 1, with gradients."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _base = staticmethod(lambda *args: LogitRelaxedBernoulli(*args[:3]))
    _into = SigmoidTransform


class ExpRelaxedCategorical(_OfCategorical):
    """The logarithm of a relaxed one-hot vector."""

    support = constraints.real_vector
    has_rsample = True
    _kept = "temperature"

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        _one_of("RelaxedOneHotCategorical", probs, logits)
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(lamella.rand(shape, dtype=self.logits.dtype))
        scores = (self.logits - (-(uniforms.log())).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        temperature = lamella.as_tensor(self.temperature)
        log_scale = lamella.full_like(temperature, float(k)).lgamma() - temperature.log().mul(
            -(k - 1)
        )
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(_Relaxed):
    """A point of the simplex, mostly near a corner, with gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _base = ExpRelaxedCategorical
    _into = ExpTransform
