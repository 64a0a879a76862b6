"""Members of Tensor that programs for PyTorch use and that Lamella's tensors lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella._tensor import _cuda as _to_cuda
from lamella._tensor import _pin_memory as _pinned
from lamella.compat import _functions
from lamella.compat._no_device import NoDeviceError


def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> Tensor:
    """The tensor on a CUDA device; RuntimeError if there is none."""
    if not lamella.cuda.is_available():
        raise NoDeviceError("cuda: expected a CUDA device, found none")
    return _to_cuda(self, device, non_blocking, **options)


def _new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor of the same dtype: uninitialized of a given shape, from values, over a storage, or
    empty."""
    from lamella._storage import rebuild_tensor
    from lamella.compat.storage import TypedStorage, UntypedStorage

    device = kwargs.pop("device", self.device)
    if "size" in kwargs:
        args = (*args, kwargs.pop("size"))
        return lamella.empty(*args, dtype=self.dtype, device=device)
    if (
        len(args) == 1
        and isinstance(args[0], (list, tuple))
        and not isinstance(args[0], lamella.Size)
    ):
        return lamella.tensor(args[0], dtype=self.dtype, device=device)
    if len(args) == 1 and isinstance(args[0], (UntypedStorage, TypedStorage)):
        held = getattr(args[0], "dtype", self.dtype)
        if held != self.dtype:
            raise RuntimeError(f"new: expected a storage of {self.dtype}, got {held}")
        memory: Any = args[0].untyped() if isinstance(args[0], TypedStorage) else args[0]
        count = memory.nbytes() // self.dtype.itemsize
        return rebuild_tensor(memory, self.dtype, 0, (count,), (1,))
    if len(args) == 1 and hasattr(args[0], "__array__") and not isinstance(args[0], Tensor):
        return lamella.tensor(args[0], dtype=self.dtype, device=device)
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype != self.dtype:
            raise TypeError(f"new: expected a tensor of {self.dtype}, got {args[0].dtype}")
        return args[0].detach().to(device, self.dtype)
    return lamella.empty(*(args or (0,)), dtype=self.dtype, device=device)


def _new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A copy of values, with the dtype and the device of this tensor unless given."""
    dtype = self.dtype if dtype is None else dtype
    device = self.device if device is None else device
    if isinstance(data, Tensor):
        return data.detach().clone().to(device, dtype).requires_grad_(requires_grad)
    return lamella.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
    """The name of the tensor's type, or the tensor converted: to a dtype, a type, or its name."""
    from lamella.compat._types import TENSOR_TYPES, _TensorType

    if dtype is None:
        from lamella._utils import type_name

        return type_name(self).replace("lamella", "torch", 1)
    if isinstance(dtype, str) and dtype.startswith("torch."):
        if dtype not in TENSOR_TYPES:
            raise ValueError(f"type: expected the name of a type of tensors, got '{dtype}'")
        dtype = TENSOR_TYPES[dtype]
    if isinstance(dtype, _TensorType):
        if dtype.device != "cpu":
            if not lamella.cuda.is_available():
                raise RuntimeError("type: expected a CUDA device, found none")
            return self.to(dtype.device, dtype.dtype, non_blocking=non_blocking)
        dtype = dtype.dtype
    return self.to(_C._dtype(dtype), non_blocking=non_blocking)


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in pinned memory of the host; the tensor itself if there is no CUDA device."""
    return _pinned(self) if lamella.cuda.is_available() else self


def _itself(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself: every tensor is dense."""
    return self


def _false(self: Tensor, *args: Any) -> bool:
    """False."""
    return False


def _storage(self: Tensor) -> Any:
    """The tensor's memory, as a storage of elements."""
    from lamella.compat.storage import TypedStorage

    return TypedStorage._over(self.untyped_storage(), self.dtype)


def _storage_type(self: Tensor) -> Any:
    """The class of the tensor's storage: torch.FloatStorage."""
    from lamella.compat.storage import STORAGE_DTYPES, STORAGE_TYPES

    return next(STORAGE_TYPES[name] for name, kind in STORAGE_DTYPES.items() if kind == self.dtype)


