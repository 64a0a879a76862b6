"""Subclasses of Tensor that answer for sizes, strides, devices or layouts in their own
__torch_dispatch__: the options dispatch_sizes_strides_policy, dispatch_device and dispatch_layout
of _make_subclass() and _make_wrapper_subclass()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor

# What a class may answer for: the member, the operator that it is asked by, and the option.
_ASKED = {
    "stride": ("aten::sym_stride", "strides"),
    "is_contiguous": ("aten::is_contiguous", "strides"),
    "dim": ("aten::dim", "sizes"),
    "size": ("aten::sym_size", "sizes"),
    "shape": ("aten::sym_size", "sizes"),
    "numel": ("aten::numel", "sizes"),
    "device": ("prim::device", "device"),
    "layout": ("prim::layout", "layout"),
}
_PROPERTIES = frozenset({"shape", "device", "layout"})
_SCHEMAS = {
    "aten": (
        "dim(Tensor self) -> int",
        "numel(Tensor self) -> int",
        "is_contiguous(Tensor self) -> bool",
        "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
        "sym_size(Tensor self) -> SymInt[]",
        "sym_stride(Tensor self) -> SymInt[]",
        "sym_numel(Tensor self) -> SymInt",
        "sym_storage_offset(Tensor self) -> SymInt",
        "size(Tensor self) -> int[]",
        "stride(Tensor self) -> int[]",
        "is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool",
        "is_non_overlapping_and_dense(Tensor self) -> bool",
    ),
    "prim": ("device(Tensor a) -> Device", "layout(Tensor a) -> Layout"),
}
_KERNELS: dict[str, Callable[..., Any]] = {
    "dim": Tensor.dim,
    "numel": Tensor.numel,
    "is_contiguous": Tensor.is_contiguous,
    "is_contiguous.memory_format": Tensor.is_contiguous,
    "sym_size": lambda x: list(x.shape),
    "sym_stride": lambda x: list(x.stride()),
    "sym_numel": Tensor.numel,
    "sym_storage_offset": Tensor.storage_offset,
    "size": lambda x: list(x.shape),
    "stride": lambda x: list(x.stride()),
    "is_strides_like_format": lambda x, memory_format: _asked(
        x, "is_strides_like_format", _plain_is_contiguous, memory_format
    ),
    "is_non_overlapping_and_dense": lambda x: _asked(
        x, "is_non_overlapping_and_dense", lambda x: x.numel() == 0 or _plain_is_contiguous(x)
    ),
    "device": lambda x: x.device,
    "layout": lambda x: x.layout,
}
_libraries: list[Any] = []
_asking = False
_plain_contiguous: Any = Tensor.contiguous
_plain_is_contiguous: Any = Tensor.is_contiguous
_plain_data_ptr: Any = Tensor.data_ptr


def _ask(tensor: Tensor, operator: str, *args: Any) -> Any:
    """The answer of the tensor's class; None if the tensor's own value holds."""
    by_format = operator == "aten::is_contiguous" and args
    op = _C._operator(operator, "memory_format" if by_format else "default")
    cls = type(tensor)
    made = cls.__torch_dispatch__(op, (cls,), (tensor, *args), {})  # type: ignore[attr-defined]
    if made is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{operator.replace('::', '.')}': "
            f"{cls.__name__} returned NotImplemented"
        )
    return made


def _asked(tensor: Any, operator: str, own: Callable[..., Any], *args: Any) -> Any:
    """The answer of the tensor's class, if it answers for strides, or the tensor's own value."""
    made = None
    if type(tensor) is not Tensor and "strides" in vars(tensor).get("_answered", ()):
        made = _ask(tensor, f"aten::{operator}", *args)
    return own(tensor, *args) if made is None else made


def _member(name: str) -> Any:
    """The member of a class that asks its __torch_dispatch__."""
    operator, option = _ASKED[name]
    own = getattr(Tensor, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not Tensor and option in vars(self).get("_answered", ()):
            plain = () if name in ("size", "stride") else (*args, *kwargs.values())
            made = _ask(self, operator, *plain)
            if made is not None:
                if name in ("size", "shape"):
                    made = lamella.Size(made)
                elif name == "stride":
                    made = tuple(made)
                at = (*args, *kwargs.values())
                return made[at[0]] if at and name in ("size", "stride") else made
        return own.__get__(self) if name in _PROPERTIES else own(self, *args, **kwargs)

    return property(method) if name in _PROPERTIES else method


def _contiguous(self: Any, *args: Any, **kwargs: Any) -> Any:
    if type(self) is Tensor or "strides" not in vars(self).get("_answered", ()):
        return _plain_contiguous(self, *args, **kwargs)
    return self if self.is_contiguous() else _ask(self, "aten::clone")


def _data_ptr(self: Tensor) -> int:
    """The address of the first element, 0 without memory. The class is asked how many there are."""
    self.numel()
    return 0 if _C._is_wrapper(self) else _plain_data_ptr(self)


def _answers(made: Any, policy: Any, device: bool, layout: bool) -> Any:
    """Makes a tensor's class answer for what the options say."""
    if policy not in (None, "sizes", "strides"):
        raise RuntimeError(
            f"expected 'dispatch_sizes_strides_policy' to be 'sizes' or 'strides', got {policy!r}"
        )
    options = {"sizes": {"sizes", "strides"}, "strides": {"strides"}}.get(policy, set())
    options = options | ({"device"} if device else set()) | ({"layout"} if layout else set())
    if not options:
        return made
    global _asking
    if not _asking:
        # From the first such class on, members of all tensors look whether their class answers.
        _asking = True
        own = {
            "contiguous": _contiguous,
            "data_ptr": _data_ptr,
            "type_as": lambda x, y: x.to(y.device, y.dtype),
        }
        _C._add_to_tensor({name: _member(name) for name in _ASKED} | own)
    made._answered = tuple(sorted(options))
    return made


