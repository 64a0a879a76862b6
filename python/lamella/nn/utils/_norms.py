"""Weight norm and spectral norm by hooks, PyTorch's older forms of the parametrizations."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter
from lamella.nn.utils.parametrizations import as_matrix, norm_except_dim, output_dim

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Hook:
    """Computes a tensor of a module before each call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Any) -> Tensor:
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))


def _found(module: Any, kind: type[_Hook], name: str) -> Any:
    """(key, hook) of a module's hook for a name."""
    hooks = {} if module._hooks is None else module._hooks.forward_pre
    for key, (hook, _) in hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key, hook
    return None


def _attach(function: str, module: Any, hook: _Hook) -> None:
    if _found(module, type(hook), hook.name) is not None:
        raise RuntimeError(f"{function}: '{hook.name}' has one already")
    if not isinstance(module._parameters.get(hook.name), Tensor):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter '{hook.name}'")


def _detach(function: str, module: Any, kind: type[_Hook], name: str) -> Any:
    found = _found(module, kind, name)
    if found is None:
        raise ValueError(f"{function}: '{name}' of {type(module).__name__} has none")
    key, hook = found
    del module._hooks.forward_pre[key]
    delattr(module, name)
    return hook


class WeightNorm(_Hook):
    """name_g * name_v / norm(name_v)."""

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def compute(self, module: Any) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except_dim(v, self.dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes a parameter the product of norms, name_g, and directions, name_v, along a dimension;
    dim None: of a single norm. See nn.utils.parametrizations.weight_norm() for the newer form."""
    hook = WeightNorm(name, dim)
    _attach("weight_norm", module, hook)
    weight = module._parameters[name]
    delattr(module, name)
    assert weight is not None
    with lamella.no_grad():
        lengths = norm_except_dim(weight, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(lengths))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes the product a parameter again."""
    hook = _detach("remove_weight_norm", module, WeightNorm, name)
    weight = hook.compute(module).detach()
    delattr(module, f"{name}_g")
    delattr(module, f"{name}_v")
    setattr(module, name, Parameter(weight))
    return module


class SpectralNorm(_Hook):
    """name_orig, viewed as a matrix with a row for each output, over its largest singular value."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                "spectral_norm: expected 'n_power_iterations' to be positive, got "
                f"{n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute(self, module: Any, iterate: bool = False) -> Tensor:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if iterate:
            with lamella.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            # The vectors change in place at the next call, maybe before backward.
            u, v = u.clone(), v.clone()
        return weight / lamella.dot(u, matrix.mv(v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a parameter, renamed name_orig, by its largest singular value. See
    nn.utils.parametrizations.spectral_norm() for the newer form."""
    hook = SpectralNorm(name, n_power_iterations, output_dim(module, dim), eps)
    _attach("spectral_norm", module, hook)
    weight = module._parameters[name]
    assert weight is not None
    with lamella.no_grad():
        rows, columns = as_matrix(weight, hook.dim).shape
        u, v = (
            F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns)
        )
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes the quotient a parameter again."""
    hook = _detach("remove_spectral_norm", module, SpectralNorm, name)
    weight = hook.compute(module).detach()
    for part in ("u", "v", "orig"):
        delattr(module, f"{name}_{part}")
    module.register_parameter(name, Parameter(weight))
    return module
