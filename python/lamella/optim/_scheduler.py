"""The common base of the learning rate schedulers."""

from __future__ import annotations

import warnings
from typing import Any

from lamella import Tensor
from lamella.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "step: expected no 'epoch': PyTorch will remove it, as a schedule counts its epochs itself"
)


def set_lr(group: dict[str, Any], value: Any) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


class LRScheduler:
    """The base: get_lr() returns the rates of all groups for `last_epoch`.

    base_lrs: the initial rates of the groups. last_epoch: -1 starts a new schedule; else the
    groups must have an 'initial_lr', as they do after loading.
    """

    # Defaults for schedulers that do not call __init__() of this class.
    _get_lr_called_within_step = False
    _is_initial = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: expected 'optimizer' to be an Optimizer, got "
                f"{type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: expected group {i} to have 'initial_lr', as "
                    f"last_epoch is {last_epoch}"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """The step that sets the rates of the first epoch, or keeps those of a checkpoint."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _undo(self) -> None:
        """Undoes the count of the step that __init__() made; the rates stay."""
        self.last_epoch -= 1

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`, given those of the step before."""
        raise NotImplementedError(f"{type(self).__name__}: expected the class to define get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advances to the next epoch, or to the one given."""
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Makes a step without counting it."""
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values):
            set_lr(group, value)
        self._last_lr = self._now()

    def _now(self) -> list[Any]:
        """The current rates of the groups; tensors are cloned, so that later steps do not change
        them."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [lr.clone() if isinstance(lr, Tensor) else lr for lr in rates]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                f"{type(self).__name__}: get_lr() computes the rates of a step from those of the "
                "step before; get_last_lr() gives the rates that were set last",
                UserWarning,
                stacklevel=3,
            )

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict()."""
        self.__dict__.update(state_dict)
