"""torch._subclasses: FakeTensorMode, in which tensors have shapes and dtypes but no memory."""

from __future__ import annotations

import sys
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.utils._python_dispatch import TorchDispatchMode
from lamella.utils._pytree import tree_flatten, tree_map_only

_META = lamella.device("meta")
# Sizes are numbers, so results whose size or value depends on data are errors.
_OF_DATA = frozenset({"data_dependent_output", "dynamic_output_shape"})


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be fake."""


class DataDependentOutputException(RuntimeError):
    """A value that depends on data, which a fake tensor has not."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: expected data to compute the result from, got fake tensors")
        self.func = func


class DynamicOutputShapeException(DataDependentOutputException):
    """A shape that depends on data."""


class FakeTensor(Tensor):
    """A tensor on `meta` that says it is on another device. FakeTensorMode makes them."""

    fake_mode: FakeTensorMode
    _meta: Tensor
    constant = None

    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any) -> Any:
        made: Any = _C._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=lamella.device(device),
            requires_grad=elem.requires_grad,
        )
        made._meta, made.fake_mode = elem, fake_mode
        return made

    @property
    def fake_device(self) -> Any:
        """The device that the tensor says it is on."""
        return self.device

    def __repr__(self, **options: Any) -> str:
        return f"FakeTensor(..., device='{self.device}', size={tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = tree_flatten((args, kwargs or {}))[0]
        modes = [leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)]
        return modes[0]._run(func, args, kwargs or {})


class FakeTensorMode(TorchDispatchMode):
    """A context in which operators compute shapes alone: new tensors are fake."""

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def from_tensor(self, tensor: Tensor, **options: Any) -> Any:
        """A fake tensor of the same shape, dtype, strides and device."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if tensor.layout != lamella.strided:
            raise UnsupportedFakeTensorException(
                f"FakeTensorMode: expected a dense tensor, got one of layout {tensor.layout}"
            )
        meta = lamella.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
        )
        made = FakeTensor(self, meta, tensor.device)
        return made.requires_grad_(tensor.requires_grad)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._run(func, args, kwargs or {})

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tags = _OF_DATA.intersection(func.tags)
        if tags:
            shapes = "dynamic_output_shape" in tags
            raise (DynamicOutputShapeException if shapes else DataDependentOutputException)(func)
        devices = []

        def lower(tensor: Tensor) -> Tensor:
            if isinstance(tensor, FakeTensor):
                # A 0-d tensor of the CPU combines with tensors of any device.
                devices.append((tensor.dim() == 0 and tensor.device.type == "cpu", tensor.device))
                return tensor._meta
            # tensor() makes tensors without a call of an operator, so that they are not fake yet.
            devices.append((tensor.dim() == 0, tensor.device))
            return tensor.to("meta")

        flat = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, FakeTensor)]
        new_args, new_kwargs = tree_map_only(Tensor, lower, (tuple(args), dict(kwargs)))
        target = kwargs.get("device")
        # A kernel for Meta may be a Python function that makes tensors of its own.
        makes = any(argument.name == "device" for argument in func._schema.arguments)
        if makes and (target is not None or not devices):
            new_kwargs["device"] = _META
        made = func(*new_args, **new_kwargs)
        device = target or min(devices, key=lambda each: each[0], default=(0, "cpu"))[1]
        given = {id(each._meta): each for each in flat}

        def lift(tensor: Tensor) -> Any:
            known = given.get(id(tensor))
            return FakeTensor(self, tensor, device) if known is None else known

        return tree_map_only(Tensor, lift, made)


fake_tensor = sys.modules[__name__]


def is_fake(x: object) -> bool:
    """Whether a value is a fake tensor."""
    return isinstance(x, FakeTensor)


def _is_tensor_constructor(func: Any) -> bool:
    """Whether an operator takes no tensor and returns one, as empty() does."""
    schema = func._schema
    return not any("Tensor" in str(a.type) for a in schema.arguments) and (
        [str(each.type) for each in schema.returns] == ["Tensor"]
    )
