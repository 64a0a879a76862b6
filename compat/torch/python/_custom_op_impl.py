"""torch._custom_op.impl: operators made of Python functions, as they were before
torch.library.custom_op. torch._custom_ops has the functions that extend them."""

from __future__ import annotations

import collections
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lamella import _C, Tensor
from lamella._infer_schema import infer_schema as infer_schema
from lamella._register_autograd import make_kernel
from lamella._schema import FunctionSchema
from lamella.compat import _dispatcher
from lamella.library import Library, get_ctx
from lamella.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["CustomOp", "custom_op", "get_ctx"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
global_registry: dict[str, CustomOp] = {}


def parse_qualname(qualname: str) -> tuple[str, str]:
    """The namespace and the name of "mylib::twice"."""
    ns, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"custom_op: expected a name with a namespace, got '{qualname}'")
    if "." in name:
        raise ValueError(f"custom_op: expected a name without an overload, got '{qualname}'")
    return ns, name


def is_functional(schema: FunctionSchema) -> bool:
    """Whether an operator writes nothing, returns something, and returns no views."""
    views = any(each.alias_info is not None for each in schema.returns)
    return bool(schema.returns) and not schema.is_mutable and not views


class CustomOp:
    """An operator and the functions that are registered for it, by kind."""

    def __init__(self, *parts: Any, _private_access: bool = False) -> None:
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private: call custom_op() instead")
        self._qualname, self._lib, self._opoverload = parts
        self.__name__ = self._qualname.partition("::")[2]
        self._schema: FunctionSchema = self._opoverload._schema
        self._impls: dict[str, tuple[Callable[..., Any], str]] = {}
        self._differentiable: list[bool] | None = None
        self._autograd = False
        self._kernel: Callable[..., Any] | None = None
        global_registry[self._qualname] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def _destroy(self) -> None:
        self._lib.close()
        global_registry.pop(self._qualname, None)

    def _register(self, kind: str, function: Callable[..., Any], depth: int = 3) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"{self._qualname}: already has a {kind} impl registered from Python at "
                f"{self._impls[kind][1]}"
            )
        frame = sys._getframe(depth)
        self._impls[kind] = function, f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def impl(self, device_types: str | Iterable[str] = ("cpu", "cuda")) -> Callable[..., Any]:
        """A decorator that registers the kernel for device types."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"impl: we only support device_type in {list(SUPPORTED_DEVICE_TYPE_TO_KEY)}, "
                    f"got '{kind}'"
                )

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                if kind not in self._impls and self._served(key):
                    raise RuntimeError(
                        f"impl: the operator {self._qualname} already has an implementation "
                        f"for {kind}"
                    )
                self._register(kind, function)
                self._lib.impl(self.__name__, function, key)
            return function

        return register

    def _served(self, key: str) -> bool:
        """Whether a kernel serves the key, besides the one that says that there is none."""
        kernels = {at: (name, way) for at, name, way, _ in _C._dispatch_slots(self._opoverload)}
        name, way = kernels[key]
        return way != "missing" and name != "_no_kernel"

    def impl_abstract(self) -> Callable[..., Any]:
        """A decorator that registers the kernel for `meta` tensors."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._register("abstract", function)
            self._lib.impl(self.__name__, function, "Meta")
            return function

        return register

    def _check_backward(self) -> None:
        text = ""
        if self._schema.is_mutable:
            text = "non-functional operator"
        elif not self._schema.returns:
            text = "operator with no returns"
        elif any(each.alias_info is not None for each in self._schema.returns):
            text = "operator that returns views"
        if text:
            raise RuntimeError(f"impl_backward: {text} has no backward, got {self._schema}")
        for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
            if self._autograd and key == "Autograd":
                continue
            if _dispatcher._dispatch_has_kernel_for_dispatch_key(self._qualname, key):
                raise RuntimeError(
                    f"impl_backward: the operator {self._qualname} already has an implementation "
                    f"for {key}"
                )

    def impl_save_for_backward(self) -> Callable[..., Any]:
        """A decorator for the function of (inputs, output) whose result the backward is given."""
        return self._backward_part("save_for_backward", None)

    def impl_backward(self, output_differentiability: Any = None) -> Callable[..., Any]:
        """A decorator for the function of (ctx, saved, *grads) that returns a dict of gradients.

        output_differentiability: a flag for each output; by default tensors have gradients.
        """
        flags = output_differentiability
        if flags is not None and (
            not isinstance(flags, list)
            or not all(isinstance(flag, bool) for flag in flags)
            or len(flags) != len(self._schema.returns)
        ):
            raise RuntimeError(
                "impl_backward: expected output_differentiability to be a list of "
                f"{len(self._schema.returns)} bools, got {flags}"
            )
        return self._backward_part("backward", flags)

    def _backward_part(self, kind: str, flags: list[bool] | None) -> Callable[..., Any]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._check_backward()
            self._have_autograd()
            self._register(kind, function)
            if kind == "backward":
                self._differentiable = flags
            if {"backward", "save_for_backward"} <= set(self._impls):
                self._kernel, _ = make_kernel(
                    self._opoverload, self._qualname, self._run_backward, self._save
                )
            return function

        return register

    def _have_autograd(self) -> None:
        if self._autograd:
            return
        self._autograd = True

        def kernel(*args: Any, **kwargs: Any) -> Any:
            if self._kernel is not None:
                return self._kernel(*args, **kwargs)
            leaves = tree_flatten((args, kwargs))[0]
            if _C.is_grad_enabled() and any(
                isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves
            ):
                for kind, other in (
                    ("backward", "save_for_backward"),
                    ("save_for_backward", "backward"),
                ):
                    if kind in self._impls:
                        raise RuntimeError(
                            f"{self._qualname}: has a '{kind}', but I was unable to find a "
                            f"'{other}'"
                        )
                raise RuntimeError(f"Autograd has not been implemented for {self._qualname}")
            return _C._call_below_autograd(self._opoverload, args, kwargs)

        self._lib.impl(self.__name__, kernel, "Autograd")

    def _save(self, ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any = None) -> None:
        named = {each.name: value for each, value in zip(self._schema.arguments, inputs)}
        named.update(keyword_only_inputs or {})
        kind = collections.namedtuple("inputs", list(named))  # type: ignore[misc]
        saved = self._impls["save_for_backward"][0](kind(*named.values()), output)
        flat, ctx._spec = tree_flatten(saved)
        ctx._others = [None if isinstance(leaf, Tensor) else leaf for leaf in flat]
        ctx._at = [i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)]
        ctx.save_for_backward(*(flat[i] for i in ctx._at))
        ctx._sizes = {
            name: len(value) if isinstance(value, (list, tuple)) else None
            for name, value in named.items()
        }
        self._mark(ctx, output)

    def _mark(self, ctx: Any, output: Any) -> None:
        outputs = list(output) if len(self._schema.returns) > 1 else [output]
        flags = self._differentiable
        plain = []
        for i, value in enumerate(outputs):
            tensors = value if isinstance(value, (list, tuple)) else [value]
            if flags is not None and flags[i]:
                if not all(isinstance(each, Tensor) for each in tensors):
                    raise RuntimeError(
                        f"{self._qualname}: output_differentiability says that output {i} has "
                        f"gradients, but it is not a Tensor, it is a {type(value).__name__}"
                    )
            elif flags is not None:
                plain += [each for each in tensors if isinstance(each, Tensor)]
        if plain:
            ctx.mark_non_differentiable(*plain)

    def _run_backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        flat = list(ctx._others)
        for i, tensor in zip(ctx._at, ctx.saved_tensors):
            flat[i] = tensor
        saved = tree_unflatten(flat, ctx._spec)
        found = self._impls["backward"][0](ctx, saved, *grads)
        if not isinstance(found, dict):
            raise RuntimeError(
                f"{self._qualname}: expected the result of the backward function to be a dict, "
                f"got {type(found).__name__}"
            )
        arguments = self._schema.arguments
        wanted = {each.name for each in arguments if each.type.startswith("Tensor")}
        given = set(found)
        if any(name not in wanted for name in given & {each.name for each in arguments}):
            raise RuntimeError(
                f"{self._qualname}: expected no gradients for arguments of non-Tensor-like types, "
                f"got {sorted(given - wanted)}"
            )
        if given != wanted:
            raise RuntimeError(
                f"{self._qualname}: expected the dict to have keys {wanted}, got {given}"
            )
        for name, grad in found.items():
            self._check_grad(name, grad, ctx._sizes.get(name))
        return tuple(found.get(each.name) for each in arguments if not each.kwarg_only)

    def _check_grad(self, name: str, grad: Any, size: int | None) -> None:
        where = f"{self._qualname}: for the input '{name}'"
        if size is None:
            if grad is not None and not isinstance(grad, Tensor):
                raise RuntimeError(
                    f"{where} expected either None or a Tensor, got {type(grad).__name__}"
                )
            return
        if not isinstance(grad, (list, tuple)):
            raise RuntimeError(f"{where} expected a list of gradients, got {type(grad).__name__}")
        if len(grad) != size:
            raise RuntimeError(f"{where} expected {size} gradients but got {len(grad)}")
        for each in grad:
            if each is not None and not isinstance(each, Tensor):
                raise RuntimeError(
                    f"{where} expected each gradient to be None or Tensor, got "
                    f"{type(each).__name__}"
                )


