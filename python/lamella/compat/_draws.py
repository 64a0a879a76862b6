"""Random numbers that Lamella has no operator for, one by one: gamma, Poisson and binomial.

Each is computed in double precision from uniform and normal draws of the generator in the order of
PyTorch's CPU kernels, so the same seed gives the same numbers. Sources: Marsaglia and Tsang 2000
(gamma); Hoermann 1993, "The transformed rejection method" (Poisson from a mean of 10, binomial from
a mean of 10); sums of geometric gaps for smaller means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor


class _Draws:
    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._place = lamella.empty((), dtype=lamella.float64)

    def uniform(self) -> float:
        return self._place.uniform_(generator=self._generator).item()

    def normal(self) -> float:
        return self._place.normal_(generator=self._generator).item()


def _gamma(draws: _Draws, alpha: float) -> float:
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        scale = (1.0 - draws.uniform()) ** (1.0 / alpha)
        alpha += 1.0
    d = alpha - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        y = 0.0
        while y <= 0.0:
            x = draws.normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - draws.uniform()
        if u < 1.0 - 0.0331 * x * x * x * x:
            return scale * d * v
        if math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _poisson(draws: _Draws, mean: float) -> float:
    if mean < 0:
        raise RuntimeError(f"poisson: expected rates that are not negative, got {mean}")
    if mean == 0:
        return 0.0
    if mean < 10:
        limit, count, product = math.exp(-mean), 0, 1.0
        while True:
            product *= draws.uniform()
            if product <= limit:
                return float(count)
            count += 1
    root, log_mean = math.sqrt(mean), math.log(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    ratio = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = draws.uniform() - 0.5
        v = draws.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= ratio:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + math.log(inverse) - math.log(a / (us * us) + b)
        if left <= -mean + k * log_mean - math.lgamma(k + 1):
            return float(k)


_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _tail(k: float) -> float:
    """What Stirling's formula leaves of log k!."""
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial(draws: _Draws, count: float, probability: float) -> float:
    if count <= 0.0 or probability <= 0.0:
        return 0.0
    if probability >= 1.0:
        return count
    if math.isnan(probability):
        return math.nan
    if probability > 0.5:
        return count - _binomial_below(draws, count, 1.0 - probability)
    return _binomial_below(draws, count, probability)


def _binomial_below(draws: _Draws, n: float, p: float) -> float:
    if n * p < 10.0:
        total, found, log_q = 0.0, 0, math.log1p(-p)
        while True:
            u = draws.uniform()
            total += math.ceil(math.log(u) / log_q) if u > 0 else math.inf
            if total > n:
                return float(found)
            found += 1
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    ratio = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((n + 1) * p)
    while True:
        u = draws.uniform() - 0.5
        v = draws.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= ratio:
            return float(k)
        if k < 0 or k > n:
            continue
        v = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _tail(m)
            + _tail(n - m)
            - _tail(k)
            - _tail(n - k)
        )
        if v <= bound:
            return float(k)


def _each(function: Callable[..., float], generator: Any, *inputs: Tensor) -> Tensor:
    draws = _Draws(generator)
    rows = [tensor.detach().double().reshape(-1).tolist() for tensor in inputs]
    made = [function(draws, *values) for values in zip(*rows)]
    return lamella.tensor(made, dtype=lamella.float64).reshape(inputs[0].shape)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Numbers of events, for rates of any shape; of the rates' dtype, without gradients."""
    return _each(_poisson, generator, input).to(input.dtype)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Numbers of successes among `count`; both of one shape and dtype, without gradients."""
    count, prob = lamella.broadcast_tensors(count, prob)
    return _each(_binomial, generator, count, prob).to(count.dtype)


class _StandardGamma(lamella.autograd.Function):
    """Draws whose gradient is that of the inverse distribution function at the same quantile."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, generator: Any) -> Tensor:
        drawn = _each(_gamma, generator, alpha).to(alpha.dtype)
        drawn = drawn.clamp(min=lamella.finfo(alpha.dtype).tiny)
        ctx.save_for_backward(alpha, drawn)
        return drawn

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        alpha, drawn = ctx.saved_tensors
        a, x = alpha.double(), drawn.double()
        step = 1e-5 * a.clamp(min=1e-3)
        # The distribution function by the shape, over the density.
        slope = lamella.special.gammainc(a + step, x) - lamella.special.gammainc(a - step, x)
        density = ((a - 1) * x.log() - x - a.lgamma()).exp()
        return grad * (-slope / (2 * step) / density).to(grad.dtype), None


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Gamma draws of scale 1 for shapes `self`, with gradients for them."""
    return _StandardGamma.apply(self, generator)


def _sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Points of the simplex: gamma draws over their sum, with gradients for the concentrations."""
    if self.requires_grad and lamella.is_grad_enabled():
        drawn = _standard_gamma(self.double(), generator)
    else:
        drawn = _each(_gamma, generator, self)
    made = (drawn / drawn.sum(-1, keepdim=True)).to(self.dtype)
    info = lamella.finfo(self.dtype)
    return made.clamp(min=info.tiny, max=1 - info.eps / 2)
