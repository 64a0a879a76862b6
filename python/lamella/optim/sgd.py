"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import add_scaled_, options
from lamella.optim.optimizer import Optimizer, as_real, check_not_negative, check_ways

__all__ = ["SGD"]

# Parameters, gradients, momentum buffers.
_Rows = tuple[list[Tensor], list[Tensor], list[Tensor]]


class SGD(Optimizer):
    """g = gradient + weight_decay * p; with momentum b = momentum * b + (1 - dampening) * g
    replaces g (nesterov: g + momentum * b); p = p - lr * g. maximize: ascends.

    foreach and fused are accepted: all parameters of a group are updated by one call in any case.
    differentiable lets autograd record the steps, except that the first momentum is detached.
    """

    _counts = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: expected 'nesterov' to have a momentum above 0 and no dampening, got "
                f"momentum {momentum} and dampening {dampening}"
            )
        check_ways("SGD", foreach, fused, differentiable)
        super().__init__(params, options(locals()))

    def _update_recorded(self, group: dict[str, Any]) -> None:
        """The same update by operators that autograd records."""
        momentum = group["momentum"]
        for param in group["params"]:
            grad = param.grad
            if grad is None or self._move_rows(group, param):
                continue
            grad = -grad if group["maximize"] else grad
            if group["weight_decay"]:
                grad = grad.add(param.clone(), alpha=group["weight_decay"])
            if momentum:
                own = self.state[param]
                buffer = own.get("momentum_buffer")
                if buffer is None:
                    made = grad.detach().clone()
                else:
                    made = (buffer * momentum).add(grad, alpha=1 - group["dampening"])
                own["momentum_buffer"] = made
                grad = grad.add(made, alpha=momentum) if group["nesterov"] else made
            add_scaled_(param, grad, -group["lr"])

    def _update(self, group: dict[str, Any]) -> None:
        if group["differentiable"]:
            self._update_recorded(group)
            return
        params = group["params"]
        grads = [param.grad for param in params]
        for grad in grads:
            if grad is None or grad.is_sparse:
                params = [p for p in params if p.grad is not None and not self._move_rows(group, p)]
                grads = [param.grad for param in params]
                break
        if not group["momentum"]:
            if params:
                _apply(group, (params, grads, []), False)
            return
        known: _Rows = ([], [], [])
        new: _Rows = ([], [], [])
        for param, grad in zip(params, grads):
            rows = known
            own = self.state[param]
            buffer = own.get("momentum_buffer")
            if buffer is None:
                # The update sets it to the first gradient, without dampening: see is_first_step.
                buffer = own["momentum_buffer"] = lamella.empty_like(param)
                rows = new
            rows[0].append(param)
            rows[1].append(grad)
            rows[2].append(buffer)
        if known[0]:
            _apply(group, known, False)
        if new[0]:
            _apply(group, new, True)

    def _move_rows(self, group: dict[str, Any], param: Tensor) -> bool:
        """Updates a parameter whose gradient is sparse; returns False if it is dense."""
        grad: Any = param.grad
        if not grad.is_sparse:
            return False
        if group["weight_decay"]:
            raise RuntimeError(
                "SGD: expected 'weight_decay' to be 0 for sparse gradients, got "
                f"{group['weight_decay']}"
            )
        if group["maximize"]:
            grad = -grad
        if group["momentum"]:
            own = self.state[param]
            buffer = own.get("momentum_buffer")
            if buffer is None:
                buffer = own["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        param.add_(grad, alpha=-group["lr"])
        return True


def _apply(group: dict[str, Any], rows: _Rows, first: bool) -> None:
    params, grads, buffers = as_real(*rows)
    # A learning rate that is a tensor is not read, so that it stays a tensor.
    is_tensor = isinstance(group["lr"], Tensor)
    update = lamella.ops.aten._fused_sgd_.tensor_lr if is_tensor else lamella._fused_sgd_
    update(
        params,
        grads,
        buffers,
        weight_decay=group["weight_decay"],
        momentum=group["momentum"],
        lr=group["lr"],
        dampening=group["dampening"],
        nesterov=group["nesterov"],
        maximize=group["maximize"],
        is_first_step=first,
    )
