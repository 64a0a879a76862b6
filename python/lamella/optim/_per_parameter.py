"""The common base of the optimizers that update one parameter at a time."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.optim.optimizer import (
    Optimizer,
    check_capturable,
    check_not_negative,
    check_one_element,
    check_ways,
    move_recorded,
    refuse_sparse,
)

__all__ = ["PerParameter", "add_ratio_", "add_scaled_", "check_betas", "number", "options"]


def options(given: dict[str, Any]) -> dict[str, Any]:
    """The entries of the locals() of an __init__() that are options of a parameter group."""
    return {k: v for k, v in given.items() if k not in ("self", "params", "__class__")}


def check_betas(name: str, betas: Any) -> None:
    """Raises if a decay rate is outside of [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(
                f"{name}: expected 'betas' {i} to be at least 0 and below 1, got {beta}"
            )


def number(value: Tensor, lr: Any) -> Any:
    """A step count or rate of the state for use in formulas: a tensor if the learning rate is a
    tensor, so that one captured program serves all steps, else a float."""
    return value.to(lamella.float64) if isinstance(lr, Tensor) else value.item()


def add_scaled_(param: Tensor, change: Tensor, scale: Any) -> None:
    """param += scale * change, with a number or a tensor as `scale`."""
    if isinstance(scale, Tensor):
        param.add_(change * scale)
    else:
        param.add_(change, alpha=scale)


def add_ratio_(param: Tensor, over: Tensor, under: Tensor, scale: Any) -> None:
    """param += scale * over / under, with a number or a tensor as `scale`."""
    if isinstance(scale, Tensor):
        param.add_(over / under * scale)
    else:
        param.addcdiv_(over, under, value=scale)


class PerParameter(Optimizer):
    """The base: a subclass defines _begin(), which returns the initial state of a parameter, and
    _move(), which updates a parameter and its state.

    The state has a count of steps. `maximize` and `weight_decay`, where a group has them, change
    the gradient before _move(); decoupled_weight_decay scales the parameter instead. Complex
    tensors are treated as pairs of real numbers. foreach and fused are accepted and have no effect;
    differentiable lets autograd record the steps.
    """

    # Whether weight_decay is applied before _move(); if not, _move() applies it.
    _decays_first = True
    _counts: tuple[str, ...] = ("step",)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        rates = ("lr", "eps", "weight_decay", "momentum", "lr_decay", "momentum_decay")
        given = {k: defaults[k] for k in rates if k in defaults and defaults[k] is not None}
        given = {k: v for k, v in given.items() if not isinstance(v, tuple)}
        check_not_negative(self._name(), **given)
        check_one_element(self._name(), defaults["lr"])
        check_betas(self._name(), defaults.get("betas", ()))
        foreach, fused = defaults.get("foreach"), defaults.get("fused")
        check_ways(self._name(), foreach, fused, bool(defaults.get("differentiable")))
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        raise NotImplementedError

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        raise NotImplementedError

    def _check(self, group: dict[str, Any], grad: Tensor) -> None:
        """Raises if the optimizer does not accept a gradient."""
        if grad.is_sparse:
            refuse_sparse(self._name(), grad)

    def _move_rows(self, group: dict[str, Any], param: Tensor, grad: Any, own: Any) -> None:
        """_move() for a sparse gradient; called only if _check() accepts it."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any]) -> None:
        check_capturable(self._name(), group)
        decay = group.get("weight_decay", 0) if self._decays_first else 0
        is_decoupled = group.get("decoupled_weight_decay", False)
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            self._check(group, grad)
            own: dict[str, Any] = self.state[param]
            if not own:
                own["step"] = lamella.zeros((), dtype=lamella.float32)
                own.update(self._begin(group, param))
            if group["maximize"]:
                grad = -grad
            if grad.is_sparse:
                own["step"] += 1
                self._move_rows(group, param, grad.coalesce(), own)
                continue
            if param.is_complex():
                param, grad = lamella.view_as_real(param), lamella.view_as_real(grad)
                own = {k: lamella.view_as_real(t) if t.is_complex() else t for k, t in own.items()}
            own["step"].add_(1)

            def move(param: Tensor, own: Any, grad: Tensor = grad) -> None:
                if decay and is_decoupled:
                    param.mul_(1 - group["lr"] * decay)
                elif decay:
                    grad = grad.add(param, alpha=decay)
                self._move(group, param, grad, own)

            if group.get("differentiable"):
                move_recorded(param, own, move)
            else:
                move(param, own)
