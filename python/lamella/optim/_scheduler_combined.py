"""Schedulers without a formula: combinations of other schedulers, and reduction on a plateau."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Sequence
from typing import Any

from lamella.optim._scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, set_lr
from lamella.optim.optimizer import Optimizer


def _check_plain(name: str, schedulers: Sequence[LRScheduler]) -> None:
    if any(isinstance(scheduler, ReduceLROnPlateau) for scheduler in schedulers):
        raise ValueError(
            f"{name}: expected schedulers whose step() takes no metric, got a ReduceLROnPlateau"
        )


class _Several(LRScheduler):
    """The base of schedulers that combine others; its state contains theirs."""

    _schedulers: list[LRScheduler]

    def _undo(self) -> None:
        for scheduler in self._schedulers:
            scheduler._undo()

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer, with the states of the schedulers."""
        state = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "_schedulers")
        }
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict()."""
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(own)
        self.__dict__.update(state)


class SequentialLR(_Several):
    """One scheduler after the other; the next one takes over at the epochs in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones for {len(schedulers)} "
                f"schedulers, got {len(milestones)}"
            )
        _check_plain("SequentialLR", schedulers)
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("SequentialLR: expected all schedulers to have the same optimizer")
        self.optimizer = optimizer
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Constructing the schedulers changed the rates: restore them and start the first scheduler.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        self._undo()
        first = schedulers[bisect.bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Advances to the next epoch."""
        if epoch is not None:
            raise ValueError("SequentialLR: expected 'epoch' to be None")
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedulers at each step: each one changes the rate that the one before has set."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: expected 'schedulers' not to be empty")
        optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _check_plain("ChainedScheduler", schedulers)
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("ChainedScheduler: expected all schedulers to have the same optimizer")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._last_lr = self._now()

    # The schedulers are stepped without an epoch, so there is no such argument.
    def step(self) -> None:  # type: ignore[override]
        """Advances to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by `factor` when the metric given to step() has not improved for more
    than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: expected 'factor' to be below 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: expected 'mode' to be min or max, got '{mode}'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceLROnPlateau: expected 'threshold_mode' to be rel or abs, got "
                f"'{threshold_mode}'"
            )
        self.factor = factor
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        self.default_min_lr = None if several else min_lr
        self.min_lrs: list[Any] = list(min_lr) if several else [min_lr] * count  # type: ignore
        if len(self.min_lrs) != count:
            raise ValueError(
                f"ReduceLROnPlateau: expected 'min_lr' to have {count} values, got "
                f"{len(self.min_lrs)}"
            )
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._now()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a is better than `best` by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * a > sign * best * (1 + sign * self.threshold)
        return sign * a > sign * best + self.threshold

    # The name and the argument are PyTorch's, so this is no step() of the base class.
    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advances to the next epoch; `metrics` is the value of its metric."""
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                old = float(group["lr"])
                new = max(old * self.factor, least)
                if old - new > self.eps:
                    set_lr(group, new)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._now()
