"""Library and the registration functions of lamella.library, except custom_op()."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc
from typing import Any

from lamella import _C

# Libraries by namespace, for registration functions that are called without a Library. They live
# until the process ends.
_libraries: dict[str, Library] = {}

# The names of operators that libraries in Python declare, and what register_fake() registered for
# them, with the place where it was called.
_declared: set[str] = set()
_fakes: dict[str, tuple[Callable[..., Any], str, Library | None]] = {}

# The newest definition of each qualified name. It keeps the operator alive if the caller drops the
# result of custom_op(), until another operator of the name replaces it.
_definitions: dict[str, Any] = {}


def _drop_unused(name: str) -> None:
    """Ends the definition of an operator that only this module keeps alive."""
    found = _definitions.get(name)
    if found is None:
        return
    # References: of the dict, of `found`, and of the call that counts.
    if sys.getrefcount(found) > 3:
        gc.collect()  # its functions may refer to it
    if sys.getrefcount(found) <= 3:
        _definitions.pop(name)._destroy()


def fallthrough_kernel() -> None:
    """A marker for impl(): calls skip the key and go on to the next one."""
    raise NotImplementedError("fallthrough_kernel: is a mark for impl() and cannot be called")


_impls: set[str] = set()  # the kernels of all open libraries: "mylib/twice/CPU"


def _place(name: str, key: str) -> str:
    return f"{name.replace('::', '/', 1)}/{key}"


class Library:
    """Registrations for a namespace; closing it undoes them.

    kind: "DEF" claims the namespace, "FRAGMENT" adds operators to it, "IMPL" adds kernels only.
    dispatch_key: the default dispatch key of impl().
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self._library = _C._Library(ns, kind, dispatch_key)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._op_impls: set[str] = set()
        weakref.finalize(self, _impls.difference_update, self._op_impls)
        self._over: list[Any] = []
        self._rules: list[tuple[Any, type]] = []
        self._names: list[str] = []

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
        doc: str | None = None,
    ) -> str:
        """Defines an operator by its schema, and returns its name.

        autocast: what its tensors are cast to: "lower_precision", "float32", "widest", ...
        batching: how vmap calls it: "pointwise", "reduction", "composite", "loop" or a rule's name.
        hlo: the HLO opcode that it compiles to, such as "add".
        doc: a description of what it computes; help() and `lamella ops` print it below the schema.
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
        name = schema.partition("(")[0]
        full = f"{self.ns}::{name.strip()}"
        _drop_unused(full)
        self._library.define(schema, ",".join(all_tags), None if doc is None else cleandoc(doc))
        self._names.append(full)
        _declared.add(full)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Registers a function as the kernel of an operator for a dispatch key.

        with_keyset: passes the call's key set to the function as the first argument, for
        op.redispatch(keys & ..., *args). allow_override: lets the function replace a kernel of this
        library for the same key; kernels of other libraries can always be replaced.
        """
        name = op_name if isinstance(op_name, str) else op_name._operator_name
        if "::" not in name:
            name = f"{self.ns}::{name}"
        overload = getattr(op_name, "_overloadname", "default")
        if overload != "default":
            name = f"{name}.{overload}"
        _warn_if_misspelt("impl", name)
        kernel = None if fn is fallthrough_kernel else fn
        key = dispatch_key or self.dispatch_key
        if allow_override:
            self._put(name, kernel, key, with_keyset)
            return
        place = _place(name, key)
        if place in self._op_impls:
            raise RuntimeError(
                f"{name}: already has a kernel for {key or 'all keys'} from this library; "
                "give allow_override=True to replace it"
            )
        self._library.impl(name, kernel, dispatch_key or "", with_keyset)
        self._op_impls.add(place)
        _impls.add(place)

    def _put(self, name: str, kernel: Any, key: str, *options: Any) -> None:
        """Registers a kernel in place of what this library has for the key."""
        library = self._library
        place = _place(name, key)
        if place in self._op_impls:
            # Kernels of a newer library take precedence over those of an older one.
            library = _C._Library(self.ns, "FRAGMENT", self.dispatch_key)
            self._over.append(library)
        library.impl(name, kernel, key, *options)
        self._op_impls.add(place)
        _impls.add(place)

    def fallback(
        self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Registers fn(op, *args, **kwargs) for all operators without a kernel for the key.

        The Library's namespace must be "_". With fallthrough_kernel the calls skip the key.
        """
        if self.ns != "_":
            raise RuntimeError(
                f"fallback: expected a Library of the namespace '_', got '{self.ns}', as it is for "
                "all operators"
            )
        kernel = None if fn is fallthrough_kernel else fn
        self._library.fallback(kernel, dispatch_key or "", with_keyset)

    def close(self) -> None:
        """Undoes all registrations of this library; waits for running calls of its kernels."""
        for op, cls in self._rules:
            _C._set_dispatch_rule(op, cls, None)
        self._rules.clear()
        for library in reversed(self._over):
            library.close()
        self._library.close()
        _impls.difference_update(self._op_impls)
        for name in self._names:
            _declared.discard(name)
            _fakes.pop(name, None)

    _destroy = close


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library that is closed at the end of the `with` block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library.close()


def _fragment(ns: str) -> Library:
    library = _libraries.get(ns)
    if library is None:
        library = _libraries[ns] = Library(ns, "FRAGMENT")
    return library


def define(
    qualname: Any,
    schema: str,
    alias_analysis: str = "",
    *,
    lib: Library | None = None,
    tags: str | Sequence[str] = (),
    autocast: str | None = None,
    batching: str | None = None,
    hlo: str | None = None,
    doc: str | None = None,
) -> Any:
    """Defines the operator `qualname` ("mylib::twice") with the schema "(Tensor x) -> Tensor".

    For the other arguments see Library.define. If `qualname` is a Library, `schema` includes the
    name, and the result is a decorator for the operator's kernel.
    """
    if isinstance(qualname, Library):
        owner, name = qualname, qualname.define(schema, alias_analysis, tags=tags)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            owner.impl(name, function)
            return function

        return register
    ns, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(
            f"define: expected 'qualname' to have a namespace, such as 'mylib::twice', "
            f"got '{qualname}'"
        )
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f"define: expected schema to look like '(Tensor x) -> Tensor', got '{schema}'"
        )
    library = lib or _fragment(ns)
    library.define(name + schema, tags=tags, autocast=autocast, batching=batching, hlo=hlo, doc=doc)
    return None


def from_hlo(qualname: str, text_or_module: Any, *, lib: Library | None = None) -> Any:
    """Defines the operator `qualname` ("mylib::step") that runs an HLO module, and returns it.

    text_or_module: HLO text or a lamella.hlo.Module; lamella.hlo.as_operator describes how its
    parameters and results become arguments and returns.
    """
    from lamella.hlo import _operators

    return _operators._define(text_or_module, qualname, lib, "Host", sys._getframe(1))


def _device_key(kind: str | None) -> str:
    """The dispatch key of a device type; other text is returned as the name of a key."""
    if kind is None or kind == "default":
        return "CompositeExplicitAutograd"
    try:
        return str(_C._device_dispatch_key(kind))
    except RuntimeError:
        return kind


def _qualified(op: Any) -> str:
    """The qualified name, with the overload, of an operator given by name or as an object."""
    op = getattr(op, "_opoverload", op)  # an operator of custom_op()
    if isinstance(op, str):
        return op
    overload = getattr(op, "_overloadname", "default")
    name = str(op._operator_name)
    return name if overload == "default" else f"{name}.{overload}"


def _definition(op: Any) -> Any:
    """The result of custom_op() behind a name or an operator; None for other operators."""
    return op if hasattr(op, "_opoverload") else _definitions.get(_qualified(op))


def _library_of(name: str, lib: Library | None) -> Library:
    return lib or _fragment(name.partition("::")[0])


def _warn_if_misspelt(function: str, name: str) -> None:
    """Warns of a kernel for an undeclared operator if one with a near name is declared. It is no
    error, since a kernel may be registered before its operator."""
    try:
        _C._operator(name.partition(".")[0])
    except RuntimeError as error:
        if "did you mean" in str(error):
            warnings.warn(f"{function}: {error}", stacklevel=3)


def impl(
    qualname: Any,
    types: Any,
    func: Any = None,
    *,
    lib: Library | None = None,
    dispatch_key: str = "",
) -> Any:
    """Registers a kernel for device types ("cpu", ...), dispatch keys, or "default" for all.

    If `qualname` is a Library, `types` is the operator, `func` or dispatch_key is a dispatch key,
    and the result is a decorator for the kernel.
    """
    if isinstance(qualname, Library):
        owner, key = qualname, func or dispatch_key

        def register_in(function: Callable[..., Any]) -> Callable[..., Any]:
            owner.impl(types, function, key)
            return function

        return register_in

    keys = [_device_key(kind) for kind in ((types,) if isinstance(types, str) else types)]
    for key in keys:
        try:
            _C._dispatch_key_bits(key)
        except ValueError:
            raise RuntimeError(
                f"impl: expected a device type or a dispatch key, got '{key}'"
            ) from None

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ns = qualname.partition("::")[0]
        for key in keys:
            (lib or _fragment(ns)).impl(qualname, function, key)
        return function

    return register if func is None else register(func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Registers a backward written in Python for an operator, given by name or from lamella.ops.

    setup_context(ctx, inputs, output) stores in `ctx` what backward(ctx, *grads) needs; inputs: the
    tuple of the operator's positional arguments; keyword-only ones are in `keyword_only_inputs`.
    backward returns one gradient for each argument: None for none, a list for a list of tensors.
    """
    from lamella._register_autograd import make_kernel

    name = _qualified(op)
    qualified, _, overload = name.partition(".")
    found = _C._operator(qualified, overload or "default")
    if "!" in found._schema:
        raise RuntimeError(
            f"register_autograd: expected an operator that writes none of its arguments, "
            f"got {found._schema}"
        )
    kernel, gradient = make_kernel(found, name, backward, setup_context)
    owner = _definition(op)
    library = _library_of(name, lib or (owner and owner._lib))
    library._put(name, kernel, "Autograd", False, False, gradient, setup_context)


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers how vmap calls an operator: func(info, in_dims, *args) -> (outputs, out_dims).

    in_dims has an entry for each of args: 0 for a batched tensor, whose batch is in dimension 0, or
    None. info has batch_size and randomness. out_dims is the batch dimension of each output, None
    for an output without a batch. Also a decorator.
    """
    name = _qualified(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        from lamella._register_vmap import register as register_rule

        owner = _definition(op)
        register_rule(_library_of(name, lib or (owner and owner._lib)), name, function)
        return function

    return register if func is None else register(func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers the kernel of an operator for device types ("cpu", "cuda"); None: for all."""
    owner = _definition(op)
    if owner is not None:
        return owner.register_kernel(device_types, func)
    return impl(_qualified(op), device_types or "default", func, lib=lib)


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers the kernel for `meta` tensors, which computes only shapes and dtypes of results."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        owner = _definition(op)
        if owner is not None:
            return owner.register_fake(function)

        def kernel(*args: Any, **kwargs: Any) -> Any:
            with _fake_context():
                return function(*args, **kwargs)

        name = _qualified(op)
        _warn_if_misspelt("register_fake", name)
        _check_fake(name, lib)
        _library_of(name, lib)._put(name, kernel, "Meta")
        _note_fake(name, function, lib)
        return function

    return register if func is None else register(func)


def _note_fake(name: str, function: Callable[..., Any], lib: Library | None) -> None:
    """Notes what register_fake() registered, and where it was called."""
    frame = sys._getframe(1)
    here = (__file__, __file__.replace("_library", "_custom_op"))
    while frame.f_code.co_filename in here and frame.f_back is not None:
        frame = frame.f_back
    _fakes[name] = function, f"{frame.f_code.co_filename}:{frame.f_lineno}", lib


def _check_fake(name: str, lib: Library | None) -> None:
    """RuntimeError if the shapes of an operator's results are known already; a library may replace
    what it registered."""
    if lib is not None and _fakes.get(name, (None, None, None))[2] is lib:
        return
    if name in _fakes:
        raise RuntimeError(
            f"register_fake: {name} already has a fake impl, registered at {_fakes[name][1]}"
        )
    if not _C._dispatch_declared(name):
        return
    keys = [row[0] for row in _C._dispatch_registrations(name)]
    for key in ("Meta", "CompositeImplicitAutograd"):
        if key in keys:
            raise RuntimeError(f"register_fake: {name} already has a {key} implementation")


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Library | None = None
) -> Any:
    """register_fake(), as it was called before."""
    return register_fake(qualname, func, lib=lib)