def define(qualname: str, schema: str, tags: Sequence[str] = ()) -> CustomOp:
    """Defines an operator that writes nothing, by its schema without the name."""
    ns, name = parse_qualname(qualname)
    if "." in ns:
        raise ValueError(f"custom_op: expected a namespace without a dot, got '{ns}'")
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op: '{ns}' is a reserved namespace")
    text = f"{name}{schema}"
    try:
        parsed = FunctionSchema(_C._parse_schema(text))
    except ValueError as error:
        raise AssertionError(f"Invalid function schema: {text}: {error}") from None
    if not is_functional(parsed):
        raise ValueError(f"custom_op only supports functional operators, got {text}")
    if any(each.name == "self" for each in parsed.arguments):
        raise ValueError(f"custom_op: expected no argument named 'self', got {text}")
    if _dispatcher._find(qualname) is not None:
        raise RuntimeError(f"custom_op: {qualname} is defined multiple times")
    library = Library(ns, "FRAGMENT")
    library.define(text, tags=tags)
    made = CustomOp(qualname, library, get_op(qualname), _private_access=True)

    def _no_kernel(*args: Any, **kwargs: Any) -> Any:
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        if not tensors:
            raise NotImplementedError(f"{qualname}: There were no Tensor inputs to this operator")
        kind = tensors[0].device.type
        if kind == "meta":
            raise NotImplementedError(
                f"{qualname}: there is no fake impl or Meta kernel; register one with "
                "torch.library.register_fake"
            )
        raise NotImplementedError(f"{qualname}: there is no {kind} impl registered for it")

    library.impl(name, _no_kernel, "CompositeExplicitAutograd")
    made._have_autograd()
    return made


