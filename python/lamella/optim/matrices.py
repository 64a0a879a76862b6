"""Optimizers that treat a parameter as a matrix: Adafactor, which factors the mean squares into
rows times columns, and Muon, whose steps are nearly orthogonal."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import PerParameter, add_scaled_, number, options
from lamella.optim.optimizer import Optimizer, check_not_negative, refuse_sparse

__all__ = ["Adafactor", "Muon"]


def _real(name: str, optimizer: Optimizer) -> None:
    if any(p.is_complex() for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(f"{name}: expected parameters to be real, got a complex one")


class Adafactor(PerParameter):
    """Shazeer and Stern, 2018: the mean squares of a matrix as the product of those of its rows and
    columns, and rates relative to the size of the parameter.

    beta2_decay: the weight of the past at a step is 1 - step^beta2_decay. eps: the root of the
    least mean square, and the least size of a parameter. d: the largest root mean square of an
    update.
    """

    _decays_first = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if beta2_decay > 0:
            raise ValueError(
                f"Adafactor: expected 'beta2_decay' not to be above 0, got {beta2_decay}"
            )
        if d < 1:
            raise ValueError(f"Adafactor: expected 'd' to be at least 1, got {d}")
        check_not_negative("Adafactor", eps=min(e for e in eps if e is not None))
        super().__init__(params, options(locals()))
        _real("Adafactor", self)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        if param.dim() < 2:
            return {"variance": lamella.zeros_like(param)}
        shape = list(param.shape)
        return {
            "row_var": param.new_zeros([*shape[:-1], 1]),
            "col_var": param.new_zeros([*shape[:-2], 1, shape[-1]]),
        }

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, step = group["lr"], number(own["step"], group["lr"])
        least, smallest = group["eps"]
        least = lamella.finfo(param.dtype).eps if least is None else least
        weight = step ** group["beta2_decay"]
        if isinstance(step, Tensor):
            weight = weight.to(param.dtype)
            rate = lamella.minimum(lr, step.rsqrt())
        else:
            rate = min(lr, step**-0.5)
        root = param.norm(2) / param.numel() ** 0.5
        rate = root.clamp_min(smallest) * rate
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, columns = own["row_var"], own["col_var"]
            rows.lerp_(grad.norm(2, -1, keepdim=True).square_().div_(grad.size(-1)), weight)
            columns.lerp_(grad.norm(2, -2, keepdim=True).square_().div_(grad.size(-2)), weight)
            square = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_min_(least))
        else:
            square = own["variance"].lerp_(grad * grad, weight)
        update = square.clamp_min(least * least).rsqrt_().mul_(grad)
        size = update.norm(2) / (update.numel() ** 0.5 * group["d"])
        param.sub_(update * (rate / size.clamp_min(1)))


class Muon(Optimizer):
    """Jordan and others, 2024: momentum whose matrix is brought near an orthogonal one by a quintic
    Newton-Schulz iteration, a X + (b X X' + c (X X')^2) X. Parameters have 2 dimensions.

    adjust_lr_fn: "original" or None scales lr by sqrt(max(1, rows / columns)), "match_rms_adamw" by
    0.2 sqrt(max(rows, columns)).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_not_negative("Muon", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "Muon: expected 'adjust_lr_fn' to be original, match_rms_adamw or None, got "
                f"'{adjust_lr_fn}'"
            )
        if ns_steps >= 100:
            raise ValueError(f"Muon: expected 'ns_steps' to be below 100, got {ns_steps}")
        if len(ns_coefficients) != 3:
            raise ValueError(
                f"Muon: expected 'ns_coefficients' to be 3 numbers, got {len(ns_coefficients)}"
            )
        super().__init__(params, options(locals()))
        _real("Muon", self)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        f"Muon: expected parameters to have 2 dimensions, got {list(param.shape)}"
                    )

    def _update(self, group: dict[str, Any]) -> None:
        lr, momentum = group["lr"], group["momentum"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                refuse_sparse("Muon", grad)
            own = self.state[param]
            if "momentum_buffer" not in own:
                own["momentum_buffer"] = lamella.zeros_like(grad)
            buffer = own["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _near_orthogonal(
                update, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            rows, columns = param.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                scale = 0.2 * math.sqrt(max(rows, columns))
            else:
                scale = math.sqrt(max(1, rows / columns))
            param.mul_(1 - lr * group["weight_decay"])
            add_scaled_(param, update.to(param.dtype), -lr * scale)


def _near_orthogonal(matrix: Tensor, coefficients: Any, steps: int, eps: float) -> Tensor:
    """A bfloat16 matrix with the same singular vectors and singular values near 1."""
    a, b, c = coefficients
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.t() if is_tall else x
    x = x / x.norm().clamp_min(eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = lamella.addmm(x, lamella.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if is_tall else x
