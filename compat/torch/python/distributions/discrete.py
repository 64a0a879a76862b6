"""Distributions of counts and categories."""

from __future__ import annotations

from typing import Any

import lamella
import lamella.nn.functional as F
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.distribution import Distribution, ExponentialFamily
from lamella.compat.distributions.utils import (
    _parameters,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def _one_of(kind: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError(f"{kind}: expected either 'probs' or 'logits', got both or none")


class _Binary(Distribution):
    """The base for binary outcomes, parametrized by probs or logits."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    _expandable = "probs logits total_count _param"

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def _take(self, probs: Any, logits: Any, total_count: Any = None) -> Size:
        _one_of(type(self).__name__, probs, logits)
        shape, self._param = _parameters(probs if probs is not None else logits)
        if total_count is not None:
            self.total_count, self._param = broadcast_all(total_count, self._param)
            self.total_count = self.total_count.type_as(self._param)
            shape = self._param.size()
        setattr(self, "probs" if probs is not None else "logits", self._param)
        return Size(shape)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    param_shape = property(lambda self: self._param.size(), doc="The shape of the parameter.")


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability `probs`, else 0."""

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return lamella.where(self.probs == 0.5, float("nan"), mode)

    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with lamella.no_grad():
            return lamella.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(lamella.arange(2, dtype=self._param.dtype), expand)

    _natural_params = property(lambda self: (lamella.logit(self.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lamella.log1p(lamella.exp(x))


class Geometric(_Binary):
    """The number of failures before the first success."""

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all().item()):
            raise ValueError("Geometric: expected 'probs' to be positive")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: lamella.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        tiny = lamella.finfo(self.probs.dtype).tiny
        with lamella.no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=lamella.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (
            F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
            / self.probs
        )


class Binomial(_Binary):
    """The number of successes in `total_count` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take(probs, logits, total_count)
        Distribution.__init__(self, shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with lamella.no_grad():
            return lamella.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, logits = self.total_count, self.logits
        log_factorial = lamella.lgamma(n + 1)
        parts = lamella.lgamma(value + 1) + lamella.lgamma(n - value + 1)
        positive = (logits.clamp(min=0) + logits.abs().neg().exp().log1p()) * n
        return value * logits - parts - (positive - log_factorial)

    def entropy(self) -> Tensor:
        total = int(self.total_count.max().item())
        if int(self.total_count.min().item()) != total:
            raise NotImplementedError("entropy: expected the same total_count everywhere")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = int(self.total_count.max().item())
        if int(self.total_count.min().item()) != total:
            raise NotImplementedError("enumerate_support: expected the same total_count everywhere")
        return self._enumerated(lamella.arange(1 + total, dtype=self._param.dtype), expand)


class NegativeBinomial(_Binary):
    """The number of successes before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take(probs, logits, total_count)
        Distribution.__init__(self, shape, validate_args=validate_args)

    mean = property(lambda self: self.total_count * lamella.exp(self.logits))

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    variance = property(lambda self: self.mean / lamella.sigmoid(-self.logits))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        from lamella.compat.distributions.continuous import Gamma

        with lamella.no_grad():
            rates = Gamma(self.total_count, lamella.exp(-self.logits), validate_args=False).sample(
                sample_shape
            )
            return lamella.poisson(rates)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        unnormalized = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = -lamella.lgamma(n + value) + lamella.lgamma(1.0 + value) + lamella.lgamma(n)
        return unnormalized - normalization.masked_fill(n + value == 0.0, 0.0)


class Poisson(ExponentialFamily):
    """The number of events at `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expandable = "rate"

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        shape, self.rate = _parameters(rate)
        super().__init__(shape, validate_args=validate_args)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with lamella.no_grad():
            return lamella.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (lamella.log(self.rate),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lamella.exp(x)


class Categorical(Distribution):
    """The index of one category; the categories lie along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        _one_of("Categorical", probs, logits)
        given = probs if probs is not None else logits
        if given.dim() < 1:
            raise ValueError("Categorical: expected the parameter to have one dimension or more")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Categorical:
        made = self._like(Categorical, _instance, batch_shape)
        shape = made._batch_shape + Size((self._num_events,))
        for name in ("probs", "logits", "_param"):
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(shape))
        made._num_events = self._num_events
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    param_shape = property(lambda self: self._param.size(), doc="The shape of the parameter.")

    @property
    def mean(self) -> Tensor:
        return lamella.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype)

    variance = mean

    mode = property(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(tuple(sample_shape))
        rows = self.probs.reshape(-1, self._num_events)
        drawn = lamella.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = lamella.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        least = lamella.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(lamella.arange(self._num_events), expand)


class _OfCategorical(Distribution):
    """The base for values of a Categorical in another form, along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # The attribute that expand() keeps as it is.
    _kept = ""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(type(self), _instance, batch_shape)
        if self._kept:
            setattr(made, self._kept, getattr(self, self._kept))
        made._categorical = self._categorical.expand(batch_shape)
        return made

    probs = property(lambda self: self._categorical.probs, doc="The probabilities.")
    logits = property(lambda self: self._categorical.logits, doc="The log probabilities.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="The parameter's shape.")
    _param = property(lambda self: self._categorical._param)


class OneHotCategorical(_OfCategorical):
    """One category as a one-hot vector; the categories lie along the last dimension."""

    support = constraints.one_hot
    has_enumerate_support = True

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(dim=-1), self.probs.shape[-1]).to(self.probs)

    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return F.one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = lamella.eye(n, dtype=self._param.dtype)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradients are those of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OfCategorical):
    """The number of times each category occurs in `total_count` draws."""

    _kept = "total_count"

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: expected 'total_count' to be an int")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(tuple(sample_shape))
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        order = [*range(1, drawn.dim()), 0]
        drawn = drawn.permute(*order)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, lamella.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=lamella.contiguous_format)
        log_factorial_n = lamella.lgamma(value.sum(-1) + 1)
        log_factorial_xs = lamella.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -float("inf"))] = 0
        return log_factorial_n - log_factorial_xs + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = lamella.tensor(self.total_count)
        support = self._binomial.enumerate_support(expand=False)[1:]
        probabilities = lamella.exp(self._binomial.log_prob(support))
        weights = (probabilities * lamella.lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lamella.lgamma(n + 1) + weights