def get_op(qualname: str) -> Any:
    """The overload of an operator's name."""
    parse_qualname(qualname)
    found = _dispatcher._find(qualname)
    if found is None:
        raise ValueError(f"Could not find the operator {qualname}")
    return found


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}"')
    return custom_op_from_existing(get_op(qualname))


def custom_op_from_existing(op: Any) -> CustomOp:
    """A CustomOp of an operator that another library defines."""
    library = Library(op.namespace, "FRAGMENT")
    return CustomOp(str(op._operator_name), library, op, _private_access=True)


def get_abstract_impl(qualname: str) -> Callable[..., Any] | None:
    """The kernel for `meta` tensors, or None."""
    found = global_registry.get(qualname)
    return None if found is None else found._impls.get("abstract", (None, ""))[0]


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[..., Any]:
    """A decorator that defines an operator with the signature of a function."""

    def make(function: Callable[..., Any]) -> CustomOp:
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op: expected a function, got {type(function).__name__}")
        _, name = parse_qualname(qualname)
        if function.__name__ != name:
            raise ValueError(
                f"custom_op: expected the function to have name '{name}', got "
                f"'{function.__name__}'"
            )
        if manual_schema is not None:
            _match(FunctionSchema(_C._parse_schema(name + manual_schema)), function)
        return define(qualname, manual_schema or infer_schema(function, mutates_args=()))

    return make


def _match(schema: FunctionSchema, function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    if any(each.kind not in plain for each in parameters):
        raise ValueError(
            "custom_op: varargs, kwargs and positional-only arguments are not supported"
        )
    for keyword in (False, True):
        mine = [p for p in parameters if (p.kind is plain[1]) == keyword]
        theirs = [a for a in schema.arguments if a.kwarg_only == keyword]
        if [p.name for p in mine] != [a.name for a in theirs]:
            raise ValueError(
                f"custom_op: expected the function's signature to match {schema}, got "
                f"{inspect.signature(function)}"
            )
        if any(p.default is not p.empty for p in mine) or any(
            a.has_default_value() for a in theirs
        ):
            raise ValueError("custom_op: expected neither side to have default arguments")
