"""Optimizer: groups of parameters with their options and state."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()

# Hooks before and after each step of every optimizer, and all live optimizers.
_pre_hooks_of_all: Any = OrderedDict()
_post_hooks_of_all: Any = OrderedDict()
_optimizers: Any = weakref.WeakSet()

_STATE_HOOKS = ("save_pre", "save_post", "load_pre", "load_post")


class Optimizer:
    """The base of all optimizers.

    params: tensors, pairs (name, tensor), or dictionaries {"params": ..., options}, each a group
    with options of its own. defaults: the options of groups that do not set them.
    A subclass defines step(), or _update(group), which step() calls for each group without
    recording gradients.
    """

    param_groups: list[dict[str, Any]]
    state: dict[Tensor, Any]
    # Names of counts in a parameter's state that are tensors; None: states are kept as they are.
    _counts: tuple[str, ...] | None = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(
                f"{self._name()}: expected 'params' to be a list of tensors or dicts, got a Tensor"
            )
        groups = list(params)
        if not groups:
            raise ValueError(f"{self._name()}: expected 'params' not to be empty")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def _prepare(self) -> None:
        self._pre_hooks: Any = OrderedDict()
        self._post_hooks: Any = OrderedDict()
        self._state_hooks: Any = {kind: OrderedDict() for kind in _STATE_HOOKS}
        _optimizers.add(self)
        if _pre_hooks_of_all or _post_hooks_of_all:
            self.__dict__["step"] = self._step_with_hooks

    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: {"params": tensors, options}."""
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{self._name()}: expected a parameter group to be a dict, got "
                f"{type(param_group).__name__}"
            )
        given = param_group["params"]
        if isinstance(given, (set, frozenset)):
            raise TypeError(
                f"{self._name()}: expected 'params' to have an order, got a set; pass a list"
            )
        entries = [given] if isinstance(given, Tensor) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if names and len(names) != len(entries):
            raise ValueError(f"{self._name()}: expected names for all parameters or for none")
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        elsewhere = {id(p) for group in self.param_groups for p in group["params"]}
        if len({id(param) for param in params}) < len(params):
            warnings.warn(
                f"{self._name()}: a parameter is twice in one group; it will become an error",
                stacklevel=3,
            )
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"{self._name()}: expected parameters to be tensors, got "
                    f"{type(param).__name__}"
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError(
                    f"{self._name()}: expected parameters to be leaves, got a result of other "
                    "tensors"
                )
            if id(param) in elsewhere:
                raise ValueError(f"{self._name()}: a parameter is in two groups")
        group = {**param_group, "params": params}
        if names:
            group["param_names"] = names
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is required:
                raise ValueError(f"{self._name()}: expected each group to have '{name}'")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients to None, or fills them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad = param.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes a step. closure: recomputes the loss and the gradients; its loss is returned."""
        loss = None
        if closure is not None:
            with lamella.enable_grad():
                loss = closure()
        with lamella.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{self._name()}: expected the class to define step()")

    # ---- Hooks. An optimizer with hooks has a `step` in its __dict__, which hides the class's.

    def _step_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        for hook in [*_pre_hooks_of_all.values(), *self._pre_hooks.values()]:
            found = hook(self, args, kwargs)
            if found is not None:
                args, kwargs = found
        result = type(self).step(self, *args, **kwargs)
        for hook in [*self._post_hooks.values(), *_post_hooks_of_all.values()]:
            hook(self, args, kwargs)
        return result

    def _add_hook(self, hooks: Any, hook: Any) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        self.__dict__["step"] = self._step_with_hooks
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before each step; it may return other arguments."""
        return self._add_hook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after each step."""
        return self._add_hook(self._post_hooks, hook)

    def _state_hook(self, kind: str, hook: Any, prepend: bool) -> RemovableHandle:
        hooks = self._state_hooks[kind]
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """hook(optimizer) before state_dict()."""
        return self._state_hook("save_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """hook(optimizer, state_dict) after state_dict(); it may return another one."""
        return self._state_hook("save_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """hook(optimizer, state_dict) before load_state_dict(); it may return another one."""
        return self._state_hook("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """hook(optimizer) after load_state_dict()."""
        return self._state_hook("load_post", hook, prepend)

    def _hooked(self, kind: str, state: dict[str, Any]) -> dict[str, Any]:
        for hook in self._state_hooks[kind].values():
            found = hook(self, state)
            state = state if found is None else found
        return state

    # ---- State

    def state_dict(self) -> dict[str, Any]:
        """{"state": ..., "param_groups": ...}, both with numbers in place of the parameters."""
        for hook in self._state_hooks["save_pre"].values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers.setdefault(id(p), len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        return self._hooked("save_post", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict(); tensors get the dtype and device of their parameter."""
        # A copy, since hooks may add or remove entries and the caller's dict must not change.
        state_dict = self._hooked("load_pre", dict(state_dict))
        given = state_dict["param_groups"]
        if len(given) != len(self.param_groups):
            raise ValueError(
                f"load_state_dict: expected {len(self.param_groups)} parameter groups, got "
                f"{len(given)}"
            )
        params: dict[int, Any] = {}
        groups = []
        for i, (own, other) in enumerate(zip(self.param_groups, given)):
            if len(own["params"]) != len(other["params"]):
                raise ValueError(
                    f"load_state_dict: expected {len(own['params'])} parameters in group {i}, got "
                    f"{len(other['params'])}"
                )
            params.update(zip(other["params"], own["params"]))
            kept = {k: copy.deepcopy(v) for k, v in other.items() if k != "params"}
            # Only states of optimizers with named parameters have names.
            names = {"param_names": own["param_names"]} if "param_names" in own else {}
            groups.append({**names, **kept, "params": own["params"]})
        state: dict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _fitted(value, params[key], "")
            else:
                state[key] = copy.deepcopy(value)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._state_hooks["load_post"].values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._counts is not None:
            # A state may be older than an option, and have numbers where tensors count now.
            for group in self.param_groups:
                for name, value in self.defaults.items():
                    group.setdefault(name, value)
            for own in self.state.values():
                for name in self._counts:
                    if isinstance(own.get(name), (int, float)):
                        own[name] = lamella.tensor(float(own[name]), dtype=lamella.float32)
        if "_pre_hooks" not in self.__dict__:
            self._prepare()

    def __repr__(self) -> str:
        lines = [f"{self._name()} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _add_hook_to_all(hooks: Any, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    for optimizer in _optimizers:
        optimizer.__dict__.setdefault("step", optimizer._step_with_hooks)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(optimizer, args, kwargs) before each step of every optimizer; it may return other
    arguments."""
    return _add_hook_to_all(_pre_hooks_of_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(optimizer, args, kwargs) after each step of every optimizer."""
    return _add_hook_to_all(_post_hooks_of_all, hook)


def _fitted(value: Any, param: Tensor, name: str) -> Any:
    """A deep copy of a parameter's state. Tensors get the dtype and device of a floating
    parameter, except for step counts."""
    if isinstance(value, Tensor):
        if name == "step" or not param.is_floating_point():
            return value.clone()
        return value.to(param.device, param.dtype, copy=True)
    if isinstance(value, dict):
        return {k: _fitted(v, param, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(v, param, name) for v in value)
    return copy.deepcopy(value)


def check_not_negative(name: str, **values: Any) -> None:
    """Raises if one of the options is below 0."""
    for option, value in values.items():
        if not isinstance(value, Tensor) and value < 0:
            raise ValueError(f"{name}: expected '{option}' not to be negative, got {value}")


def check_ways(
    name: str, foreach: bool | None, fused: bool | None, differentiable: bool = False
) -> None:
    """Raises if options exclude each other."""
    if fused and foreach:
        raise RuntimeError(f"{name}: expected at most one of 'fused' and 'foreach' to be True")
    if fused and differentiable:
        raise RuntimeError(
            f"{name}: expected at most one of 'fused' and 'differentiable' to be True"
        )


def check_capturable(name: str, group: dict[str, Any]) -> None:
    """Raises if `capturable` is set for parameters on the CPU, which captures no graphs."""
    if not group.get("capturable"):
        return
    for param in group["params"]:
        if param.grad is not None and param.device.type == "cpu":
            raise AssertionError(
                f"{name}: expected 'capturable' to be False for parameters on the CPU, which "
                "captures no graphs"
            )


def move_recorded(
    param: Tensor, own: dict[str, Any], move: Callable[[Tensor, dict[str, Any]], None]
) -> None:
    """Calls move(param, state) on copies and copies the results back, so that tensors which
    autograd saved stay unchanged."""
    state = {k: v for k, v in own.items() if isinstance(v, Tensor) and k != "step"}
    made, fresh = param.clone(), {**own, **{k: v.clone() for k, v in state.items()}}
    move(made, fresh)
    param.copy_(made)
    for name, tensor in state.items():
        tensor.copy_(fresh[name])


def refuse_sparse(name: str, *grads: Tensor) -> None:
    """Raises if a gradient is sparse."""
    if any(grad.is_sparse for grad in grads):
        raise RuntimeError(
            f"{name}: expected dense gradients, got a sparse one, which SparseAdam, Adagrad and "
            "SGD take"
        )


def check_one_element(name: str, lr: Any) -> None:
    """Raises if the learning rate is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"{name}: expected 'lr' to have one element, got {lr.numel()}")


def as_real(params: list[Tensor], *others: list[Tensor]) -> Sequence[list[Tensor]]:
    """The lists with complex tensors viewed as real ones with a last dimension of 2.

    The others hold gradients and state of the parameters, complex where the parameters are.
    """
    for param in params:
        if param.is_complex():
            return [
                [lamella.view_as_real(t) if t.is_complex() else t for t in tensors]
                for tensors in (params, *others)
            ]
    return [params, *others]
