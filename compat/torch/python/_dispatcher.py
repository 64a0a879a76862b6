"""torch._C._dispatch_*: PyTorch's view of the table of operators, with the texts that its tools
read, over the registrations that lamella._C lists."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import lamella
from lamella import _C
from lamella._dispatch import DispatchKeySet

# PyTorch's keys that share AutogradOther and that Lamella has under one name.
_OTHERS = {"FPGA": "Vulkan", "MAIA": "Vulkan", "Vulkan": "Vulkan"}
_SHOWN = {"Vulkan": "FPGA"}
_ALIASES = (
    "Autograd",
    "CompositeImplicitAutograd",
    "FuncTorchBatchedDecomposition",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
_FIRST = ("Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU")


def key_of(key: Any) -> str:
    """Lamella's name of a dispatch key; RuntimeError if there is none."""
    text = str(key).rpartition(".")[2]
    text = _OTHERS.get(text, text)
    try:
        _C._dispatch_key_bits(text)
    except (RuntimeError, ValueError):
        raise RuntimeError(f"could not parse dispatch key: {key}") from None
    return text


def _split(name: str) -> tuple[str, str]:
    qualified, _, overload = name.partition(".")
    return qualified, overload or "default"


def _find(name: str) -> Any:
    """The overload of a name such as "mine::add.Tensor", or None if it is not declared."""
    return _C._operator(*_split(name)) if _C._dispatch_declared(name) else None


