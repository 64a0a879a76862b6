"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.distribution import Distribution
from lamella.compat.distributions.utils import broadcast_all


class VonMises(Distribution):
    """Angles around `loc`, sampled by rejection from a wrapped Cauchy distribution (Best and Fisher
    1979)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _expandable = "loc concentration"

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _log_i0(self) -> Tensor:
        return lamella.special.i0e(self.concentration).log() + self.concentration

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        height = self.concentration * lamella.cos(value - self.loc)
        return height - math.log(2 * math.pi) - self._log_i0()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with lamella.no_grad():
            kappa, loc = self.concentration.double(), self.loc.double()
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = lamella.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            x = lamella.zeros(shape, dtype=lamella.float64)
            done = lamella.zeros(shape, dtype=lamella.bool)
            while not done.all():
                u1, u2, u3 = lamella.rand((3, *shape), dtype=lamella.float64).unbind()
                z = lamella.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = lamella.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accepted
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = property(lambda self: self.loc)
    mode = mean

    @property
    def variance(self) -> Tensor:
        """1 minus the length of the mean direction."""
        ratio = lamella.special.i1e(self.concentration) / lamella.special.i0e(self.concentration)
        return 1 - ratio
