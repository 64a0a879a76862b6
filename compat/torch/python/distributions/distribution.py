"""torch.distributions.distribution and torch.distributions.exp_family."""

from __future__ import annotations

import warnings
from typing import Any

import lamella
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.utils import lazy_property


class Distribution:
    """A batch of independent distributions: `batch_shape` of them, with values of `event_shape`."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether arguments are checked by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        try:
            regions = self.arg_constraints
        except NotImplementedError:
            regions = {}
            warnings.warn(f"{type(self).__name__} has no arg_constraints to check", stacklevel=2)
        for name, region in regions.items():
            if constraints.is_dependent(region):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # reading it would compute it
            value = getattr(self, name)
            if not bool(region.check(value).all().item()):
                raise ValueError(
                    f"{type(self).__name__}: expected parameter {name} to be within {region!r}, "
                    f"got {value}"
                )

    def _like(self, cls: Any, instance: Any, batch_shape: Any, event_shape: Any = None) -> Any:
        """An instance for expand(): sets the shapes and keeps validate_args, without checking
        parameters."""
        made = cls.__new__(type(self)) if instance is None else instance
        event = self._event_shape if event_shape is None else Size(event_shape)
        made._batch_shape, made._event_shape = Size(batch_shape), event
        made._validate_args = self._validate_args
        return made

    def _expanded(self, names: str, batch_shape: Any, instance: Any) -> Any:
        """expand(): those of the named parameters that are set are expanded to the batch shape."""
        made = self._like(type(self), instance, batch_shape)
        for name in names.split():
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(made._batch_shape))
        return made

    # The parameters that the default expand() expands.
    _expandable = ""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution, expanded to another batch shape."""
        if not self._expandable:
            raise NotImplementedError(f"{type(self).__name__}: has no expand()")
        return self._expanded(self._expandable, batch_shape, _instance)

    batch_shape = property(lambda self: self._batch_shape, doc="The shape of the parameters.")
    event_shape = property(lambda self: self._event_shape, doc="The shape of one value.")

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of the values."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__}: has no mode")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise NotImplementedError

    stddev = property(lambda self: self.variance.sqrt(), doc="The root of the variance.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples without gradients, of shape sample_shape + batch_shape + event_shape."""
        with lamella.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples that are differentiable in the parameters."""
        raise NotImplementedError(f"{type(self).__name__}: has no rsample()")

    def sample_n(self, n: int) -> Tensor:
        """sample((n,))"""
        return self.sample((n,))

    def rsample_n(self, n: int) -> Tensor:
        """rsample((n,))"""
        return self.rsample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of values."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The cumulative distribution function."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf()."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All possible values."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The expected negative log_prob()."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"log_prob: expected a Tensor, got {type(value).__name__}")
        event = len(self._event_shape)
        if tuple(value.shape[value.dim() - event :]) != tuple(self._event_shape):
            raise ValueError(
                f"log_prob: expected values of the shape {list(self._event_shape)}, got "
                f"{list(value.shape)}"
            )
        whole = tuple(self._batch_shape) + tuple(self._event_shape)
        for given, own in zip(reversed(value.shape), reversed(whole)):
            if given != 1 and own != 1 and given != own:
                raise ValueError(
                    f"log_prob: expected values that broadcast with {list(whole)}, got "
                    f"{list(value.shape)}"
                )
        try:
            support = self.support
        except NotImplementedError:
            return
        if not bool(support.check(value).all().item()):
            raise ValueError(
                f"log_prob: expected values of {type(self).__name__} within {support!r}, got "
                f"{value}"
            )

    def _check_value(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}: expected a subclass with its own __init__ to have expand()"
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in names)
        )
        return f"{type(self).__name__}({', '.join(values)})"


class ExponentialFamily(Distribution):
    """Distributions whose density is exp(parameters · statistics - log normaliser)."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Computed from the gradients of the log normaliser (Bregman divergence)."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*params)
        gradients = lamella.autograd.grad(log_normalizer.sum(), params, create_graph=True)
        result = result + log_normalizer
        for parameter, gradient in zip(params, gradients):
            part = parameter * gradient
            result = result - part.reshape(self._batch_shape + (-1,)).sum(-1)
        return result
