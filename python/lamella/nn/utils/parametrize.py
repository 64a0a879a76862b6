"""Parameters and buffers that modules compute from others whenever they are read."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.modules.container import ModuleDict, ModuleList
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

# Tensors computed within cached(), by module and name.
_cache: dict[tuple[int, str], Tensor] = {}
_caching = 0


@contextmanager
def cached() -> Iterator[None]:
    """A context in which each parametrized tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _register(module: Module, name: str, like: Tensor, value: Tensor) -> None:
    """Registers `value` as a parameter or a buffer, as `like` is."""
    if isinstance(like, Parameter):
        module.register_parameter(name, Parameter(value, like.requires_grad))
    else:
        module.register_buffer(name, value)


def _check(name: str, found: Any, wanted: Tensor, unsafe: bool) -> None:
    if not isinstance(found, Tensor):
        raise ValueError(f"{name}: expected a Tensor to be returned, got {type(found).__name__}")
    if unsafe:
        return
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        raise ValueError(
            f"{name}: expected {wanted.dtype} of shape {list(wanted.shape)} to be returned, got "
            f"{found.dtype} of {list(found.shape)}; unsafe=True allows it"
        )


class ParametrizationList(ModuleList):
    """The functions that compute a tensor, applied in order, and their input: `original`, or
    original0, original1, ... where right_inverse() returns several tensors."""

    original: Tensor

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if not modules:
            raise ValueError("ParametrizationList: expected 'modules' not to be empty")
        super().__init__(modules)
        self.unsafe = unsafe
        with lamella.no_grad():
            start = self._inverse(original)
        self.is_tensor = isinstance(start, Tensor)
        starts = [start] if isinstance(start, Tensor) else list(start)
        _check("parametrization", self._chain(starts), original, unsafe)
        if isinstance(start, Tensor):
            _check("right_inverse", start, original, unsafe)
            if start is not original:
                original.data = start.detach()
            if isinstance(original, Parameter):
                self.register_parameter("original", original)
            else:
                self.register_buffer("original", original)
            self.ntensors = 1
        else:
            for i, tensor in enumerate(start):
                _register(self, f"original{i}", original, tensor.detach())
            self.ntensors = len(start)

    def _inverse(self, value: Any) -> Any:
        for module in reversed(list(self)):
            inverse: Any = getattr(module, "right_inverse", None)
            if inverse is None:
                continue
            try:
                value = inverse(value)
            except NotImplementedError:
                continue
            if isinstance(value, list):
                value = tuple(value)
            if not isinstance(value, (Tensor, tuple)):
                raise ValueError(
                    "right_inverse: expected a Tensor or several to be returned, got "
                    f"{type(value).__name__}"
                )
        return value

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the computed tensor has the given value."""
        with lamella.no_grad():
            start = self._inverse(value)
            found = [start] if isinstance(start, Tensor) else list(start)
            for own, tensor in zip(self._originals(), found):
                _check("right_inverse", tensor, own, self.unsafe)
                own.data = tensor.detach()

    def _chain(self, starts: list[Tensor]) -> Any:
        first, *rest = self
        result = first(*starts)
        for module in rest:
            result = module(result)
        return result

    def forward(self) -> Tensor:
        """Computes the tensor."""
        return self._chain(self._originals())


def _computed(name: str) -> property:
    def get(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _caching:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _with_properties(module: Module) -> None:
    """Gives the module its own subclass, which can have properties."""
    cls = type(module)

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "pickle: expected a module without parametrizations; save its state_dict() instead, or "
            "remove them first"
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = cls.__new__(cls)
        made.__setstate__(copy.deepcopy(Module.__getstate__(self), memo))
        # The copy has its own class, so that removing a property from one module keeps the other's.
        _with_properties(made)
        for name in self.parametrizations:
            setattr(type(made), name, _computed(name))
        return made

    members = {"__getstate__": getstate, "__deepcopy__": deepcopy}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes module.tensor_name parametrization(original), or parametrization of the result of
    earlier parametrizations.

    If parametrization has right_inverse(), it computes `original` (one tensor or several) at first
    and after assignments. unsafe: shape and dtype may change. Returns the module.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        before = getattr(module, tensor_name)
        after = parametrization(before)
        _check("parametrization", after, before, unsafe)
        parametrizations: Any = module.parametrizations
        parametrizations[tensor_name].append(parametrization)
        parametrizations[tensor_name].unsafe |= unsafe
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)
    if original is None:
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _with_properties(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _computed(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module computes any tensor, or the one with the given name."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes module.tensor_name a parameter or buffer again: with its current values, or, without
    leave_parametrized, with the original ones. Returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: {type(module).__name__} has no parametrization of "
            f"'{tensor_name}'"
        )
    entries: Any = module.parametrizations
    made = entries[tensor_name]
    first = made._originals()[0]
    if leave_parametrized:
        with lamella.no_grad():
            value = getattr(module, tensor_name).detach()
        if made.is_tensor:
            first.data = value
        else:
            first = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    elif not made.is_tensor:
        raise ValueError(
            "remove_parametrizations: expected leave_parametrized=True for a tensor that is "
            f"computed from {made.ntensors}"
        )
    delattr(type(module), tensor_name)
    del entries[tensor_name]
    if isinstance(first, Parameter):
        module.register_parameter(tensor_name, first)
    else:
        module.register_buffer(tensor_name, first)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
