"""Optimizers with step sizes as state: ASGD one for each parameter, Rprop one for each element."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import PerParameter, add_scaled_, number, options

__all__ = ["ASGD", "Rprop"]


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else lamella.tensor(value, dtype=lamella.float64)


class ASGD(PerParameter):
    """Polyak and Juditsky, 1992: gradient descent that keeps the average of each parameter from
    step t0 on in its state `ax`. The rate decays as lr / (1 + lambd lr step)^alpha."""

    _counts = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "eta": lamella.full((), float(group["lr"]), dtype=lamella.float32),
            "mu": lamella.ones((), dtype=lamella.float32),
            "ax": lamella.zeros_like(param),
        }

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, lambd, mean = group["lr"], group["lambd"], own["ax"]
        rate, weight, step = (number(own[key], lr) for key in ("eta", "mu", "step"))
        param.mul_(1 - lambd * rate)
        add_scaled_(param, grad, -rate)
        mean.lerp_(param, weight.to(param.dtype) if isinstance(weight, Tensor) else weight)
        late = step - group["t0"]
        own["eta"].copy_(_tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
        own["mu"].copy_(1 / _tensor(late).clamp_min(1))


class Rprop(PerParameter):
    """Riedmiller and Braun, 1993: each element has a step size, which is multiplied by etas[1]
    while its gradient keeps the sign, and by etas[0] where the sign changes."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(
                "Rprop: expected 'etas' to be a number below 1 and one above, got "
                f"{etas[0]} and {etas[1]}"
            )
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        lr = float(group["lr"])
        first = complex(lr, lr) if param.is_complex() else lr
        return {"prev": lamella.zeros_like(param), "step_size": lamella.full_like(param, first)}

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        shrink, grow = group["etas"]
        before, sizes = own["prev"], own["step_size"]
        product = grad * before
        is_turned = product < 0
        factor = lamella.where(is_turned, shrink, lamella.where(product > 0, grow, 1.0))
        sizes.mul_(factor.to(sizes.dtype)).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(is_turned, 0)
        param.addcmul_(grad.sign(), sizes, value=-1)
        before.copy_(grad)
