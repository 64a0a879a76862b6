"""The methods of Tensor that are written in Python."""

from __future__ import annotations

import copyreg

from lamella import _C, Generator, Tensor, _functional

# Type checkers recognize this name; importing it from typing would slow `import lamella` down.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    import lamella
    from lamella._storage import UntypedStorage

    _T = TypeVar("_T", bound=Tensor)


def _small_float(dtype: lamella.dtype) -> Any:
    """The ml_dtypes dtype for a dtype that NumPy lacks; None for others, or without ml_dtypes."""
    name = str(dtype).partition(".")[2]
    if not dtype.is_floating_point or name in ("float16", "float32", "float64"):
        return None
    try:
        import ml_dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, name)


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The namespace of the array API standard: lamella.array_api."""
    from lamella import array_api

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(
            f"__array_namespace__: expected a version up to 2025.12, got {api_version!r}"
        )
    return array_api


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device: the array API standard's form of to()."""
    if stream is not None:
        raise ValueError("to_device: expected 'stream' to be None")
    return self.to(device=device)


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_as_arrays, value))
    return value


def _array_function(
    self: Tensor, function: Any, types: Any, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Calls a NumPy function with arrays over the tensors' memory; it returns arrays."""
    about = {"shape": lambda x: x.shape, "ndim": Tensor.dim, "size": Tensor.numel}
    if function.__name__ in about and len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return about[function.__name__](args[0])  # these also work if gradients are required
    return function(*_as_arrays(args), **{name: _as_arrays(v) for name, v in kwargs.items()})


def _numpy(self: Tensor, *, force: bool = False) -> Any:
    """A NumPy array over the tensor's memory; with `force`, over a copy if one is needed."""
    import numpy

    tensor = self
    small = _small_float(self.dtype)
    if small is not None:
        return _numpy(self.view(_C.int16 if self.itemsize == 2 else _C.uint8), force=force).view(
            small
        )
    if force:
        tensor = tensor.detach().cpu()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.clone()
    elif tensor.requires_grad:
        if not _C.is_grad_enabled():
            return _numpy(tensor.detach())
        raise RuntimeError(
            "numpy: expected a tensor that does not require grad, got one that does; "
            "use detach().numpy()"
        )
    elif tensor.is_conj() or tensor.is_neg():
        raise RuntimeError(
            "numpy: expected resolved elements, got a lazily conjugated or negated tensor; "
            "use numpy(force=True)"
        )
    return numpy.asarray(memoryview(tensor))


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: expected copy to be allowed, as the dtype changes")
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """Converts the array that a NumPy ufunc computed from a tensor to a tensor."""
    from lamella import from_numpy

    return from_numpy(array) if array.ndim else from_numpy(array.reshape(1)).reshape(())


def _nonzero(self: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of the elements that are not zero: one row for each element, or with `as_tuple`
    one tensor for each dimension."""
    from lamella._utils import nonzero

    return nonzero(self, as_tuple=as_tuple)


def _norm(
    self: Tensor,
    p: lamella._Scalar | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: lamella.dtype | None = None,
) -> Tensor:
    """The norm of order `p` of all elements or along `dim`."""
    return _functional.norm(self, p, dim, keepdim, dtype=dtype)


def _format(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and self.device.type != "meta":
        return format(self.item(), spec)
    if spec:
        raise TypeError(
            f"format: expected no format for a tensor of {self.dim()} dimensions, got '{spec}'"
        )
    return str(self)


def _reduce_ex(self: Tensor, protocol: Any) -> Any:
    from lamella import _storage

    return _storage.reduce_tensor(self)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Any:
    from lamella import _storage

    if _C._vmap_inspect(self) is not None:  # there is no storage to share with other copies
        if id(self) not in memo:
            memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        return memo[id(self)]
    return _storage.deepcopy_tensor(self, memo)


def _copy(self: Tensor) -> Tensor:
    from lamella import _storage

    return _storage.copy_tensor(self)


def _untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind the tensor; the same object for all its aliases."""
    from lamella import _storage

    return _storage.storage_of(self)


def _type(
    self: Tensor, dtype: lamella._DType | str | None = None, non_blocking: bool = False
) -> Tensor | str:
    """The name of the tensor's type, or the tensor converted to a dtype."""
    if dtype is None:
        from lamella._utils import type_name

        return type_name(self)
    return self.to(_C._dtype(dtype), non_blocking=non_blocking)


def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor converted to the dtype and the device of another."""
    return self.to(other.device, other.dtype)


def _restore_generator(device: str, state: Tensor) -> Generator:
    made = Generator(device=device)
    made.set_state(state)
    return made


def _reduce_generator(generator: Generator) -> Any:
    """A generator is pickled and copied as its device and its state."""
    return _restore_generator, (str(generator.device), generator.get_state())


def _dir(self: Tensor) -> list[str]:
    return sorted(set(dir(type(self))) | set(getattr(self, "__dict__", ())))


def _as_subclass(self: Tensor, cls: type[_T]) -> _T:
    """An alias of the tensor as an object of a subclass."""
    made: _T = _C._as_subclass(self, cls)
    return made


def _to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
) -> Any:
    """A sparse tensor of the elements that are not 0, or of the slices that are not 0 if only the
    first `sparse_dim` dimensions are sparse. The default layout is `sparse_coo`."""
    from lamella import _sparse_making

    return _sparse_making.to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize)


def _to_sparse_coo(self: Tensor) -> Any:
    """A sparse tensor in the layout `sparse_coo`, as to_sparse() makes it."""
    return _to_sparse(self)


def _to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not 0, row by row."""
    return _to_sparse(self, layout=_C.sparse_csr)


def _to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not 0, column by column."""
    return _to_sparse(self, layout=_C.sparse_csc)


def _to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks of a matrix that have elements other than 0, row by row."""
    return _to_sparse(self, layout=_C.sparse_bsr, blocksize=blocksize)


def _to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks of a matrix that have elements other than 0, column by column."""
    return _to_sparse(self, layout=_C.sparse_bsc, blocksize=blocksize)


def _only_sparse(name: str, text: str) -> Any:
    def function(self: Tensor) -> Any:
        raise RuntimeError(f"{name}: expected a sparse tensor, got one of layout {self.layout}")

    function.__doc__ = text
    return function


def _sparse_mask(self: Tensor, mask: Any) -> Any:
    """A sparse tensor of this tensor's elements at the indices that `mask` stores."""
    from lamella import _sparse_functions

    return _sparse_functions.sparse_mask(self, mask)


def _to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The dense tensor: this tensor itself, since it is dense, converted to `dtype` if given."""
    return self if dtype is None else self.to(dtype)


def _share_memory(self: Tensor) -> Tensor:
    """Moves the elements to memory shared between processes; returns the tensor itself."""
    from lamella import _shared

    return _shared.share_memory(self)


def _is_shared(self: Tensor) -> bool:
    """Whether the tensor's memory is shared with other processes."""
    from lamella import _shared

    return _shared.is_shared(self)


def _cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """The tensor on a CUDA device, by default the current one."""
    from lamella.cuda import _library

    index = _library.device_index("cuda", device)
    options = {} if memory_format is None else {"memory_format": memory_format}
    return self.to(_C.device("cuda", index), non_blocking=non_blocking, **options)


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory of the host that devices copy from beside other work; the tensor itself if
    it is there."""
    if self.device.type != "cpu":
        raise RuntimeError(f"pin_memory: expected a tensor on cpu, got one on {self.device}")
    if _is_pinned(self):
        return self
    from lamella import empty_like
    from lamella.cuda import _library

    _library.load("pin_memory")
    return empty_like(self, pin_memory=True).copy_(self)


def _is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the tensor is in pinned memory of the host."""
    if self.device.type != "cpu" or not _C._has_backend("cuda"):
        return False
    from lamella.cuda import _library

    return _library.is_pinned(self.data_ptr())


def _record_stream(self: Tensor, stream: Any) -> None:
    """Keeps the tensor's memory, after its end, until work that is on a stream now, or is submitted
    before that end, is done."""
    if self.device.type != "cuda":
        raise RuntimeError(f"record_stream: expected a tensor on cuda, got one on {self.device}")
    from lamella.cuda import _library

    _library.record_stream(self.untyped_storage().data_ptr(), stream)


# Methods of operators whose `self` is not the first argument.


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where the condition holds, and `other`'s elsewhere."""
    from lamella import where

    return where(condition, self, other)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of digamma."""
    from lamella import polygamma

    return polygamma(n, self)


def _repr_html(self: Tensor) -> str | None:
    """What a notebook shows of a large tensor; None for others, which it shows as text."""
    from lamella._notebook import of_tensor

    return of_tensor(self)


# Methods that only sparse tensors have, with their docstrings. On dense tensors they raise.
_PARTS = {
    "indices": "The indices of a coalesced sparse tensor's elements, an int64 column for each.",
    "values": "The elements that a sparse tensor stores.",
    "_indices": "The indices of the elements, in any order and with possible repetitions.",
    "_values": "The elements at the indices that _indices() returns.",
    "crow_indices": "Where the elements of each row begin in a tensor of compressed rows.",
    "col_indices": "The columns of the elements of a tensor of compressed rows.",
    "ccol_indices": "Where the elements of each column begin in a tensor of compressed columns.",
    "row_indices": "The rows of the elements of a tensor of compressed columns.",
    "coalesce": "The sparse tensor with sorted indices, where elements of equal index are summed.",
    "is_coalesced": "Whether the indices are sorted and unique.",
    "_nnz": "How many elements a sparse tensor stores.",
}


def install() -> None:
    copyreg.pickle(Generator, _reduce_generator)
    _C._add_to_tensor(
        {
            "numpy": _numpy,
            "__array__": _array,
            "__array_wrap__": _array_wrap,
            "__array_priority__": 1000,
            "__array_function__": _array_function,
            "__array_namespace__": _array_namespace,
            "to_device": _to_device,
            "cuda": _cuda,
            "pin_memory": _pin_memory,
            "is_pinned": _is_pinned,
            "record_stream": _record_stream,
            "to_sparse": _to_sparse,
            "to_sparse_coo": _to_sparse_coo,
            "to_sparse_csr": _to_sparse_csr,
            "to_sparse_csc": _to_sparse_csc,
            "to_sparse_bsr": _to_sparse_bsr,
            "to_sparse_bsc": _to_sparse_bsc,
            **{name: _only_sparse(name, text) for name, text in _PARTS.items()},
            "to_dense": _to_dense,
            "sparse_mask": _sparse_mask,
            "is_sparse": False,
            "is_sparse_csr": False,
            "nonzero": _nonzero,
            "norm": _norm,
            "where": _where,
            "polygamma": _polygamma,
            "unique": _functional.unique,
            "unique_consecutive": _functional.unique_consecutive,
            "__format__": _format,
            "__reduce_ex__": _reduce_ex,
            "__deepcopy__": _deepcopy,
            "__copy__": _copy,
            "untyped_storage": _untyped_storage,
            "share_memory_": _share_memory,
            "is_shared": _is_shared,
            "type": _type,
            "as_subclass": _as_subclass,
            "_make_subclass": staticmethod(_C._make_subclass),
            "__dir__": _dir,
            "_repr_html_": _repr_html,
            **({} if hasattr(Tensor, "type_as") else {"type_as": _type_as}),
        }
    )
