"""Compiles, runs, loads and saves modules."""

from __future__ import annotations

from typing import Any

from lamella import Tensor, _hlo
from lamella._hlo import Executable, Module, parse


def compile(
    text_or_module: str | bytes | Module,
    *,
    platform: str = "Host",
    flush_subnormals: bool = False,
    device_graphs: bool = False,
) -> Executable:
    """Compiles a module. Call the result with arrays; it returns a list of tensors. With
    flush_subnormals its runs take subnormal numbers for zeros, as XLA's on CPUs do. With
    device_graphs runs that repeat on a CUDA device are replays of a captured graph."""
    options = dict(flush_subnormals=flush_subnormals, device_graphs=device_graphs)
    return _compile(text_or_module, platform, interpreted=False, **options)


def _compile(
    text_or_module: str | bytes | Module,
    platform: str,
    *,
    interpreted: bool,
    **options: bool,
) -> Executable:
    if not isinstance(text_or_module, (str, bytes, Module)):
        raise TypeError(
            f"compile: expected a Module or the text of one, got {type(text_or_module).__name__}"
        )
    text = text_or_module if isinstance(text_or_module, str) else None
    is_module = isinstance(text_or_module, Module)
    module = text_or_module if isinstance(text_or_module, Module) else None
    try:
        if not isinstance(text_or_module, Module):
            module = parse(text_or_module)
        assert module is not None
        return _hlo.compile(module, platform, interpreted, not is_module, **options)
    except Exception as error:
        from lamella.hlo import _bundle

        _bundle.note(error, module, text, "compile", {"platform": platform})
        raise


def on_failure(executable: Executable, inputs: list[Tensor] | None, error: Exception) -> None:
    """Called when a run fails."""
    from lamella.hlo import _bundle

    _bundle.on_failure(executable, inputs, error)


def evaluate(text_or_module: str | bytes | Module, *arrays: Any) -> list[Tensor]:
    """Runs a module once with the reference evaluator. Returns one tensor for each array of the
    result, with tuples flattened."""
    return _compile(text_or_module, "Host", interpreted=True)._run("evaluate", arrays)


def load(path: str) -> Module:
    """Reads a module from a file of XLA's text, or of StableHLO's text or bytecode."""
    with open(path, "rb") as file:
        return parse(file.read())


def save(module: Module, path: str) -> None:
    """Writes a module as XLA's text, which load() reads."""
    text = module.to_string()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
