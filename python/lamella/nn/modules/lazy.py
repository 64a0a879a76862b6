"""Layers whose sizes are inferred from the first input."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from lamella.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from lamella.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from lamella.nn.modules.linear import Linear
from lamella.nn.modules.module import Module
from lamella.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyModuleMixin(Module):
    """A module whose parameters get their shapes before the first call.

    A subclass defines initialize_parameters(), which is called with the arguments of the first
    call, and `cls_to_become`, the class that the module has after it.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_forward_pre_hook(_infer, with_kwargs=True)
        self.register_load_state_dict_pre_hook(_shape_as_loaded)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes, and draws their values."""
        raise NotImplementedError(
            f"{self._get_name()}: expected the class to define initialize_parameters()"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))


def _infer(module: Any, args: Any, kwargs: Any) -> None:
    with lamella.no_grad():
        module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"{module._get_name()}: expected initialize_parameters() to give all shapes"
        )
    for hooks in (module._hooks.forward_pre, module._hooks.load_pre):
        for key in [key for key, (hook, _) in hooks.items() if hook in (_infer, _shape_as_loaded)]:
            del hooks[key]
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _shape_as_loaded(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    for name, own in [*module._parameters.items(), *module._buffers.items()]:
        value = state_dict.get(prefix + name)
        if is_lazy(own) and isinstance(value, Tensor) and not is_lazy(value):
            with lamella.no_grad():
                own.materialize(value.shape)


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is inferred from the first input."""

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws new values, once there are shapes."""
        if self.in_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """in_features is the last size of the input."""
        if self.has_uninitialized_params():
            self.in_features = input.size(-1)
            _shape(self.weight, (self.out_features, self.in_features))
            _shape(self.bias, (self.out_features,))
            self.reset_parameters()


def _shape(tensor: Any, shape: Any) -> None:
    if tensor is not None:
        tensor.materialize(shape)


class _LazyConv(LazyModuleMixin):
    in_channels: int
    out_channels: int
    weight: Any
    bias: Any
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]

    def _begin(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws new values, once there are shapes."""
        if self.in_channels and not self.has_uninitialized_params():
            self.cls_to_become.reset_parameters(self)

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """in_channels is the size of the input before the spatial ones."""
        if not self.has_uninitialized_params():
            return
        dims, groups = self.cls_to_become._dims, self.groups
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"{self._get_name()}: expected 'input' to have {dims + 1} or {dims + 2} "
                f"dimensions, got {input.dim()}"
            )
        self.in_channels = input.size(-dims - 1)
        if self.in_channels % groups or self.out_channels % groups:
            raise ValueError(
                f"{self._get_name()}: expected the channels to be divisible by {groups} groups, "
                f"got {self.in_channels} and {self.out_channels}"
            )
        channels = (self.out_channels, self.in_channels // groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // groups)
        _shape(self.weight, (*channels, *self.kernel_size))
        _shape(self.bias, (self.out_channels,))
        self.reset_parameters()


class _LazyForward(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._begin(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (0, 0, kernel_size, stride, padding, output_padding)
        super().__init__(*shape, groups, False, dilation, padding_mode)
        self._begin(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d):
    """Conv1d whose in_channels is inferred from the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """Conv2d whose in_channels is inferred from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """Conv3d whose in_channels is inferred from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """ConvTranspose1d whose in_channels is inferred from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """ConvTranspose2d whose in_channels is inferred from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """ConvTranspose3d whose in_channels is inferred from the first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin):
    """Norms whose num_features is inferred from the first input."""

    num_features: int
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        eps: Any = 1e-5,
        momentum: Any = 0.1,
        affine: Any = True,
        track_running_stats: Any = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: Any = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = lamella.tensor(0, dtype=lamella.int64, device=device)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0, and resets the statistics, once there are shapes."""
        if self.num_features and not self.has_uninitialized_params():
            self.cls_to_become.reset_parameters(self)

    def initialize_parameters(self, input: Tensor) -> None:
        """num_features is the size of the channels."""
        if not self.has_uninitialized_params():
            return
        ranks = self.cls_to_become._ranks
        alone = self.cls_to_become.__name__.startswith("Instance") and input.dim() == ranks[0]
        self.num_features = input.size(0 if alone else 1)
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            _shape(tensor, (self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features is inferred from the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features is inferred from the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features is inferred from the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features is inferred from the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d whose num_features is inferred from the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d whose num_features is inferred from the first input."""

    cls_to_become = InstanceNorm3d