def _make_subclass(
    cls: Any,
    data: Tensor,
    require_grad: bool = False,
    *,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    device_for_backend_keys: Any = None,
) -> Any:
    """An alias of a tensor as an object of a subclass."""
    made = _C._make_subclass(cls, data, require_grad)
    return _answers(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def _make_wrapper_subclass(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: Any = None,
) -> Any:
    """A tensor without memory, as an object of a subclass."""
    keys = _extra_dispatch_keys or 0
    if keys & ~_C._dispatch_key_bits("NestedTensor"):
        raise RuntimeError(
            f"_make_wrapper_subclass: expected '_extra_dispatch_keys' to have no key other than "
            f"NestedTensor, got {keys}"
        )
    made = _C._make_wrapper_subclass(
        cls,
        size,
        strides=strides,
        storage_offset=storage_offset,
        memory_format=memory_format,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        extra_keys=keys,
    )
    return _answers(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def install() -> None:
    """Adds the options, and the operators by which classes are asked, once in a process."""
    if _libraries:
        return
    for ns, schemas in _SCHEMAS.items():
        library = lamella.library.Library(ns, "FRAGMENT")
        _libraries.append(library)
        for schema in schemas:
            name = schema.partition("(")[0]
            if not _C._dispatch_declared(f"{ns}::{name}"):
                library.define(schema)
                library.impl(name, _KERNELS[name], "CompositeImplicitAutograd")
    _C._add_to_tensor(
        {
            "_make_subclass": staticmethod(_make_subclass),
            "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
            "untyped_storage": _storage_of,
        }
    )


class _WrapperStorage:
    """The storage of a tensor without memory: which tensors share it, and its size in bytes."""

    def __init__(self, tensor: Tensor) -> None:
        self._cdata: int = _C._storage_address(tensor)
        self.device = tensor.device
        self._tensor = tensor
        last = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride()))
        count = tensor.storage_offset() + last + 1 if tensor.numel() else 0
        self._size: int = count * tensor.element_size()

    def nbytes(self) -> int:
        """The size that the memory would have."""
        return self._size

    size = __len__ = nbytes

    def resizable(self) -> bool:
        """False."""
        return False

    def _elements(self) -> Tensor:
        """All of it as a tensor with one dimension."""
        return self._tensor.as_strided((self._size // self._tensor.element_size(),), (1,), 0)

    def data_ptr(self, *args: Any, **kwargs: Any) -> int:
        """RuntimeError: there is no memory."""
        raise RuntimeError(
            "Attempted to access the data pointer on an invalid python storage: the tensor is a "
            "wrapper without memory"
        )

    resize_ = copy_ = fill_ = _write_file = data_ptr


_untyped_storage = Tensor.untyped_storage


def _storage_of(self: Tensor) -> Any:
    """The tensor's memory."""
    return _WrapperStorage(self) if _C._is_wrapper(self) else _untyped_storage(self)
