"""Schedulers that move rates up and down, and momenta the opposite way, in one cycle or many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lamella.optim._scheduler import LRScheduler, set_lr
from lamella.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


class _Cyclic(LRScheduler):
    def _each(self, name: str, value: Any, count: int) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise ValueError(
                f"{type(self).__name__}: expected '{name}' to have {count} values, one for each "
                f"group, got {len(value)}"
            )
        return list(value)

    def _begin_momenta(
        self, optimizer: Optimizer, base_momentum: Any, max_momentum: Any, last_epoch: int
    ) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                f"{type(self).__name__}: expected an optimizer with 'momentum' or 'betas' for "
                "cycle_momentum"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        groups = optimizer.param_groups
        low = self._each("base_momentum", base_momentum, len(groups))
        high = self._each("max_momentum", max_momentum, len(groups))
        if last_epoch == -1:
            for group, base, most in zip(groups, low, high):
                group["base_momentum"], group["max_momentum"] = base, most
                self._set_momentum(group, most)

    @staticmethod
    def _set_momentum(group: dict[str, Any], value: Any) -> None:
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


_HEIGHTS = ("triangular", "triangular2", "exp_range")


class CyclicLR(_Cyclic):
    """Smith, 2017: from base_lr to max_lr within step_size_up steps and back within step_size_down,
    again and again.

    mode: cycles as high as the first ("triangular"), half as high as the one before
    ("triangular2"), or gamma^step as high ("exp_range"); scale_fn in its place takes the number of
    the cycle or, with scale_mode "iterations", of the step. Momentum (or beta1) goes the other way
    with cycle_momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in _HEIGHTS and scale_fn is None:
            raise ValueError(
                f"CyclicLR: expected 'mode' to be {', '.join(_HEIGHTS[:2])} or {_HEIGHTS[2]}, got "
                f"'{mode}'"
            )
        count = len(optimizer.param_groups)
        lowest = self._each("base_lr", base_lr, count)
        self.max_lrs = self._each("max_lr", max_lr, count)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, lowest):
                set_lr(group, lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momenta(optimizer, base_momentum, max_momentum, last_epoch)
            groups = optimizer.param_groups
            self.base_momentums = [group["base_momentum"] for group in groups]
            self.max_momentums = [group["max_momentum"] for group in groups]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle or step as a fraction of max_lr - base_lr."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """See the class."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        done = 1.0 + self.last_epoch / self.total_size - cycle
        is_up = done <= self.step_ratio
        share = done / self.step_ratio if is_up else (done - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                low, high = group["base_momentum"], group["max_momentum"]
                self._set_momentum(group, high - (high - low) * share * height)
        return [
            low + (high - low) * share * height for low, high in zip(self.base_lrs, self.max_lrs)
        ]

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer and a scale_fn that is a plain function."""
        state = super().state_dict()
        scale = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None
        if scale is not None and not hasattr(scale, "__code__"):
            state["_scale_fn_custom"] = dict(scale.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict()."""
        state = dict(state_dict)
        own = state.pop("_scale_fn_custom")
        if own is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(own)
        self.__dict__.update(state)


# The keys of a phase: its last step, and the names of the rates and momenta at its start and end.
# They are PyTorch's, since checkpoints contain them.
_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")


class OneCycleLR(_Cyclic):
    """Smith and Topin's policy: the rate rises to max_lr, then falls far below its initial value.

    total_steps, or epochs and steps_per_epoch. anneal_strategy: cos or linear. three_phase: down as
    fast as up, then to the minimum. Momentum (or beta1) goes the other way with cycle_momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: expected 'total_steps', or 'epochs' and 'steps_per_epoch'"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(
                f"OneCycleLR: expected 'total_steps' to be positive, got {total_steps}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: expected 'pct_start' to be from 0 to 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: expected 'anneal_strategy' to be cos or linear, got "
                f"'{anneal_strategy}'"
            )
        self.total_steps = total_steps
        top = float(pct_start * total_steps) - 1
        phases = [(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            down = 2 * pct_start * total_steps - 2
            phases += [
                (down, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            phases.append((total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(_PHASE, phase)) for phase in phases]
        self._anneal_func_type = anneal_strategy
        groups = optimizer.param_groups
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, highest in zip(groups, self._each("max_lr", max_lr, len(groups))):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._begin_momenta(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, done: float) -> float:
        linear = self._anneal_func_type == "linear"
        return (self._annealing_linear if linear else self._annealing_cos)(start, end, done)

    @staticmethod
    def _annealing_linear(start: float, end: float, done: float) -> float:
        return start + (end - start) * done

    @staticmethod
    def _annealing_cos(start: float, end: float, done: float) -> float:
        return end + (start - end) / 2 * (1 + math.cos(math.pi * done))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict(); older states have the function of annealing."""
        super().load_state_dict(state_dict)
        older = self.__dict__.pop("anneal_func", None)
        if "_anneal_func_type" not in self.__dict__:
            self._anneal_func_type = "linear" if older is self._annealing_linear else "cos"

    def get_lr(self) -> list[Any]:
        """See the class."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: expected at most {self.total_steps} steps, got step {step}"
            )
        values = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end, lr_from, lr_to, momentum_from, momentum_to = (phase[key] for key in _PHASE)
                if step <= end or i == len(self._schedule_phases) - 1:
                    done = (step - start) / (end - start)
                    values.append(self._between(group[lr_from], group[lr_to], done))
                    if self.cycle_momentum:
                        self._set_momentum(
                            group, self._between(group[momentum_from], group[momentum_to], done)
                        )
                    break
                start = end
        return values