class DynamicSizeError(NotImplementedError):
    """A size that depends on data, where only shapes are computed."""

    of_data = True


class FakeImplCtx:
    """What get_ctx() returns inside a function registered by register_fake()."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        raise DynamicSizeError(
            "new_dynamic_size: sizes that depend on data are not supported; "
            "expected the results' shapes to follow from the arguments' shapes"
        )

    create_unbacked_symint = new_dynamic_size


_contexts: list[FakeImplCtx] = []


@contextlib.contextmanager
def _fake_context() -> Iterator[None]:
    _contexts.append(FakeImplCtx())
    try:
        yield
    finally:
        _contexts.pop()


def get_ctx() -> FakeImplCtx:
    """The context of the running function that register_fake() registered."""
    if not _contexts:
        raise RuntimeError(
            "get_ctx: expected to be called by a function that register_fake() registered"
        )
    return _contexts[-1]


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what an operator does under a mode, or on instances of a subclass of Tensor.

    The function is called instead of the class's __torch_dispatch__: as func(mode, func, types,
    args, kwargs) for a mode, and as func(cls, func, types, args, kwargs) for a subclass.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name, _, overload = _qualified(op).partition(".")
        found = _C._operator(name, overload or "default")
        _C._set_dispatch_rule(found, torch_dispatch_class, function)
        if lib is not None:
            lib._rules.append((found, torch_dispatch_class))
        return function

    return register if func is None else register(func)


class Kernel:
    """A callable, made by get_kernel(), that calls an operator at one dispatch key."""

    def __init__(self, op: Any, keys: Any) -> None:
        self._op = op
        self._keys = keys

    def call_boxed(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        return self._op.redispatch(keyset, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op.redispatch(self._keys, *args, **kwargs)


def get_kernel(op: Any, dispatch_key: str) -> Kernel:
    """A callable that runs the kernel which serves an operator at a dispatch key, such as "CPU"."""
    from lamella._dispatch import DispatchKeySet

    name, _, overload = _qualified(op).partition(".")
    found = _C._operator(name, overload or "default")
    if not _C._has_computed_kernel(found, dispatch_key):
        raise RuntimeError(
            f"get_kernel: expected {found.name()} to have a kernel for {dispatch_key}"
        )
    return Kernel(found, DispatchKeySet().add(dispatch_key))


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Checks an operator against its schema and under autograd, fake tensors and compilation, with
    these arguments only; lamella.testing.opcheck, which this calls, can also vary them. atol and
    rtol are ignored: values are compared with the dtype's own tolerances."""
    from lamella.testing import opcheck as check

    op = getattr(op, "_opoverload", op)
    if not hasattr(op, "_overloadname"):
        op = getattr(op, "default", op)
    return check(op, args, kwargs, test_utils=test_utils, raise_exception=raise_exception)


def register_autocast(
    op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Makes autocast cast an operator's floating-point tensors on a device type to the dtype
    `cast_inputs` and run it without autocast. float64 tensors are not cast.

    The definition of an operator can request this for all device types and the autocast region's
    dtype: define(..., autocast="lower_precision").
    """
    if not _C._is_autocast_available(device_type):
        raise ValueError(
            f"register_autocast: expected 'device_type' to be one that autocast works for, such as "
            f"cpu or cuda, got {device_type!r}"
        )
    name = _qualified(op)
    qualified, _, overload = name.partition(".")
    _C._operator(qualified, overload or "default")
    library = _library_of(name, lib)
    library._library.impl_cast(name, _C._autocast_key(device_type), cast_inputs)