def _declared(name: str) -> Any:
    found = _find(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def _registrations(name: str, older: bool = False) -> list[tuple[Any, ...]]:
    """What is registered for a name; [] if nothing ever was."""
    found = _find(name)
    try:
        rows: list[tuple[Any, ...]] = _C._dispatch_registrations(
            name if found is None else found, older
        )
    except KeyError:
        return []
    first = [row for row in rows if row[0] in _FIRST]
    return first + [row for row in rows if row[0] not in _FIRST]


def _kernel_text(name: str, where: str, signature: str) -> str:
    """A kernel as PyTorch prints it: where it comes from, its signature, its calling forms."""
    if " :: " in name:
        return f"{name} [ boxed unboxed ]"
    if signature:
        return f"registered at {where} :: {signature} [ boxed unboxed ]"
    return f"{name or f'registered at {where}'} :: (none) [ boxed ]"


# How operators that _dispatch_library() declared say that they may alias.
_analysis: dict[str, str] = {}
# Where operators were declared, for those that _dispatch_library() declared.
_places: dict[str, str] = {}


def _dispatch_dump(name: str) -> str:
    """The declaration and the registrations of an operator."""
    found, rows = _find(name), _registrations(name, True)
    if found is None and not rows:
        return ""
    lines = [f"name: {name}"]
    if found is None:
        lines.append("schema: (none)")
    else:
        lines.append(f"schema: {found._schema}")
        lines.append(f"debug: registered at {_places.get(name, '/dev/null:0')}")
        lines.append(f"alias analysis kind: {_analysis.get(name, 'FROM_SCHEMA')}")
    before = None
    for key, alias, kernel, where, signature in rows:
        note = ("[alias]" if alias else "") + (" (inactive)" if key == before else "")
        lines.append(f"{_SHOWN.get(key, key)}{note}: {_kernel_text(kernel, where, signature)}")
        before = key
    return "\n".join(lines) + "\n"


# Tables of operators whose kernels are all _DispatchModule's, by registrations and fallbacks.
_computed: dict[Any, list[tuple[str, str, str]]] = {}


def _rows(name: str) -> list[tuple[str, str, str]]:
    """(key, kernel, how it got there) of each run-time key that has a kernel."""
    found, registered = _find(name), _registrations(name)
    if found is None and not registered:
        return []
    if not all(" :: " in row[2] for row in registered):
        return _computed_rows(name, found, registered)
    place = (found is None, tuple(row[:3] for row in registered), tuple(_fallbacks))
    if place not in _computed:
        _computed[place] = _computed_rows(name, found, registered)
    return _computed[place]


def _computed_rows(name: str, found: Any, registered: Any) -> list[tuple[str, str, str]]:
    named = {key: kernel for key, _, kernel, *_ in registered}
    rows = []
    for alias, way in (
        ("CompositeExplicitAutograd", "default backend kernel"),
        ("CompositeImplicitAutograd", "math kernel"),
    ):
        if alias in named:
            rows.append(("Undefined", named[alias], way))
            break
    for key, kernel, way, where in _C._dispatch_slots(name if found is None else found):
        if way == "missing" or key in ("Undefined", "Dense", "AutogradFunctionality"):
            continue
        if way == "ambiguous autogradother":
            kernel = "ambiguous_autogradother"
        elif way == "backend fallback":
            kernel = f"registered at {where or 'lamella/layers/VariableFallbackKernel.cpp:1'}"
        elif not kernel:
            kernel = f"registered at {where}"
        rows.append((_SHOWN.get(key, key), kernel.partition(" :: ")[0], way))
    rows = [(key, kernel.partition(" :: ")[0], way) for key, kernel, way in rows]
    # PyTorch lists AutogradOther with the autograd keys of backends, behind the backends' own.
    others = [row for row in rows if row[0] == "AutogradOther"]
    rows = [row for row in rows if row[0] != "AutogradOther"]
    at = next((i for i, row in enumerate(rows) if row[0] == "AutogradCPU"), len(rows))
    return rows[:at] + others + rows[at:]


def _dispatch_dump_table(name: str) -> str:
    """The kernel of every run-time key, and the rule by which it serves the key."""
    return "".join([f"{key}: {kernel} [{way}]\n" for key, kernel, way in _rows(name)])


def _dispatch_check_invariants(name: str) -> None:
    """RuntimeError if a key of the operator is served by a kernel that is not registered."""
    registered = {row[2].partition(" :: ")[0] for row in _registrations(name)}
    for key, kernel, way in _rows(name):
        if way.endswith("kernel") and kernel not in registered and "registered at" not in kernel:
            raise RuntimeError(f"{name}: {key} is served by {kernel}, which is not registered")


def _dispatch_check_all_invariants() -> None:
    """_dispatch_check_invariants() for all operators that have kernels written in Python."""
    for name in _dispatch_get_all_op_names():
        if "_test" in name:
            _dispatch_check_invariants(name)


def _dispatch_find_dangling_impls() -> list[str]:
    """The dumps of names that kernels are registered for and that no library declares."""
    return [_dispatch_dump(name) for name in _C._dispatch_undeclared()]


def _dispatch_get_all_op_names() -> list[str]:
    """The names of all operators that are declared, with their overloads."""
    return [f"{name}.{over}" if over else name for name, over in _C._operator_names()]


def _dispatch_get_registrations_for_dispatch_key(dispatch_key: str = "") -> list[str]:
    """The operators that have a kernel for a key; without one, all that have kernels."""
    key = key_of(dispatch_key) if dispatch_key else ""
    return sorted(
        name
        for name in _dispatch_get_all_op_names()
        if any(not key or row[0] == key for row in _registrations(name))
    )


def _dispatch_print_registrations_for_dispatch_key(dispatch_key: str = "") -> None:
    """Prints _dispatch_get_registrations_for_dispatch_key(), a name in each line."""
    print("\n".join(_dispatch_get_registrations_for_dispatch_key(dispatch_key)))


def _dispatch_has_kernel(name: str) -> bool:
    """Whether anything is registered under the name."""
    return _find(name) is not None or bool(_registrations(name))


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch: Any) -> bool:
    """Whether a kernel is registered for the very key."""
    _declared(name)
    return any(row[0] == key_of(dispatch) for row in _registrations(name))


def _dispatch_has_kernel_for_any_dispatch_key(name: str, keys: int) -> bool:
    """Whether a kernel is registered for one of the keys of a set."""
    _declared(name)
    return any(
        not row[1] and (bits := int(_C._dispatch_key_bits(row[0]))) and bits & int(keys) == bits
        for row in _registrations(name)
    )


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, dispatch: Any) -> bool:
    """Whether a kernel serves the key, be it registered for an alias."""
    found: bool = _C._has_computed_kernel(_declared(name), key_of(dispatch))
    return found


def _dispatch_kernel_for_dispatch_key_is_fallthrough(name: str, dispatch: Any) -> bool:
    """Whether calls skip the key."""
    slots = {key: way for key, _, way, _ in _C._dispatch_slots(_declared(name))}
    return slots.get(key_of(dispatch)) == "backend fallback"


