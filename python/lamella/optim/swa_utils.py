"""Averages of a model's weights over training, as its own model, and their learning rates."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.modules.batchnorm import _BatchNorm
from lamella.nn.modules.module import Module
from lamella.optim._scheduler import LRScheduler
from lamella.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _checked(decay: float) -> float:
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: expected 'decay' to be from 0 to 1, got {decay}")
    return decay


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that moves each average of a list by 1 - decay towards its new value."""
    _checked(decay)

    def update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        with lamella.no_grad():
            for mean, value in zip(ema_param_list, current_param_list):
                if mean.is_floating_point() or mean.is_complex():
                    mean.lerp_(value, 1 - decay)
                else:
                    mean.copy_(mean * decay + value * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that updates a list of means by new values; all values have the same weight."""

    def update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        with lamella.no_grad():
            for mean, value in zip(averaged_param_list, current_param_list):
                if mean.is_floating_point() or mean.is_complex():
                    mean.lerp_(value, float(1 / (num_averaged + 1)))
                else:
                    mean.add_((value - mean) / (num_averaged + 1))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function that returns decay * average + (1 - decay) * value."""
    _checked(decay)

    def update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with lamella.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function that returns the mean after one more value; all values have the same weight."""

    def update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with lamella.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those given to update_parameters().

    avg_fn(average, value, count) returns a new average, multi_avg_fn(averages, values, count)
    writes the averages; without either, all values have the same weight (Izmailov and others,
    2018). use_buffers: buffers are averaged, else copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: expected either 'avg_fn' or 'multi_avg_fn', got both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", lamella.tensor(0, dtype=lamella.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the averaged model."""
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Tensor]:
        rest = model.buffers() if self.use_buffers else ()
        return list(itertools.chain(model.parameters(), rest))

    def update_parameters(self, model: Module) -> None:
        """Updates the averages by the parameters of a model."""
        means = [mean.detach() for mean in self._tensors(self.module)]
        values = [
            value.detach().to(mean.device) for mean, value in zip(means, self._tensors(model))
        ]
        if self.n_averaged == 0:
            for mean, value in zip(means, values):
                mean.copy_(value)
        elif self.avg_fn is None:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update(means, values, self.n_averaged)
        else:
            for mean, value in zip(means, values):
                mean.copy_(self.avg_fn(mean, value, self.n_averaged))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers()):
                own.detach().copy_(other.detach())
        self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running statistics of batch normalisation from one pass over a loader."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    with lamella.no_grad():
        for batch in loader:
            input = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)


_ANNEAL: dict[str, Callable[[float], float]] = {
    "cos": lambda t: (1 - math.cos(math.pi * t)) / 2,
    "linear": lambda t: t,
}


class SWALR(LRScheduler):
    """Anneals the current rates to swa_lr within anneal_epochs, then keeps them constant."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in _ANNEAL:
            raise ValueError(
                f"SWALR: expected 'anneal_strategy' to be cos or linear, got '{anneal_strategy}'"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: expected 'anneal_epochs' to be an int from 0 on, got {anneal_epochs}"
            )
        count = len(optimizer.param_groups)
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * count
        if len(rates) != count:
            raise ValueError(f"SWALR: expected 'swa_lr' to have {count} values, got {len(rates)}")
        for group, rate in zip(optimizer.param_groups, rates):
            # A clone: writing a shared tensor of one group would change the others.
            group["swa_lr"] = rate.clone() if isinstance(rate, Tensor) else rate
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        part = step / max(1, self.anneal_epochs)
        return _ANNEAL[self.anneal_strategy](max(0.0, min(1.0, part)))

    def get_lr(self) -> list[Any]:
        """See the class."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(max(0, step - 1)), self._share(max(0, step))
        rates = []
        for group in self.optimizer.param_groups:
            # The rate at the start of annealing, computed back from the group's current rate, which
            # another schedule may have changed.
            first = group["swa_lr"]
            if before != 1:
                first = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + first * (1 - now))
        return rates
