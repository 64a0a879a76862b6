"""torch.compiler: lamella.compile traces, so there is nothing to say to a compiler of bytecode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella.nn import Module

# Backends of PyTorch's that compile nothing.
_PLAIN = frozenset({"aot_eager", "eager"})


class OptimizedModule(Module):
    """A module whose calls run as compiled programs; everything else is the module's."""

    def __init__(self, mod: Module, run: Callable[..., Any]) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_run"] = run
        self.training = mod.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **others: Any,
) -> Any:
    """lamella.compile with PyTorch's arguments, as a decorator too; of a module it makes a module.

    backend: "eager" and "aot_eager" compile nothing, and neither does a function, which would want
    a graph of torch.fx; other names are one compiler. mode, options: nothing to choose.
    """
    if model is None:
        given = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend, disable=disable)
        return lambda function: compile(function, **given)
    if disable:
        return model
    run = model
    if isinstance(backend, str) and backend not in _PLAIN:
        run = lamella.compile(model, fullgraph=fullgraph, dynamic=dynamic)
    return OptimizedModule(model, run) if isinstance(model, Module) else run


def _compile_in_place(self: Module, **options: Any) -> None:
    """Runs calls of a module as compiled programs from now on; options are those of compile()."""
    self.__dict__["forward"] = compile(self.forward, **options)


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, with or without arguments of the decorator."""
    return fn if fn is not None else lambda function: function


_disable_dynamo = disable


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


assume_constant_result = substitute_in_graph = allow_in_graph


class set_stance:  # noqa: N801
    """How what is compiled runs: nothing to choose. It is a call, a context and a decorator."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        stances = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")
        if stance not in (*stances, "eager_then_compile", "aot_eager_then_compile"):
            raise RuntimeError(f"set_stance: expected one of {list(stances)}, got {stance!r}")

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def reset() -> None:
    """Nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def list_backends(*args: Any) -> list[str]:
    """No backends to choose among."""
    return []