def _dispatch_find_schema_or_throw(name: str, overload_name: str) -> Any:
    """The operator of a name and an overload, for _dispatch_call_boxed()."""
    try:
        return _C._operator(name, overload_name or "default")
    except RuntimeError:
        full = f"{name}.{overload_name}" if overload_name else name
        raise RuntimeError(f"Could not find schema for {full}") from None


def _dispatch_call_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls an operator that _dispatch_find_schema_or_throw() found."""
    return handle(*args, **kwargs)


# ---- Key sets ------------------------------------------------------------------------------------


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The dispatch keys of a tensor."""
    return DispatchKeySet(_C._tensor_keys(tensor))


def _dispatch_key_set(tensor: Any) -> str:
    """The text of a tensor's dispatch keys."""
    return repr(_dispatch_keys(tensor))


def _dispatch_keyset_to_string(keys: int) -> str:
    """The text of a key set."""
    return repr(DispatchKeySet(keys))


_dispatch_key_parse = key_of  # a dispatch key by its name


def _dispatch_key_name(key: Any) -> str:
    """The name of a dispatch key."""
    return str(key)


def _dispatch_key_for_device(device_type: str) -> str:
    """The name of the dispatch key of a device type's kernels."""
    name: str = _C._device_dispatch_key(device_type)
    return name


def _dispatch_is_alias_key(key: Any) -> bool:
    """Whether kernels for the key serve several run-time keys."""
    return str(key) in _ALIASES


def _dispatch_isTensorSubclassLike(tensor: Any) -> bool:  # noqa: N802
    """Whether operators on the tensor are handled by code in Python."""
    return bool(int(_C._tensor_keys(tensor)) & int(_C._dispatch_functionality_bits("Python")))


def _dispatch_num_backends() -> int:
    """The number of backends that have keys of their own."""
    return sum(key.startswith("Sparse") and "Csr" not in key for key, *_ in _some_slots()) - 1


def _some_slots() -> list[tuple[Any, ...]]:
    slots: list[tuple[Any, ...]] = _C._dispatch_slots(_C._operator("aten::neg", "default"))
    return slots


def _dispatch_has_backend_fallback(key: Any) -> bool:
    """Whether calls without a kernel for the key go to one of all operators."""
    return any(k == key_of(key) and way == "backend fallback" for k, _, way, _ in _some_slots())


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys that guards of this thread add to each call."""
    return DispatchKeySet(_C._thread_keys()[0])


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that guards of this thread take from each call."""
    return DispatchKeySet(_C._thread_keys()[1])


def _dispatch_tls_is_dispatch_key_included(key: Any) -> bool:
    """Whether this thread adds the key to each call."""
    return _dispatch_tls_local_include_set().has(key_of(key))


def _dispatch_tls_is_dispatch_key_excluded(key: Any) -> bool:
    """Whether this thread takes the key from each call."""
    bits = int(_C._dispatch_functionality_bits(key_of(key)))
    return bits != 0 and int(_C._thread_keys()[1]) & bits == bits


def _dispatch_tls_set_dispatch_key_included(key: Any, desired: bool) -> None:
    """Adds a key to each call of this thread, or no longer does."""
    included, excluded = _C._thread_keys()
    bits = int(_C._dispatch_key_bits(key_of(key)))
    _C._set_thread_keys(included | bits if desired else included & ~bits, excluded)


def _dispatch_tls_set_dispatch_key_excluded(key: Any, desired: bool) -> None:
    """Takes a key from each call of this thread, or no longer does."""
    included, excluded = _C._thread_keys()
    bits = int(_C._dispatch_functionality_bits(key_of(key)))
    _C._set_thread_keys(included, excluded | bits if desired else excluded & ~bits)


class _KeysGuard(contextlib.AbstractContextManager[None]):
    """A context in which the thread's key sets are changed, and put back at its end."""

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._before = _C._thread_keys()
        _C._set_thread_keys(*self._change(*self._before))

    def __exit__(self, *error: Any) -> None:
        _C._set_thread_keys(*self._before)


