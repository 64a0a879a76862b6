"""Optimizers that divide steps by the magnitude of past gradients: Adadelta, Adagrad, Adamax,
NAdam, RAdam, RMSprop and SparseAdam."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import PerParameter, add_ratio_, add_scaled_, number, options
from lamella.optim.optimizer import check_not_negative

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "SparseAdam"]


def _zeros(param: Tensor, *names: str) -> dict[str, Tensor]:
    return {name: lamella.zeros_like(param) for name in names}


class Adadelta(PerParameter):
    """Zeiler, 2012: gradients scaled by the ratio of past steps to past gradients.

    s = rho s + (1 - rho) g^2; d = sqrt(a + eps) / sqrt(s + eps) g; a = rho a + (1 - rho) d^2;
    p = p - lr d.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0 <= rho <= 1:
            raise ValueError(f"Adadelta: expected 'rho' to be from 0 to 1, got {rho}")
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return _zeros(param, "square_avg", "acc_delta")

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        rho, eps = group["rho"], group["eps"]
        square, changes = own["square_avg"], own["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        change = (changes + eps).sqrt_() / (square + eps).sqrt_() * grad
        changes.mul_(rho).addcmul_(change, change, value=1 - rho)
        add_scaled_(param, change, -group["lr"])


class Adagrad(PerParameter):
    """Duchi, Hazan and Singer, 2011: s = s + g^2; p = p - lr / (1 + (step - 1) lr_decay) g /
    (sqrt(s) + eps)."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative("Adagrad", initial_accumulator_value=initial_accumulator_value)
        super().__init__(params, options(locals()))
        # The state exists before the first step, so that processes can share it.
        for group in self.param_groups:
            for param in group["params"]:
                first = {"step": lamella.zeros((), dtype=lamella.float32)}
                self.state[param].update(first, **self._begin(group, param))

    def share_memory(self) -> None:
        """Moves the state of all parameters to shared memory."""
        for own in self.state.values():
            for tensor in own.values():
                tensor.share_memory_()

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        first: Any = group["initial_accumulator_value"]
        first = complex(first, first) if param.is_complex() else first
        return {"sum": lamella.full_like(param, first)}

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, total = group["lr"], own["sum"]
        if group["lr_decay"]:
            lr = lr / (1 + (number(own["step"], lr) - 1) * group["lr_decay"])
        total.addcmul_(grad, grad)
        add_ratio_(param, grad, total.sqrt() + group["eps"], -lr)

    def _check(self, group: dict[str, Any], grad: Tensor) -> None:
        if grad.is_sparse and group["weight_decay"]:
            raise RuntimeError(
                "Adagrad: expected 'weight_decay' to be 0 for sparse gradients, got "
                f"{group['weight_decay']}"
            )

    def _move_rows(self, group: dict[str, Any], param: Tensor, grad: Any, own: Any) -> None:
        lr = group["lr"] / (1 + (number(own["step"], group["lr"]) - 1) * group["lr_decay"])
        values, total = grad.values(), own["sum"]
        total.add_(grad.square())
        under = total.sparse_mask(grad).values().sqrt().add_(group["eps"])
        param.add_(grad._with(values / under), alpha=-lr)


class Adamax(PerParameter):
    """Kingma and Ba, 2015, section 7: Adam with a decaying maximum of |g| in place of the mean
    square.

    m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g| + eps); p = p - lr / (1 - beta1^step) m / u.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return _zeros(param, "exp_avg", "exp_inf")

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, (beta1, beta2) = group["lr"], group["betas"]
        mean, largest = own["exp_avg"], own["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        largest.mul_(beta2).clamp_min_(grad.abs().add_(group["eps"]))
        add_ratio_(param, mean, largest, -lr / (1 - beta1 ** number(own["step"], lr)))


class NAdam(PerParameter):
    """Dozat, 2016: Adam with Nesterov's momentum.

    mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), and the product of all mu so far replaces
    beta1^step.
    """

    _counts = ("step", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        one = lamella.ones((), dtype=lamella.float32)
        return {"mu_product": one, **_zeros(param, "exp_avg", "exp_avg_sq")}

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["momentum_decay"]
        mean, square, step = own["exp_avg"], own["exp_avg_sq"], number(own["step"], lr)
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        after = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = number(own["mu_product"].mul_(mu), lr)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = (square / (1 - beta2**step)).sqrt_() + group["eps"]
        add_ratio_(param, grad, scale, -lr * (1 - mu) / (1 - product))
        add_ratio_(param, mean, scale, -lr * after / (1 - product * after))


class RAdam(PerParameter):
    """Liu and others, 2020: Adam that divides by sqrt(v) only once its variance is tractable."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return _zeros(param, "exp_avg", "exp_avg_sq")

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, (beta1, beta2) = group["lr"], group["betas"]
        mean, square, step = own["exp_avg"], own["exp_avg_sq"], number(own["step"], lr)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rate = lr / (1 - beta1**step)
        correction = 1 - beta2**step
        # The length of the moving average: equation 5 of the paper.
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * beta2**step / correction
        over = (length - 4) * (length - 2) * most
        under = (most - 4) * (most - 2) * length
        if isinstance(length, Tensor):
            scale = (over / under).clamp_min(0).sqrt() * correction.sqrt()
            known = mean * scale / (square.sqrt() + group["eps"])
            param.sub_(lamella.where(length > 5, known, mean) * rate)
        elif length > 5:
            scale = (over / under) ** 0.5 * correction**0.5
            param.addcdiv_(mean, square.sqrt() + group["eps"], value=-rate * scale)
        else:
            param.add_(mean, alpha=-rate)


class RMSprop(PerParameter):
    """Hinton's lecture 6 of 2012: s = alpha s + (1 - alpha) g^2; p = p - lr g / (sqrt(s) + eps).

    centered: subtracts the square of the mean gradient from s. momentum: b = momentum b + g /
    (sqrt(s) + eps); p = p - lr b.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative("RMSprop", alpha=alpha)
        super().__init__(params, options(locals()))

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        own = _zeros(param, "square_avg")
        if group["momentum"] > 0:
            own.update(_zeros(param, "momentum_buffer"))
        if group["centered"]:
            own.update(_zeros(param, "grad_avg"))
        return own

    def _move(self, group: dict[str, Any], param: Tensor, grad: Tensor, own: Any) -> None:
        lr, alpha, square = group["lr"], group["alpha"], own["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = own["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        scale = square.sqrt() + group["eps"]
        if group["momentum"] > 0:
            buffer = own["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(grad, scale)
            add_scaled_(param, buffer, -lr)
        else:
            add_ratio_(param, grad, scale, -lr)


class SparseAdam(PerParameter):
    """Adam for sparse gradients: elements that a gradient does not store keep value and means.

    m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2;
    p = p - lr sqrt(1 - beta2^step) / (1 - beta1^step) m / (sqrt(v) + eps).
    """

    _counts = ()

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))
        for group in self.param_groups:
            for param in group["params"]:
                if param.is_sparse or param.is_complex():
                    raise ValueError(
                        "SparseAdam: expected dense parameters of real numbers, got "
                        f"{'a sparse' if param.is_sparse else 'a complex'} one"
                    )

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": 0, **_zeros(param, "exp_avg", "exp_avg_sq")}

    def _check(self, group: dict[str, Any], grad: Tensor) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam: expected sparse gradients, got a dense one, which Adam takes"
            )

    def _move_rows(self, group: dict[str, Any], param: Tensor, grad: Any, own: Any) -> None:
        (beta1, beta2), step = group["betas"], own["step"]
        values = grad.values()
        moved = []
        for name, beta, wanted in (
            ("exp_avg", beta1, values),
            ("exp_avg_sq", beta2, values * values),
        ):
            before = own[name].sparse_mask(grad).values()
            change = (wanted - before).mul_(1 - beta)
            own[name].add_(grad._with(change))
            moved.append(before.add_(change))
        mean, square = moved
        scale = -group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        ratio = mean.div_(square.sqrt_().add_(group["eps"]))
        param.add_(grad._with(ratio), alpha=float(scale))
