"""Operators and kernels written in Python.

    lib = lamella.library.Library("mylib", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    lamella.ops.mylib.twice(lamella.ones(3))

Registrations end when the library is destroyed or closed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamella import _C

__all__ = [
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "register_autograd",
    "register_vmap",
]

# Kept for functions that register without a Library of the caller's.
_libraries: dict[str, Library] = {}


def fallthrough_kernel() -> None:
    """Pass it to impl() to let calls go on to the next key."""
    raise NotImplementedError("fallthrough_kernel: is a mark for impl() and cannot be called")


class Library:
    """Registrations for a namespace.

    kind: "DEF" claims the namespace, "FRAGMENT" adds operators to it, "IMPL" only kernels.
    dispatch_key: the key of impl() where it is given none.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self._library = _C._Library(ns, kind, dispatch_key)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key

    def __repr__(self) -> str:
        key = f", dispatch_key={self.dispatch_key}" if self.dispatch_key else ""
        return f"Library(kind={self.kind}, ns={self.ns}{key})"

    def define(
        self,
        schema: str,
        alias_analysis: str = "",
        *,
        tags: str | Sequence[str] = (),
        autocast: str | None = None,
        batching: str | None = None,
        hlo: str | None = None,
    ) -> str:
        """Defines an operator by its schema, and returns its name.

        autocast: "lower_precision", "float32", "widest", ... says what autocast casts its tensors to.
        batching: "pointwise", "reduction", "composite", "loop" or a rule's name says how vmap does.
        hlo: the HLO opcode that it compiles to, such as "add".
        """
        if alias_analysis not in ("", "CONSERVATIVE", "FROM_SCHEMA"):
            raise RuntimeError(
                f"define: expected 'alias_analysis' to be CONSERVATIVE or FROM_SCHEMA, "
                f"got '{alias_analysis}'"
            )
        all_tags = [str(tag) for tag in ((tags,) if isinstance(tags, str) else tags)]
        for policy, word in (("autocast", autocast), ("batching", batching), ("hlo", hlo)):
            if word is not None:
                all_tags.append(f"{policy}:{word}")
        self._library.define(schema, ",".join(all_tags))
        return schema.partition("(")[0]

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Registers a function as the kernel of an operator for a dispatch key."""
        if with_keyset:
            raise NotImplementedError("impl: kernels in Python are called without the key set")
        name = op_name if isinstance(op_name, str) else op_name._operator_name
        if "::" not in name:
            name = f"{self.ns}::{name}"
        overload = getattr(op_name, "_overloadname", "default")
        if overload != "default":
            name = f"{name}.{overload}"
        kernel = None if fn is fallthrough_kernel else fn
        self._library.impl(name, kernel, dispatch_key or "")

    def close(self) -> None:
        """Undoes all registrations of this library; waits for calls that are inside."""
        self._library.close()

    _destroy = close


def _fragment(ns: str) -> Library:
    library = _libraries.get(ns)
    if library is None:
        library = _libraries[ns] = Library(ns, "FRAGMENT")
    return library


def define(
    qualname: str,
    schema: str,
    *,
    lib: Library | None = None,
    tags: str | Sequence[str] = (),
    autocast: str | None = None,
    batching: str | None = None,
    hlo: str | None = None,
) -> None:
    """Defines the operator `qualname` ("mylib::twice") with the schema "(Tensor x) -> Tensor".

    What the other arguments say: Library.define.
    """
    ns, _, name = qualname.partition("::")
    library = lib or _fragment(ns)
    library.define(name + schema, tags=tags, autocast=autocast, batching=batching, hlo=hlo)


_TYPE_KEYS = {
    "default": "CompositeExplicitAutograd",
    "cpu": "CPU",
    "cuda": "CUDA",
    "meta": "Meta",
    "xpu": "XPU",
    "mps": "MPS",
}


def impl(
    qualname: str,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a kernel for device types ("cpu", ...), dispatch keys, or "default" for all."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ns = qualname.partition("::")[0]
        for kind in (types,) if isinstance(types, str) else types:
            (lib or _fragment(ns)).impl(qualname, function, _TYPE_KEYS.get(kind, kind))
        return function

    return register if func is None else register(func)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Any:
    """Makes an operator of a Python function whose schema is given."""

    def make(function: Callable[..., Any]) -> Any:
        if schema is None:
            raise ValueError(
                f"custom_op: expected 'schema' for '{name}', as '(Tensor x) -> Tensor'"
            )
        define(name, schema)
        impl(name, device_types or "default", function)
        op = _C._operator(name)
        op.register_autograd = functools.partial(register_autograd, name)
        return op

    return make if fn is None else make(fn)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Gives an operator, by name or as lamella.ops has it, a backward written in Python.

    setup_context(ctx, inputs, output) keeps in `ctx` what backward(ctx, *grads) needs; inputs: the
    tuple of the operator's arguments, those that are keyword-only apart, in `keyword_only_inputs`.
    backward returns a gradient for each argument, None where there is none, a list for a list.
    """
    from lamella._register_autograd import make_kernel

    name = op if isinstance(op, str) else op._operator_name
    overload = getattr(op, "_overloadname", "default")
    if not isinstance(op, str) and overload != "default":
        name = f"{name}.{overload}"
    qualified, _, overload = name.partition(".")
    found = _C._operator(qualified, overload or "default")
    if "!" in found._schema:
        raise RuntimeError(
            f"register_autograd: expected an operator that writes none of its arguments, "
            f"got {found._schema}"
        )
    kernel = make_kernel(found, name, backward, setup_context)
    (lib or _fragment(qualified.partition("::")[0]))._library.impl(name, kernel, "Autograd")


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers how vmap calls an operator: func(info, in_dims, *args) -> (outputs, out_dims).

    in_dims has for each of args the dimension of its batch, or None; tensors come with the batch in
    dimension 0. info has batch_size and randomness. out_dims says where the batch is in each output,
    None for one that has none. May be used as a decorator.
    """
    name = op if isinstance(op, str) else op._operator_name

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        from lamella._register_vmap import register as register_rule

        register_rule(lib or _fragment(name.partition("::")[0]), name, function)
        return function

    return register if func is None else register(func)
