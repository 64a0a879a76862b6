"""Module: a part of a network with its parameters, buffers and submodules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import lamella
from lamella import Tensor
from lamella.nn.modules import _entries, _hooks, _state
from lamella.nn.modules._entries import Entries
from lamella.nn.modules._everywhere import *  # noqa: F403
from lamella.nn.modules._to import to_arguments
from lamella.nn.parameter import Buffer, Parameter, is_lazy

__all__ = ["Module"]

Self = TypeVar("Self", bound="Module")


class Module:
    """The base of all parts of networks.

    Parameters, submodules and registered buffers that are assigned as attributes belong to the
    module: they are found by parameters() and the like, moved by to(), and saved by state_dict().
    A subclass calls super().__init__() first and computes in forward(), which the call of the
    module runs between its hooks.
    """

    training: bool
    # The version that state_dict() saves; a class increases it when its state's meaning changes.
    _version: int = 1
    # On an instance, its Hooks once it has had one; on the class, the hooks of all modules.
    _hooks: Any = None
    # Whether __init__() calls the __init__() of the next class in the MRO, with its arguments.
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}: expected no arguments for Module.__init__, got "
                f"{len(args) + len(kwargs)}"
            )
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = Entries(self)
        own["_buffers"] = Entries(self)
        own["_modules"] = Entries(self)
        own["_non_persistent_buffers_set"] = set()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the module's result."""
        raise NotImplementedError(f"{type(self).__name__}: expected the class to define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            # Passing an empty dictionary on would copy it.
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        return _hooks.call(self, self._hooks, args, kwargs)

    _call_impl = _wrapped_call_impl = __call__

    # ---- Attributes

    def __getattr__(self, name: str) -> Any:
        # Called if there is no such attribute: see Note [A module's entries are attributes].
        own = self.__dict__
        for kind, _ in _KINDS:
            if name in own.get(kind, ()):
                return own[kind][name]
        if name in _hooks.VIEWS:
            return _hooks.View(self, _hooks.VIEWS[name])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._claim(name, "_parameters")
            self.register_parameter(name, value)
            return
        if isinstance(value, Buffer) and name not in own.get("_buffers", ()):
            self._claim(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
            return
        if isinstance(value, Module):
            self._claim(name, "_modules")
            own["_modules"][name] = _hooks.registered("module", self, name, value)
            return
        for kind, noun in _KINDS:
            entries = own.get(kind)
            if entries is None or name not in entries:
                continue
            if value is not None and not (kind == "_buffers" and isinstance(value, Tensor)):
                raise TypeError(
                    f"{type(self).__name__}: expected {noun} '{name}' to be set to a "
                    f"{_EXPECTED[kind]} or None, got {type(value).__name__}"
                )
            entries[name] = _hooks.registered(kind[1:-1], self, name, value)
            return
        object.__setattr__(self, name, value)
        if name == "__class__":
            for kind, _ in _KINDS:
                if kind in own:
                    own[kind].place()

    def __delattr__(self, name: str) -> None:
        for kind, _ in _KINDS:
            entries = self.__dict__.get(kind, ())
            if name in entries:
                del entries[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _claim(self, name: str, kind: str) -> None:
        """Prepares for an entry of a kind: removes an attribute or entry of another kind."""
        own = self.__dict__
        if "_parameters" not in own:
            raise AttributeError(
                f"{type(self).__name__}: expected Module.__init__() to be called before '{name}' "
                "is set"
            )
        if name not in own[kind]:
            for other, _ in _KINDS:
                own[other].pop(name, None)
            own["_non_persistent_buffers_set"].discard(name)
            own.pop(name, None)

    def _check_name(self, what: str, name: str, kind: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{what}: expected Module.__init__() to be called before '{name}' is registered"
            )
        if not isinstance(name, str):
            raise TypeError(f"{what}: expected 'name' to be a str, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{what}: expected 'name' to have no dot, got '{name}'")
        if not name:
            raise KeyError(f"{what}: expected 'name' not to be empty")
        if name not in self.__dict__[kind] and hasattr(self, name):
            raise KeyError(f"{what}: the attribute '{name}' exists already")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or the name of one that is None."""
        self._check_name("register_parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: expected '{name}' to be a Parameter or None, got "
                f"{type(param).__name__}"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"register_parameter: expected '{name}' to be a leaf, got a result of other "
                "tensors; compute it in forward() instead"
            )
        self._parameters[name] = _hooks.registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not a parameter; state_dict() contains it if it is persistent."""
        self._check_name("register_buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: expected '{name}' to be a Tensor or None, got "
                f"{type(tensor).__name__}"
            )
        self._buffers[name] = _hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule."""
        self._check_name("add_module", name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"add_module: expected '{name}' to be a Module or None, got "
                f"{type(module).__name__}"
            )
        self._modules[name] = _hooks.registered("module", self, name, module)

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name; the module itself for ""."""
        module = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, None)
            if not isinstance(found, Module):
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no submodule '{name}' (of "
                    f"'{target}')"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the submodule with a dotted name; with strict it must replace an existing one."""
        owner, _, name = target.rpartition(".")
        if not name or not isinstance(module, Module):
            raise ValueError(
                f"set_submodule: expected a name and a Module, got {target!r} and "
                f"{type(module).__name__}"
            )
        parent = self.get_submodule(owner)
        if strict and not isinstance(getattr(parent, name, None), Module):
            raise AttributeError(
                f"set_submodule: {type(parent).__name__} has no submodule '{name}' (of '{target}')"
            )
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name."""
        owner, _, name = target.rpartition(".")
        found = self.get_submodule(owner)._parameters.get(name)
        if found is None:
            raise AttributeError(f"get_parameter: there is no parameter '{target}'")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name."""
        owner, _, name = target.rpartition(".")
        found = self.get_submodule(owner)._buffers.get(name)
        if found is None:
            raise AttributeError(f"get_buffer: there is no buffer '{target}'")
        return found

    # ---- Parameters, buffers and submodules

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module and all below it with their dotted names, each module once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module and all below it."""
        named = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in named)

    def share_memory(self: Self) -> Self:
        """Moves all tensors to shared memory; returns the module."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for place, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{place}.{name}" if place else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names, each once."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, of submodules too."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names, each once."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, of submodules too."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # ---- Changes

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn on each submodule and then on the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Sets `training` for the module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: expected 'mode' to be a bool, got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Sets whether gradients of the parameters are recorded."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of the parameters to None, or fills them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the data of parameters, gradients and buffers by fn of the data."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            grad = parameter.grad
            with lamella.no_grad():
                # Cleared first, as a gradient must have its tensor's dtype and device.
                parameter.grad = None
                parameter.data = fn(parameter.detach())
                if grad is not None:
                    parameter.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.data = fn(buffer)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Moves or converts parameters and buffers in place: to(device), to(dtype), to(tensor).

        A dtype, floating or complex, applies to floating and complex tensors only; the keyword
        memory_format to tensors with 4 or 5 dimensions.
        """
        layout = kwargs.pop("memory_format", None)
        device, dtype, non_blocking = to_arguments(*args, **kwargs)

        def convert(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            return tensor.to(
                tensor.device if device is None else device,
                tensor.dtype if kind is None else kind,
                non_blocking=non_blocking,
                memory_format=layout if tensor.dim() in (4, 5) else None,
            )

        return self._apply(convert)

    def type(self: Self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floats_to(self: Self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: Self) -> Self:
        """Converts floating parameters and buffers to float32."""
        return self._floats_to(lamella.float32)

    def double(self: Self) -> Self:
        """Converts floating parameters and buffers to float64."""
        return self._floats_to(lamella.float64)

    def half(self: Self) -> Self:
        """Converts floating parameters and buffers to float16."""
        return self._floats_to(lamella.float16)

    def bfloat16(self: Self) -> Self:
        """Converts floating parameters and buffers to bfloat16."""
        return self._floats_to(lamella.bfloat16)

    def cpu(self: Self) -> Self:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Moves parameters and buffers to a CUDA device, by default the current one."""
        target = "cuda" if device is None else lamella.device(device)
        return self._apply(lambda tensor: tensor.to(target))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values."""
        return self._apply(lambda t: lamella.empty_like(t, device=device), recurse=recurse)

    # ---- State

    get_extra_state = _state.get_extra_state
    set_extra_state = _state.set_extra_state

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name: aliases without gradients, or, with
        keep_vars, the tensors themselves. The arguments may be given without their names."""
        named = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
        named.update(zip(list(named), args))
        return _state.collect(self, **named)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        _state.save_own(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copies values into parameters and buffers, or, with assign, puts the tensors in place.

        With strict, missing and unexpected names are errors. Returns both lists:
        (missing_keys, unexpected_keys).
        """
        return _state.load(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        _state.load_own(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def __getstate__(self) -> Any:
        own = dict(self.__dict__)
        for kind, _ in _KINDS:
            if kind in own:
                own[kind] = dict(own[kind])
                for name in own[kind]:
                    own.pop(name, None)
        return own

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        for kind, _ in _KINDS:
            self.__dict__[kind] = Entries(self, state.get(kind, {}))

    # ---- Hooks

    def _add_hook(
        self, kind: str, hook: Any, with_kwargs: bool = False, prepend: bool = False
    ) -> Any:
        return _hooks.own(self).add(kind, hook, with_kwargs, prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Any:
        """hook(module, args) before forward(); it may return other arguments."""
        return self._add_hook("forward_pre", hook, with_kwargs, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Any:
        """hook(module, args, output) after forward(); it may return another output."""
        handle = self._add_hook("forward", hook, with_kwargs, prepend)
        if always_call:
            self._hooks.always[handle.id] = True
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """hook(module, grad_output) before the module's backward; it may return other gradients."""
        return self._add_hook("backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """hook(module, grad_input, grad_output) after the module's backward; it may return other
        gradients for the inputs."""
        return self._add_hook("backward", hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """A deprecated name of register_full_backward_hook()."""
        return self._add_hook("backward", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(module, prefix, keep_vars) before the module's part of state_dict()."""
        return self._add_hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(module, state_dict, prefix, local_metadata) after the module's part."""
        return self._add_hook("state_dict", hook)

    # PyTorch's older private name.
    _register_state_dict_hook = register_state_dict_post_hook

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> Any:
        """register_load_state_dict_pre_hook() of a hook without module, unless with_module."""
        return self._add_hook("load_pre", hook if with_module else _hooks.WithoutModule(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs) before the module's part of load_state_dict()."""
        return self._add_hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(module, incompatible_keys) after load_state_dict() has loaded the module."""
        return self._add_hook("load_post", hook)

    # ---- Text

    def extra_repr(self) -> str:
        """The text in the parentheses of the module's repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = [extra] if extra and (self._modules or "\n" in extra) else []
        for name, module in self._modules.items():
            lines.append(f"({name}): " + repr(module))
        if not lines:
            return f"{self._get_name()}({extra})"
        inside = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {inside}\n)"

    def _repr_html_(self) -> str:
        from lamella._notebook import of_module

        return of_module(self)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))


_entries.usual = Module.__getattr__
_hooks.base = Module

_KINDS = (("_parameters", "parameter"), ("_modules", "submodule"), ("_buffers", "buffer"))
_EXPECTED = {"_parameters": "Parameter", "_modules": "Module", "_buffers": "Tensor"}
