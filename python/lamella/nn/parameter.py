"""Parameter and Buffer: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _ParameterMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        marked = cls is Parameter and isinstance(instance, lamella.Tensor)
        return marked and getattr(instance, "_is_param", False)


class Parameter(lamella.Tensor, metaclass=_ParameterMeta):
    """A leaf over the memory of `data`, which becomes a parameter of the module it is assigned to.

    data: of any shape and layout; None gives an empty tensor. A tensor of a subclass keeps its
    class if its detach() does, and isinstance(..., Parameter) is true for it. requires_grad:
    whether to record gradients.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        data = lamella.empty(0) if data is None else data
        if data.layout != lamella.strided:
            sparse: Parameter = data._as_parameter(requires_grad)
            return sparse
        parameter: Parameter
        if type(data) not in (lamella.Tensor, Parameter, Buffer) and cls is Parameter:
            parameter = data.detach()
            if type(parameter) is type(data) and parameter is not data:
                parameter.requires_grad_(requires_grad)
                parameter._is_param = True  # type: ignore[attr-defined]
                return parameter
        parameter = _C._make_subclass(cls, data, requires_grad)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            data = self.detach().clone(memory_format=lamella.preserve_format)
            copy = type(self)(data, self.requires_grad)
            memo[id(self)] = copy
            _copy_attributes(self, copy, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = _C._as_subclass(self.detach(), lamella.Tensor)
        return _rebuild, (type(self), data, self.requires_grad, dict(self.__dict__))

    def __repr__(self, **options: Any) -> str:
        plain = _C._as_subclass(self.detach(), lamella.Tensor)
        plain.requires_grad_(self.requires_grad)
        return f"Parameter containing:\n{plain.__repr__(**options)}"


def _copy_attributes(source: Parameter, copy: Parameter, memo: dict[int, Any]) -> None:
    import copy as copies

    if source.__dict__:
        copy.__dict__.update(copies.deepcopy(source.__dict__, memo))


def _rebuild(cls: Any, data: Any, requires_grad: bool, attributes: dict[str, Any]) -> Parameter:
    parameter: Parameter = cls(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


class Buffer(lamella.Tensor):
    """A tensor over the memory of `data` that becomes a buffer of the module it is assigned to."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        data = lamella.empty(0) if data is None else data
        buffer: Buffer = _C._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer


class _Uninitialized(lamella.Tensor):
    """A tensor whose shape is not known yet; materialize() makes it one of the class `_becomes`."""

    _becomes: Any = None

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives the tensor a shape; its values are uninitialised."""
        device = _device_of(self) if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = lamella.empty(shape, device=device, dtype=dtype)
        self.__class__ = self._becomes

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: expected the tensor to have a shape, which the first call of "
            "its module determines; it cannot be loaded into a module with known shapes before"
        )

    def share_memory_(self) -> Any:
        """Raises, as there is no memory yet."""
        return self.shape

    def detach(self) -> Any:
        """The tensor itself."""
        return self

    def __repr__(self, **options: Any) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = _rebuild_lazy(*self.__reduce_ex__(4)[1])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        where = str(_device_of(self))
        return _rebuild_lazy, (type(self), self.requires_grad, where, self.dtype)


def _device_of(tensor: Any) -> Any:
    return lamella.Tensor.device.__get__(tensor)


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet."""

    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = lamella.empty(0, device=device, dtype=dtype)
        made: UninitializedParameter = _C._make_subclass(cls, data, requires_grad)
        return made


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is not known yet."""

    _becomes = Buffer
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = lamella.empty(0, device=device, dtype=dtype)
        made: UninitializedBuffer = _C._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        return made


def _rebuild_lazy(cls: Any, requires_grad: bool, device: str, dtype: Any) -> Any:
    return cls(requires_grad, device, dtype)


def is_lazy(param: Any) -> bool:
    """Whether the shape of a tensor is not known yet."""
    return isinstance(param, _Uninitialized)
