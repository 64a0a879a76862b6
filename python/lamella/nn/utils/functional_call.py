"""Calls modules with other parameters and buffers, and stacks these for ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamella import Tensor
from lamella.nn.modules.batchnorm import _BatchNorm
from lamella.nn.modules.container import ModuleList
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls module(*args, **kwargs) with its parameters and buffers replaced by the tensors of a
    dictionary by dotted names.

    parameter_and_buffer_dicts: a dictionary, or several without common names. tie_weights: replaces
    a parameter that has several names under all of them. strict: the dictionaries must have exactly
    the names of all parameters and buffers; otherwise other names are parameters or attributes
    during the call.
    """
    dicts = parameter_and_buffer_dicts
    dicts = (dicts,) if isinstance(dicts, Mapping) else tuple(dicts)
    given: dict[str, Tensor] = {}
    for entries in dicts:
        for name, tensor in entries.items():
            if name in given:
                raise ValueError(f"functional_call: '{name}' is given twice")
            given[name] = tensor
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    # A module that is a part of itself has no end of names: without need they are not listed.
    places = _places(module) if tie_weights or strict else {}
    for name in given:
        place = None if name in places else _place(module, name)
        if place is not None:
            places[name] = place
    unknown = [name for name in given if name not in places]
    if strict and unknown:
        raise RuntimeError(
            f"functional_call: {type(module).__name__} has no parameter or buffer "
            + ", ".join(f"'{name}'" for name in unknown)
        )
    if tie_weights:
        given = _tied(places, given)
    missing = [name for name in places if name not in given]
    if strict and missing:
        raise RuntimeError(
            "functional_call: expected all parameters and buffers to be given, missing "
            + ", ".join(f"'{name}'" for name in missing)
        )
    for name in unknown:
        path, _, key = name.rpartition(".")
        owner = module.get_submodule(path)
        is_parameter = isinstance(given[name], Parameter)
        places[name] = (owner._parameters if is_parameter else owner.__dict__, key)
    before = {name: places[name][0].get(places[name][1]) for name in given}
    try:
        for name, tensor in given.items():
            entries, key = places[name]
            entries[key] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for name, tensor in before.items():
            entries, key = places[name]
            if name in unknown and tensor is None:
                entries.pop(key, None)
            else:
                entries[key] = tensor


def _place(module: Module, name: str) -> tuple[Any, str] | None:
    """The dictionary that holds the parameter or buffer of a dotted name, and its key there."""
    path, _, key = name.rpartition(".")
    owner: Any = module
    for part in path.split(".") if path else ():
        owner = owner._modules.get(part)
        if owner is None:
            return None
    for entries in (owner._parameters, owner._buffers):
        if entries.get(key) is not None:
            return entries, key
    return None


def _places(module: Module) -> dict[str, tuple[Any, str]]:
    """Maps the dotted name of each parameter and buffer to the dictionary that holds it, and its
    key there."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for entries in (part._parameters, part._buffers):
            for key, tensor in entries.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = (entries, key)
    return found


def _tied(places: dict[str, tuple[Any, str]], given: dict[str, Tensor]) -> dict[str, Tensor]:
    names: dict[int, list[str]] = {}
    for name, (entries, key) in places.items():
        names.setdefault(id(entries[key]), []).append(name)
    result = dict(given)
    for group in names.values():
        chosen = [name for name in group if name in given]
        if any(given[name] is not given[chosen[0]] for name in chosen[1:]):
            raise ValueError(
                "functional_call: expected names of one parameter to be given the same tensor: "
                + ", ".join(f"'{name}'" for name in chosen)
            )
        if chosen:
            result.update((name, given[chosen[0]]) for name in group)
    return result


def stack_module_state(
    models: Sequence[Module] | ModuleList,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stacks the parameters and the buffers of modules of one class by name, for vmap over
    functional_call() of an ensemble. A stacked parameter is a leaf, and requires gradients if those
    of the modules do."""
    import lamella

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: expected at least one module, got none")
    first = models[0]
    for i, model in enumerate(models):
        if type(model) is not type(first):
            raise RuntimeError(
                f"stack_module_state: expected modules of one class, {type(first).__name__}, got "
                f"{type(model).__name__} at {i}"
            )
        if model.training != first.training:
            raise RuntimeError(
                "stack_module_state: expected all modules to be in training mode, or none, got "
                f"training={model.training} at {i}"
            )

    def stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        made = {}
        for name, value in states[0].items():
            row = [state[name] for state in states]
            if any(x.requires_grad != value.requires_grad for x in row):
                raise RuntimeError(
                    f"stack_module_state: expected '{name}' to require gradients in all modules, "
                    "or in none"
                )
            made[name] = lamella.stack([x.detach() for x in row]).requires_grad_(
                value.requires_grad
            )
        return made

    return (
        stacked([dict(model.named_parameters()) for model in models]),
        stacked([dict(model.named_buffers()) for model in models]),
    )


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Takes the running statistics of all batch norms of a module away, so that they normalize by
    the batch alone and write nothing: under vmap there is one buffer for all examples. Returns the
    module, which is changed."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