class _IncludeDispatchKeyGuard(_KeysGuard):
    """A context that adds dispatch keys to each call."""

    def __init__(self, keys: Any) -> None:
        self._keys = int(_C._dispatch_key_bits(keys) if isinstance(keys, str) else keys)

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        return included | self._keys, excluded


class _ExcludeDispatchKeyGuard(_IncludeDispatchKeyGuard):
    """A context that takes functionalities from each call."""

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        return included, excluded | self._keys


class _SetExcludeDispatchKeyGuard(_IncludeDispatchKeyGuard):
    """A context that takes a key from each call, or does not."""

    def __init__(self, key: Any, excluded: bool) -> None:
        self._keys, self._on = int(_C._dispatch_functionality_bits(key_of(key))), excluded

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        return included, excluded | self._keys if self._on else excluded & ~self._keys


class _ForceDispatchKeyGuard(_KeysGuard):
    """A context with these key sets of the thread in place of the present ones."""

    def __init__(self, include: int, exclude: int) -> None:
        self._sets = int(include), int(exclude)

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        return self._sets


class _PreserveDispatchKeyGuard(_KeysGuard):
    """A context at whose end the thread's key sets are as at its beginning."""

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        return included, excluded


class _FromConstruction(_KeysGuard):
    """A guard that is in effect from its construction to the end of its block, or of its life."""

    _on = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        super().__enter__()
        self._on = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        if self._on:
            self._on = False
            super().__exit__()

    __del__ = __exit__


class ExcludeDispatchKeyGuard(_FromConstruction, _ExcludeDispatchKeyGuard):
    """_ExcludeDispatchKeyGuard from its construction on."""


class _BelowAutograd(_KeysGuard):
    """A context whose calls begin below autograd."""

    _skipped: tuple[str, ...] = ("Autograd",)

    def _change(self, included: int, excluded: int) -> tuple[int, int]:
        for key in self._skipped:
            excluded |= int(_C._dispatch_functionality_bits(key))
        return included, excluded


class _AutoDispatchBelowAutograd(_FromConstruction, _BelowAutograd):
    """Calls begin below autograd from its construction on."""


class _DisableFuncTorch(_PreserveDispatchKeyGuard):
    """A context that changes nothing: transforms are keys of the arguments here."""


class _EnablePythonDispatcher(_PreserveDispatchKeyGuard):
    """A context that changes nothing: kernels in Python are in the table in any case."""


class _DisablePythonDispatcher(_PreserveDispatchKeyGuard):
    """A context that changes nothing."""


class _AutoDispatchBelowADInplaceOrView(_FromConstruction, _BelowAutograd):
    """A context whose calls begin below autograd and the bookkeeping of views."""

    _skipped = ("Autograd", "ADInplaceOrView")


# ---- Libraries whose kernels only stand in the table ---------------------------------------------


def _same(x: Any) -> Any:
    return x


_UNARY = "(Tensor _0) -> Tensor _0"
_fallbacks: dict[str, int] = {}


