"""torch.compiler: lamella.compile traces, so controls for a bytecode compiler do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella.nn import Module

# PyTorch's backends that do not compile.
_PLAIN = frozenset({"aot_eager", "eager"})


class OptimizedModule(Module):
    """A module whose calls run compiled; all other attributes are those of the wrapped module."""

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
    """lamella.compile() with PyTorch's arguments, also as a decorator; a module gives a module.

    backend: "eager" and "aot_eager" do not compile, nor does a function, because it would expect a
    graph of torch.fx; all other names select the one compiler. options are ignored.
    """
    if model is None:
        given: Any = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend)
        given.update(mode=mode, disable=disable)
        return lambda function: compile(function, **given)
    if disable:
        return model
    run = model
    if isinstance(backend, str) and backend not in _PLAIN:
        run = lamella.compile(model, fullgraph=fullgraph, dynamic=dynamic, mode=mode)
    return OptimizedModule(model, run) if isinstance(model, Module) else run


def _compile_in_place(self: Module, **options: Any) -> None:
    """Module.compile(): makes a module's calls run compiled. The options are those of compile()."""
    self.__dict__["forward"] = compile(self.forward, **options)


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns the function unchanged, with or without decorator arguments."""
    return fn if fn is not None else lambda function: function


_disable_dynamo = disable


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function unchanged."""
    return fn


assume_constant_result = substitute_in_graph = allow_in_graph


class set_stance:  # noqa: N801
    """Ignored: there is one way to run compiled code. Usable as a call, a context and a
    decorator."""

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
    """Does nothing: this module caches nothing."""


def cudagraph_mark_step_begin() -> None:
    """Does nothing."""


def list_backends(*args: Any) -> list[str]:
    """An empty list: there are no backends to choose from."""
    return []
