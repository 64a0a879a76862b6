"""The package functorch, the predecessor of torch.func."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat._tools import chunk_vmap as chunk_vmap
from lamella.compat._tools import (
    replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_,
)
from lamella.func import functional_call as functional_call
from lamella.func import stack_module_state as stack_module_state
from lamella.nn import Module


def _deprecated(name: str, now: str) -> Callable[..., Any]:
    """A transform of lamella.func that warns of its new name."""
    transform = getattr(lamella.func, name)

    @functools.wraps(transform)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"functorch.{name} is deprecated. Please use `{now}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return transform(*args, **kwargs)

    return warned


vmap = _deprecated("vmap", "torch.vmap")
functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (
    _deprecated(name, f"torch.func.{name}")
    for name in "functionalize grad grad_and_value hessian jacfwd jacrev jvp vjp".split()
)


def _values(named: Any, detached: bool) -> tuple[list[str], tuple[Tensor, ...]]:
    pairs = list(named)
    values = (value.detach() if detached else value for _, value in pairs)
    return [name for name, _ in pairs], tuple(values)


class FunctionalModule:
    """A module's function of its parameters and inputs."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        self.stateless_model = stateless_model
        self.param_names = param_names

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers:
    """A module's function of its parameters, buffers and inputs."""

    def __init__(
        self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]
    ) -> None:
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names

    def __call__(
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        state = dict(zip(self.param_names, params)) | dict(zip(self.buffer_names, buffers))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, parameters, buffers) of a module: function(parameters, buffers, *inputs) calls the
    module with these in place of its own."""
    skeleton = copy.deepcopy(model)
    names, parameters = _values(skeleton.named_parameters(), disable_autograd_tracking)
    buffer_names, buffers = _values(skeleton.named_buffers(), False)

    made = FunctionalModuleWithBuffers(skeleton, tuple(names), tuple(buffer_names))
    return made, parameters, buffers


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """make_functional_with_buffers() for a module without buffers: (function, parameters)."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    inner, parameters, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(inner.stateless_model, inner.param_names), parameters


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, parameters, buffers) of several modules of one class, stacked along dimension
    0."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: expected at least one model, got 0.")
    made = [make_functional_with_buffers(model) for model in models]
    stacked = [tuple(map(lamella.stack, zip(*[each[i] for each in made]))) for i in (1, 2)]
    parameters = tuple(value.detach() for value in stacked[0])
    return made[0][0], parameters, stacked[1]


def _initializer(model_class: type, shape: Any, device: Any) -> Callable[..., Any]:
    """make(*args) -> what combine_state_for_ensemble() gives for that many models, or one."""
    if len(shape) > 1:
        raise ValueError(f"expected an ensemble of one dimension at most, got {tuple(shape)}")

    def make(*args: Any, **kwargs: Any) -> Any:
        models = [model_class(*args, **kwargs).to(device) for _ in range(shape[0] if shape else 1)]
        if not shape:
            return make_functional_with_buffers(models[0])
        return combine_state_for_ensemble(models)

    return make


def functional_init(
    model_class: type, ensemble_shape: Any = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """init(*args) -> (weights, function, names): of one model, or of an ensemble."""
    make = _initializer(model_class, ensemble_shape, device)

    def init(*args: Any, **kwargs: Any) -> Any:
        function, weights, _ = make(*args, **kwargs)
        return weights, lambda weights, data: function(weights, (), *data), function.param_names

    return init


def functional_init_with_buffers(
    model_class: type, ensemble_shape: Any = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """init(*args) -> (weights, buffers, function, names, buffers' names)."""
    make = _initializer(model_class, ensemble_shape, device)

    def init(*args: Any, **kwargs: Any) -> Any:
        function, weights, buffers = make(*args, **kwargs)
        call = lambda weights, buffers, data: function(weights, buffers, *data)  # noqa: E731
        return weights, buffers, call, function.param_names, function.buffer_names

    return init


def aot_function(fn: Callable[..., Any], *compilers: Any, **options: Any) -> Callable[..., Any]:
    """The function as it is: lamella.compile() compiles."""
    return fn


compiled_function = aot_module = aot_function


def nop(fx_g: Any, _: Any = None) -> Any:
    """A compiler that compiles nothing."""
    return fx_g


def default_partition(joint_module: Any, *args: Any, **options: Any) -> Any:
    """RuntimeError: functions are not split into a forward and a backward graph."""
    raise RuntimeError("default_partition: Lamella has no joint graphs; lamella.compile() compiles")


min_cut_rematerialization_partition = default_partition


__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name in ("experimental", "compile"):
        import sys

        return sys.modules[__name__]
    if name == "make_fx":
        from lamella.compat.fx.experimental.proxy_tensor import make_fx

        return make_fx
    raise AttributeError(f"module 'functorch' has no attribute '{name}'")
