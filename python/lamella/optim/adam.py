"""Adam, and AdamW, which is Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import add_ratio_, check_betas
from lamella.optim.optimizer import (
    Optimizer,
    as_real,
    check_capturable,
    check_not_negative,
    check_one_element,
    check_ways,
    move_recorded,
    refuse_sparse,
)

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Kingma and Ba, 2015: steps by running means of the gradient and of its square.

    m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, both divided by 1 - beta^step;
    p = p - lr m / (sqrt(v) + eps). weight_decay: weight_decay * p is added to g, or, with
    decoupled_weight_decay, lr * weight_decay * p is subtracted from p. amsgrad: uses the largest v
    so far.

    foreach and fused are accepted: all parameters of a group are updated by one call in any case.
    differentiable lets autograd record the steps.
    """

    _counts = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative(self._name(), lr=lr, eps=eps, weight_decay=weight_decay)
        check_one_element(self._name(), lr)
        check_betas(self._name(), betas)
        check_ways(self._name(), foreach, fused, differentiable)
        # PyTorch's order, which files of its states have.
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _state_of(self, param: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        own: dict[str, Tensor] = self.state[param]
        if not own:
            own["step"] = lamella.zeros((), dtype=lamella.float32)
            own["exp_avg"] = lamella.zeros_like(param)
            own["exp_avg_sq"] = lamella.zeros_like(param)
        if amsgrad and "max_exp_avg_sq" not in own:
            own["max_exp_avg_sq"] = lamella.zeros_like(param)
        return own

    def _update_recorded(self, group: dict[str, Any]) -> None:
        """The same update by operators that autograd records."""
        lr, (beta1, beta2) = group["lr"], group["betas"]
        decay = group["weight_decay"]
        for param in group["params"]:
            if param.grad is None:
                continue
            refuse_sparse("Adam", param.grad)
            own = self._state_of(param, group["amsgrad"])
            grad = -param.grad if group["maximize"] else param.grad
            own["step"].add_(1)
            step = own["step"].item()
            tensors = [param, grad, *(own[name] for name in own if name != "step")]
            tensors = [lamella.view_as_real(t) if t.is_complex() else t for t in tensors]
            state = dict(zip([name for name in own if name != "step"], tensors[2:]))

            def move(p: Tensor, own: Any, g: Tensor = tensors[1], step: float = step) -> None:
                if decay and group["decoupled_weight_decay"]:
                    p.mul_(1 - lr * decay)
                elif decay:
                    g = g.add(p, alpha=decay)
                own["exp_avg"].lerp_(g, 1 - beta1)
                square = own["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
                if group["amsgrad"]:
                    square = lamella.maximum(own["max_exp_avg_sq"], square)
                    own["max_exp_avg_sq"] = square
                under = (square.sqrt() / (1 - beta2**step) ** 0.5).add(group["eps"])
                add_ratio_(p, own["exp_avg"], under, -lr / (1 - beta1**step))

            move_recorded(tensors[0], state, move)

    def _update(self, group: dict[str, Any]) -> None:
        check_capturable("Adam", group)
        if group["differentiable"]:
            self._update_recorded(group)
            return
        amsgrad = group["amsgrad"]
        params: list[Tensor] = []
        grads: list[Tensor] = []
        means: list[Tensor] = []
        squares: list[Tensor] = []
        largest: list[Tensor] = []
        steps: list[Tensor] = []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                refuse_sparse("Adam", grad)
            own = self._state_of(param, amsgrad)
            params.append(param)
            grads.append(grad)
            means.append(own["exp_avg"])
            squares.append(own["exp_avg_sq"])
            steps.append(own["step"])
            if amsgrad:
                largest.append(own["max_exp_avg_sq"])
        if not params:
            return
        beta1, beta2 = group["betas"]
        update: Callable[..., None]
        update = lamella._fused_adamw_ if group["decoupled_weight_decay"] else lamella._fused_adam_
        if isinstance(group["lr"], Tensor):  # is not read, so that it stays a tensor
            operators = lamella.ops.aten
            is_w = group["decoupled_weight_decay"]
            update = (operators._fused_adamw_ if is_w else operators._fused_adam_).tensor_lr
        lamella._foreach_add_(steps, 1)
        params, grads, means, squares, largest = as_real(params, grads, means, squares, largest)
        update(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
