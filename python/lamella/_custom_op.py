"""Operators made of Python functions: lamella.library.custom_op()."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lamella import _C, _library
from lamella._infer_schema import infer_schema

if TYPE_CHECKING:
    from lamella._schema import FunctionSchema

__all__ = ["CustomOpDef", "custom_op"]

_definitions: dict[str, CustomOpDef] = _library._definitions


def _split(qualname: str, what: str) -> tuple[str, str]:
    ns, colons, name = qualname.partition("::")
    if not colons or not ns or not name or "::" in name:
        raise ValueError(f"{what}: expected a name such as 'mylib::twice', got '{qualname}'")
    return ns, name


class CustomOpDef(_C._CallsOperator):
    """A custom operator: called like its function, and extended by the register_* methods.

    Its results must not share memory with its arguments: such results are refused. Arguments that
    it writes must be named in `mutates_args`.
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any):
        self._namespace = namespace
        self._name = name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = fn
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._disabled: set[str | None] = set()
        self._kernels: dict[str | None, Any] = {}  # one library for the kernel of each device
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", name)
        self._lib = _library.Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=tags, doc=fn.__doc__)
        packet, _, overload = self._qualname.partition(".")
        self._opoverload = _C._operator(packet, overload or "default")
        self._set_target(self._opoverload)
        # A weak reference, since the operator's library owns this kernel.
        me = weakref.ref(self)

        def meta(*args: Any, **kwargs: Any) -> Any:
            operator = me()
            assert operator is not None  # The operator's library owns this kernel.
            return operator._meta(*args, **kwargs)

        self._lib._library.impl(self._qualname, meta, "Meta")

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def _schema(self) -> FunctionSchema:
        schema: FunctionSchema = self._opoverload._schema
        return schema

    def _meta(self, *args: Any, **kwargs: Any) -> Any:
        if self._fake is not None:
            with _library._fake_context():
                return self._fake(*args, **kwargs)
        if not self._schema.returns:
            return None
        raise NotImplementedError(
            f"{self._qualname}: has no kernel that computes the shapes of its results; "
            f"write one with {self._name}.register_fake"
        )

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Registers the kernel for these device types; None: for all without their own kernel."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            kinds = (
                (device_types,)
                if device_types is None or isinstance(device_types, str)
                else (tuple(device_types))
            )
            for kind in kinds:
                kind = None if kind == "default" else kind
                self._backend_fns[kind] = function
                self._install(kind)
            return function

        return register if fn is None else register(fn)

    def _destroy(self) -> None:
        """Undoes the definition and all kernels."""
        for library in self._kernels.values():
            library.close()
        self._lib.close()

    def _install(self, kind: str | None) -> None:
        before = self._kernels.pop(kind, None)
        if before is not None:
            before.close()
        library = self._kernels[kind] = _library.Library(self._namespace, "FRAGMENT")
        function = self._init_fn if kind in self._disabled else self._backend_fns[kind]
        library._library.impl(
            self._qualname, _C._below_autograd(function), _library._device_key(kind), False, True
        )

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context that switches the kernel of a device on or off; while it is off, the function
        of the definition runs instead."""
        kind = None if device_type == "default" else device_type
        before = kind in self._disabled
        if kind not in self._backend_fns:
            raise ValueError(
                f"set_kernel_enabled: expected a device that {self._qualname} has a kernel for, "
                f"got '{device_type}'"
            )
        self._switch(kind, not enabled)
        try:
            yield
        finally:
            self._switch(kind, before)

    def _switch(self, kind: str | None, off: bool) -> None:
        if off == (kind in self._disabled):
            return
        (self._disabled.add if off else self._disabled.discard)(kind)
        self._install(kind)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Registers the kernel for `meta` tensors, which computes only shapes and dtypes."""
        self._fake = fn
        _library._note_fake(self._qualname, fn, self._lib)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Registers a backward; see lamella.library.register_autograd."""
        _library.register_autograd(
            self._opoverload, backward, setup_context=setup_context, lib=self._lib
        )

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Registers a batching rule; see lamella.library.register_vmap."""
        return _library.register_vmap(self._opoverload, func, lib=self._lib)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> Any:
        """Registers what autocast casts tensors to; see lamella.library.register_autocast."""
        return _library.register_autocast(self._opoverload, device_type, cast_inputs, lib=self._lib)

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Registers what it does under a mode or on instances of a subclass of Tensor."""
        return _library.register_torch_dispatch(
            self._opoverload, torch_dispatch_class, fn, lib=self._lib
        )


_C._let_call(CustomOpDef)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] | None = None,
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Sequence[str] = (),
) -> Any:
    """Defines an operator by a Python function. Also a decorator.

    name: "mylib::twice", or with an overload "mylib::twice.int". mutates_args: the arguments that
    it writes. device_types: the devices that the function serves; None: all. schema: "(Tensor x)
    -> Tensor"; by default inferred from the type hints. Returns a CustomOpDef. A later operator of
    the same name replaces it.
    """
    ns, own = _split(name, "custom_op")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args or ())
        before = _definitions.pop(name, None)
        if before is not None:
            before._destroy()
        made = CustomOpDef(ns, own, text, function, tags)
        if schema is not None and mutates_args is not None and not isinstance(mutates_args, str):
            _check_writes(made, set(mutates_args))
        made.register_kernel(device_types, function)
        _definitions[made._qualname] = made
        return made

    return make if fn is None else make(fn)


def _check_writes(made: CustomOpDef, named: set[str]) -> None:
    written = {each.name for each in made._schema.arguments if each.is_write}
    if written != named:
        raise ValueError(
            f"custom_op: expected 'mutates_args' to name what the schema of '{made._qualname}' "
            f"writes, {sorted(written)}, got {sorted(named)}"
        )