def _elements(self: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    """Replaces each element by function(element, ...)."""
    if any(x.requires_grad for x in (self, *others)) and lamella.is_grad_enabled():
        raise RuntimeError("apply_: expected no tensor that requires grad")
    rows = [tensor.expand_as(self).reshape(-1).tolist() for tensor in (self, *others)]
    made = [function(*values) for values in zip(*rows)]
    self.copy_(lamella.tensor(made, dtype=self.dtype).reshape(self.shape))
    return self


def _fill_diagonal(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fills the main diagonal; with `wrap`, a tall matrix's diagonal continues below its square
    part."""
    if self.dim() < 2:
        raise RuntimeError(f"fill_diagonal_: expected 2 dimensions or more, got {self.dim()}")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(
            f"fill_diagonal_: expected dimensions of one size, got {list(self.shape)}"
        )
    count, step = min(self.shape), sum(self.stride())
    view = self.as_strided((count,), (step,), self.storage_offset())
    view.fill_(fill_value)
    if wrap and self.dim() == 2:
        rows, columns = self.shape
        for begin in range(columns + 1, rows, columns + 1):
            _fill_diagonal(self[begin:], fill_value)
    return self


def _swapaxes(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """transpose_()"""
    return self.transpose_(axis0, axis1)


def _dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost in memory.

    ambiguity_check: True raises a RuntimeError if another order fits the strides as well; a list of
    memory formats raises if several of them fit.
    """
    strides = self.stride()
    if ambiguity_check is True:
        # A dimension of size 1 could be anywhere.
        unclear = any(size == 1 for size in self.shape) or len(set(strides)) < len(strides)
    else:
        fits = [self.is_contiguous(memory_format=form) for form in ambiguity_check or ()]
        unclear = bool(fits) and sum(fits) != 1
    if unclear:
        raise RuntimeError(
            "dim_order: expected one order of dimensions, got strides that tell of several: "
            f"{list(strides)} for {list(self.shape)}"
        )
    return tuple(sorted(range(self.dim()), key=lambda dim: -strides[dim]))


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    """A view with another shape, as by reshape()."""
    return self.reshape(sizes)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of digamma, in place."""
    return self.copy_(lamella.polygamma(n, self))


def _no(name: str) -> Any:
    return property(lambda self: False, doc=f"False: no tensor is {name}.")


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The repr of the tensor. tensor_contents: text in place of the elements."""
    from lamella._tensor_str import tensor_repr

    return tensor_repr(self, tensor_contents)


def _reversed(self: Tensor) -> Tensor:
    """The tensor flipped along its first dimension; a 0-d tensor is unchanged."""
    return self.flip(0) if self.dim() else self


_KINDS = "sparse sparse_csr quantized mkldnn nested mps mtia xla xpu ipu vulkan maia"

_MEMBERS: dict[str, Any] = {
    "cuda": _cuda,
    "new": _new,
    "new_tensor": _new_tensor,
    "type": _type,
    "pin_memory": _pin_memory,
    "to_dense": _itself,
    "coalesce": _itself,
    "is_coalesced": _false,
    "is_distributed": _false,
    "storage": _storage,
    "storage_type": _storage_type,
    "_neg_view": lambda self: lamella._neg_view(self),
    "sparse_dim": lambda self: 0,
    "dense_dim": lambda self: self.dim(),
    "__reversed__": _reversed,
    "__div__": Tensor.__truediv__,
    "__rdiv__": Tensor.__rtruediv__,
    "__idiv__": Tensor.__itruediv__,
    "__repr__": _repr,
    "apply_": _elements,
    "map_": lambda self, tensor, function: _elements(self, function, tensor),
    "map2_": lambda self, x, y, function: _elements(self, function, x, y),
    "is_same_size": _functions.is_same_size,
    "is_nonzero": _functions.is_nonzero,
    "fill_diagonal_": _fill_diagonal,
    "swapaxes_": _swapaxes,
    "swapdims_": _swapaxes,
    "dim_order": _dim_order,
    "resize": _resize,
    "polygamma_": _polygamma,
    "_cdata": property(id, doc="What tells tensors apart."),
    "name": property(lambda self: None, doc="None: tensors have no names."),
    "volatile": property(lambda self: False, doc="False."),
    **{f"is_{name}": _no(name) for name in _KINDS.split()},
}


def _raw_saved(node: Any, name: str) -> Any:
    from lamella.compat import _autograd_parts

    return _autograd_parts.raw_saved(node, name)


def install() -> None:
    """Adds the missing members, to nodes of graphs as well. uninstall() does not remove them."""
    _C._set_raw_saved(_raw_saved)
    _C._add_to_tensor(
        {
            name: member
            for name, member in _MEMBERS.items()
            if name in ("type", "__repr__") or not hasattr(Tensor, name)
        }
    )