class _DispatchModule:
    """Registrations that end with the object. Its kernels return their argument; `debug` is what
    dumps call them."""

    def __init__(self, kind: str, name: str, dispatch: str, file: str, line: int) -> None:
        self._ns, self._kind = name, kind
        self._key = key_of(dispatch) if dispatch else ""
        self._where = f"/dev/null:{line}"
        self._libraries = [_C._Library(name, kind, self._key)]
        self._defined: list[str] = []
        self._fell: list[str] = []
        self._places: set[tuple[str, str]] = set()

    def __del__(self) -> None:
        for library in reversed(getattr(self, "_libraries", ())):
            library.close()
        for name in getattr(self, "_defined", ()):
            _analysis.pop(name, None)
            _places.pop(name, None)
        for key in getattr(self, "_fell", ()):
            _fallbacks.pop(key, None)

    def _full(self, name: str) -> str:
        return name if "::" in name else f"{self._ns}::{name}"

    def _fit(self, schema: str, inferred: str, kernel: str) -> None:
        parsed = lamella._schema.FunctionSchema(schema)
        count = len(parsed.arguments)
        if count == 1:
            return
        raise RuntimeError(
            "Inferred operator schema for a C++ kernel function doesn't match the expected "
            f"function schema.\n  operator: {parsed.name}\n  expected schema: {schema}\n"
            f"    registered at {self._where}\n  inferred schema: {inferred}\n    {kernel}\n"
            f"  reason: The number of arguments is different. {count} vs 1."
        )

    def def_(self, schema: str, alias: str = "") -> _DispatchModule:
        """Declares an operator."""
        given, _, rest = schema.partition("(")
        name = self._full(given.strip())
        text = f"{name}({rest}"
        before = _find(name)
        if before is not None:
            printed = _C._parse_schema(text)
            raise RuntimeError(
                f"Tried to register an operator ({printed}) with the same name and overload name "
                "multiple times. Each overload's schema should only be registered with a single "
                f"call to def(). Duplicate registration: registered at {self._where}. Original "
                f"registration: registered at {_places.get(name, self._where)}"
            )
        for _, _, kernel, _, _ in _registrations(name, True):
            debug, marked, inferred = kernel.partition(" :: ")
            if marked:
                self._fit(_C._parse_schema(text), inferred, debug)
        self._libraries[0].define(text.removeprefix(f"{self._ns}::"), "")
        self._defined.append(name)
        _places[name] = self._where
        if alias and alias != "FROM_SCHEMA":
            _analysis[name] = alias
        return self

    def def_legacy(self, schema: str) -> _DispatchModule:
        """Declares an operator without saying how its aliases are known."""
        return self.def_(schema)

    def define(self, schema: str, alias_analysis: str = "", tags: Iterable[Any] = ()) -> str:
        """Declares an operator and returns its name."""
        self.def_(schema, alias_analysis)
        return schema.partition("(")[0]

    def def_name_t_t(
        self, name: str, dispatch: str = "", debug: str = "default_def_name_t_t"
    ) -> _DispatchModule:
        """Declares an operator with the signature of a kernel of one tensor, and registers it."""
        self.def_(f"{name}{_UNARY}", "CONSERVATIVE")
        return self.impl_t_t(name, dispatch, debug)

    def def_schema_t_t(
        self,
        schema: str,
        dispatch: str = "",
        alias: str = "",
        debug: str = "default_def_schema_t_t",
    ) -> _DispatchModule:
        """Declares an operator and registers a kernel of one tensor."""
        self.def_(schema, alias)
        return self.impl_t_t(schema.partition("(")[0], dispatch, debug)

    def impl_t_t(self, name: str, dispatch: str = "", debug: str = "impl_t_t") -> _DispatchModule:
        """Registers a kernel of one tensor."""

        def kernel(x: Any) -> Any:
            return x

        kernel.__name__ = f"{debug} :: {_UNARY}"
        full = self._full(name)
        found = _find(full)
        if found is not None:
            self._fit(str(found._schema), _UNARY, debug)
        self.impl(name, dispatch, kernel)
        return self

    def impl(self, name: str, dispatch: Any, func: Any, with_keyset: bool = False) -> None:
        """Registers a function as the kernel for a key; a later one comes before it."""
        key = key_of(dispatch) if dispatch else self._key or "CompositeImplicitAutograd"
        library, place = self._libraries[0], (self._full(name), key)
        if place in self._places or (self._key and key != self._key):
            library = _C._Library(self._ns, "FRAGMENT", "")
            self._libraries.append(library)
        kernel = None if func is lamella.library.fallthrough_kernel else func
        library.impl(place[0], kernel, key, with_keyset)
        self._places.add(place)

    def fallback_fallthrough(self, dispatch: str = "") -> _DispatchModule:
        """Makes calls of all operators skip the key, where they have no kernel for it."""
        key = key_of(dispatch) if dispatch else self._key
        if key in _fallbacks:
            raise RuntimeError(
                "Tried to register multiple backend fallbacks for the same dispatch key "
                f"{key}; previous registration registered at /dev/null:{_fallbacks[key]}, new "
                f"registration registered at {self._where}"
            )
        self._libraries[0].fallback(None, key)
        _fallbacks[key] = 0
        self._fell.append(key)
        return self


def _dispatch_library(
    kind: str, name: str, dispatch: str, file: str = "/dev/null", linenum: int = 0
) -> _DispatchModule:
    """A library of registrations, whose kernels only stand in the table."""
    return _DispatchModule(kind, name, dispatch, file, linenum)
