"""torch.amp.grad_scaler."""

from __future__ import annotations

import enum
import inspect
import warnings
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat._functions import (
    _amp_foreach_non_finite_check_and_unscale_,
    _amp_update_scale_,
)


class OptState(enum.Enum):
    """The progress of an optimizer's step."""

    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    """Scales losses so that half-precision gradients do not underflow, and unscales the gradients.

    step() skips steps whose gradients are infinite or NaN. update() then reduces the scale, or
    increases it after `growth_interval` good steps. Without the device it does nothing. The scale
    is a tensor on the device of the losses; only step() and get_scale() wait for the device.
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
        self._init_scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Made by the first scale(), on its device.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        # For each optimizer with unscaled gradients, by device: 1 if one was infinite or NaN.
        self._found: dict[int, dict[lamella.device, Tensor]] = {}

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = lamella.full((), self._init_scale, device=device)
            start = self._init_growth_tracker
            self._growth_tracker = lamella.full((), start, dtype=lamella.int32, device=device)
        return self._scale.to(device, non_blocking=True)

    def scale(self, outputs: Any) -> Any:
        """Multiplies a tensor, or each tensor in nested lists and tuples, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
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
        if self._scale is None:
            raise AssertionError("unscale_: expected scale() to be called before")
        self._multiply(optimizer, self._scale.double().reciprocal().float())

    def _multiply(self, optimizer: Any, inverse: Tensor) -> None:
        """Multiplies the gradients, and keeps whether they are finite."""
        none = lamella.zeros((), device=inverse.device)
        self._found[id(optimizer)] = self._unscale_grads_(optimizer, inverse, none, False)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[lamella.device, Tensor]:
        """Multiplies the gradients, and returns for each device whether one is not finite, starting
        from found_inf. Programs replace this method to allow gradients of float16."""
        grads: dict[lamella.device, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.dtype == lamella.float16 and not allow_fp16:
                    raise ValueError("unscale_: expected gradients of float32, got float16")
                if parameter.grad.is_sparse and parameter.grad.dtype == lamella.float16:
                    # Sums of elements that are finite may not be.
                    parameter.grad = parameter.grad.coalesce()
                gradient = parameter.grad
                gradient = gradient._values() if gradient.is_sparse else gradient
                grads.setdefault(gradient.device, []).append(gradient)
        found: dict[lamella.device, Tensor] = {}
        with lamella.no_grad():
            for device, of_device in grads.items():
                found[device] = found_inf.to(device, copy=True)
                _amp_foreach_non_finite_check_and_unscale_(
                    of_device, found[device], inv_scale.to(device, non_blocking=True)
                )
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step() unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("step: expected no 'closure' with scaled gradients")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._scaled_step(optimizer, *args, **kwargs)
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        if any(found.item() for found in self._found[id(optimizer)].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _scaled_step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of an optimizer that unscales: it gets the scaler, or the scale as attributes."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "step: 'grad_scaler' as an argument is deprecated; optimizers have the attributes "
                "grad_scale and found_inf",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if self._scale is None:
            raise AssertionError("step: expected scale() to be called before")
        optimizer.grad_scale = None if id(optimizer) in self._found else self._scale
        if optimizer.grad_scale is not None:
            self._multiply(optimizer, lamella.ones(()))
        optimizer.found_inf = sum(self._found[id(optimizer)].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Sets the next step's scale: `new_scale`, or according to the gradients of this step."""
        if not self._enabled:
            return
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError("update: expected scale() to be called before")
        if new_scale is not None:
            is_tensor = isinstance(new_scale, Tensor)
            self._scale.copy_(new_scale) if is_tensor else self._scale.fill_(new_scale)
        else:
            every = [one for found in self._found.values() for one in found.values()]
            if not every:
                raise AssertionError("update: expected step() or unscale_() to be called before")
            whole = every[0].to(self._scale.device, non_blocking=True)
            for one in every[1:]:
                whole = lamella.maximum(whole, one.to(whole.device, non_blocking=True))
            _amp_update_scale_(
                self._scale,
                self._growth_tracker,
                whole,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._found.clear()

    def get_scale(self) -> float:
        """The scale, or 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

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
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker
            if self._growth_tracker is None
            else self._growth_tracker.item(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state of state_dict()."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict: expected the state of an enabled scaler, got none")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        self._scale = self._growth_tracker = None
