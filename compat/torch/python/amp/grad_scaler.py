"""torch.amp.grad_scaler."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import lamella
from lamella import Tensor


class OptState(enum.Enum):
    """The progress of an optimizer's step."""

    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    """Scales losses so that half-precision gradients do not underflow, and unscales the gradients.

    step() skips steps whose gradients are infinite or NaN. update() then reduces the scale, or
    increases it after `growth_interval` good steps. Without the device it does nothing.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not isinstance(device, str):  # torch.cuda.amp.GradScaler(init_scale)
            device, init_scale = "cuda", device
        if enabled and device == "cuda" and not lamella.cuda.is_available():
            warnings.warn(
                "GradScaler: expected a CUDA device, found none; it is disabled", stacklevel=2
            )
            enabled = False
        if growth_factor <= 1.0 or backoff_factor >= 1.0:
            raise ValueError(
                "GradScaler: expected growth_factor > 1 and backoff_factor < 1, got "
                f"{growth_factor} and {backoff_factor}"
            )
        self._enabled = enabled
        self._device = device
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # For each optimizer with unscaled gradients: True if a gradient was infinite or NaN.
        self._found: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """Multiplies a tensor, or each tensor in nested lists and tuples, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(entry) for entry in outputs)
        raise ValueError(f"scale: expected tensors, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale; allowed once in each
        step."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_: expected to be called once between two updates")
        found = False
        with lamella.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(1.0 / self._scale)
                        found = found or not bool(parameter.grad.isfinite().all().item())
        self._found[id(optimizer)] = found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step() unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("step: expected no 'closure' with scaled gradients")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Sets the next step's scale: `new_scale`, or according to the gradients of this step."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise AssertionError("update: expected step() or unscale_() to be called before")
        elif any(self._found.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._found.clear()

    def get_scale(self) -> float:
        """The scale, or 1.0 if disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether scaling is enabled."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """The number of good steps after which the scale grows."""
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        """The state, or an empty dictionary if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state of state_dict()."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict: expected the state of an enabled scaler, got none")
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
