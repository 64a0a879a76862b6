"""The methods of Tensor that are written in Python."""

from lamella import _C, _functional

Tensor = _C.Tensor


def _numpy(self, *, force=False):
    """A NumPy array over the tensor's memory; with `force`, of a copy where that is needed."""
    import numpy

    tensor = self
    if force:
        tensor = tensor.detach().cpu()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.clone()
    elif tensor.requires_grad:
        raise RuntimeError(
            "numpy: expected a tensor that does not require grad, got one that does; "
            "use detach().numpy()"
        )
    return numpy.asarray(memoryview(tensor))


def _array(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: expected copy to be allowed, as the dtype changes")
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(self, array, context=None, return_scalar=False):
    """What NumPy's functions make of a tensor becomes a tensor again."""
    from lamella import from_numpy

    return from_numpy(array) if array.ndim else from_numpy(array.reshape(1)).reshape(())


def _nonzero(self, *, as_tuple=False):
    from lamella._utils import nonzero

    return nonzero(self, as_tuple=as_tuple)


def _norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    return _functional.norm(self, p, dim, keepdim, dtype=dtype)


def _format(self, spec):
    if self.dim() == 0 and spec:
        return format(self.item(), spec)
    if spec:
        raise TypeError(
            f"format: expected no format for a tensor of {self.dim()} dimensions, got '{spec}'"
        )
    return str(self)


def _reduce_ex(self, protocol):
    from lamella import _storage

    return _storage.reduce_tensor(self)


def _deepcopy(self, memo):
    from lamella import _storage

    if _C._vmap_inspect(self) is not None:  # there is no storage to share with other copies
        if id(self) not in memo:
            memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        return memo[id(self)]
    return _storage.deepcopy_tensor(self, memo)


def _copy(self):
    from lamella import _storage

    return _storage.copy_tensor(self)


def _untyped_storage(self):
    """The memory behind the tensor; the same object for all its aliases."""
    from lamella import _storage

    return _storage.storage_of(self)


def _type(self, dtype=None, non_blocking=False):
    """The name of the tensor's type, or the tensor converted to a dtype."""
    if dtype is None:
        from lamella._utils import type_name

        return type_name(self)
    return self.to(_C._dtype(dtype), non_blocking=non_blocking)


def _type_as(self, other):
    """The tensor converted to the dtype and the device of another."""
    return self.to(other.device, other.dtype)


def _dir(self):
    return sorted(set(dir(type(self))) | set(getattr(self, "__dict__", ())))


def _as_subclass(self, cls):
    """An alias of the tensor as an object of a subclass."""
    return _C._as_subclass(self, cls)


def install():
    _C._add_to_tensor(
        {
            "numpy": _numpy,
            "__array__": _array,
            "__array_wrap__": _array_wrap,
            "__array_priority__": 1000,
            "nonzero": _nonzero,
            "norm": _norm,
            "unique": _functional.unique,
            "unique_consecutive": _functional.unique_consecutive,
            "__format__": _format,
            "__reduce_ex__": _reduce_ex,
            "__deepcopy__": _deepcopy,
            "__copy__": _copy,
            "untyped_storage": _untyped_storage,
            "type": _type,
            "as_subclass": _as_subclass,
            "_make_subclass": staticmethod(_C._make_subclass),
            "__dir__": _dir,
            **({} if hasattr(Tensor, "type_as") else {"type_as": _type_as}),
        }
    )
