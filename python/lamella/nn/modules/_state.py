"""state_dict() and load_state_dict() of a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import lamella
from lamella.nn.parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The names that load_state_dict() did not find, and the names that it did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def get_extra_state(self: Any) -> Any:
    """Extra state for state_dict(); a module with extra state overrides this and
    set_extra_state()."""
    raise RuntimeError(f"{type(self).__name__}: has no extra state")


def set_extra_state(self: Any, state: Any) -> None:
    """Restores a result of get_extra_state()."""
    raise RuntimeError(f"{type(self).__name__}: expected the class to define set_extra_state()")


def _has_extra(module: Any) -> bool:
    return type(module).get_extra_state is not get_extra_state


def _takes_extra(module: Any) -> bool:
    return type(module).set_extra_state is not set_extra_state


def _own(module: Any) -> dict[str, Any]:
    """The parameters and persistent buffers of the module itself."""
    found = {name: p for name, p in module._parameters.items() if p is not None}
    left_out = module._non_persistent_buffers_set
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in left_out:
            found[name] = buffer
    return found


def collect(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": getattr(module, "_version", 1)}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    hooks = module._hooks
    if hooks is not None:
        for hook in hooks.of("state_dict_pre"):
            hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    if hooks is not None:
        for hook in hooks.of("state_dict"):
            found = hook(module, destination, prefix, metadata)
            if found is not None:
                destination = found
    return destination


def save_own(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    for name, tensor in _own(module).items():
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if _has_extra(module):
        destination[prefix + EXTRA] = module.get_extra_state()


def load(module: Any, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            "load_state_dict: expected 'state_dict' to be a dict, got "
            f"{type(state_dict).__name__}"
        )
    metadata = getattr(state_dict, "_metadata", None)
    state = OrderedDict(state_dict)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    keys = IncompatibleKeys(missing, unexpected)

    _load_below(module, state, "", metadata, assign, keys, errors)
    if strict and unexpected:
        errors.insert(0, f"unexpected {_count(unexpected)}")
    if strict and missing:
        errors.insert(0, f"missing {_count(missing)}")
    if errors:
        lines = "".join(f"\n  {line}" for line in errors)
        raise RuntimeError(
            f"load_state_dict: expected 'state_dict' to fit {type(module).__name__}, got:{lines}"
        )
    return keys


def _load_below(
    part: Any,
    values: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    keys: IncompatibleKeys,
    errors: list[str],
) -> None:
    """Loads a module and its submodules. A recursive closure would be a reference cycle that keeps
    the state alive until the next garbage collection."""
    local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    arguments = (values, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
    if part._hooks is not None:
        for hook in part._hooks.of("load_pre"):
            hook(part, *arguments)
    part._load_from_state_dict(*arguments)
    for name, child in part._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            inner = {k: v for k, v in values.items() if k.startswith(below)}
            _load_below(child, inner, below, metadata, assign, keys, errors)
    if part._hooks is not None:
        for hook in part._hooks.of("load_post"):
            hook(part, keys)


def _count(names: list[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"{'key' if len(names) == 1 else 'keys'}: {listed}"


def load_own(
    module: Any,
    state_dict: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, own in _own(module).items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        value = state_dict[key]
        if is_lazy(own) and is_lazy(value):
            continue
        if not isinstance(value, lamella.Tensor):
            error_msgs.append(f"'{key}': expected a Tensor, got {type(value).__name__}")
        elif value.shape != own.shape and not (own.dim() == 0 and tuple(value.shape) == (1,)):
            error_msgs.append(f"'{key}': expected shape {list(own.shape)}, got {list(value.shape)}")
        elif assign:
            _assign(module, name, own, value)
        else:
            with lamella.no_grad():
                own.copy_(value if value.shape == own.shape else value.reshape(own.shape))
    extra = prefix + EXTRA
    if _takes_extra(module):
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing_keys.append(extra)
    if strict:
        unexpected_keys.extend(_left_over(module, state_dict, prefix))


def _assign(module: Any, name: str, own: Any, value: Any) -> None:
    if name in module._buffers:
        module._buffers[name] = value
    elif isinstance(value, Parameter):
        module._parameters[name] = value
    else:
        module._parameters[name] = Parameter(value, requires_grad=own.requires_grad)


def _left_over(module: Any, state_dict: Any, prefix: str) -> list[str]:
    """Keys below the prefix that are neither the module's own nor of one of its submodules."""
    own = _own(module)
    found = []
    for key in state_dict:
        if not key.startswith(prefix):
            continue
        first, dot, _ = key[len(prefix) :].partition(".")
        if dot:
            known = module._modules.get(first) is not None
        else:
            known = first in own or (first == EXTRA and _takes_extra(module))
        if not known:
            found.append(key)
    return found
