"""Small functions that PyTorch's own tests and tools import from its inner modules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.autograd import Function
from lamella.compat._functional_tensors import (
    enable_crossref_functionalize as enable_crossref_functionalize,
)


class InplaceFunction(Function):
    """A Function that may write its first argument, as `inplace` says."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Resize(Function):
    """resize(): the elements with another shape."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Tensor:
        ctx.shape = tensor.shape
        return tensor.reshape(sizes).clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.reshape(ctx.shape), None


def kineto_available() -> bool:
    """False: lamella.profiler measures by itself."""
    return False


def _calculate_shape(output: Any, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of the gradient that is given for it, without its batch."""
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def tuple_to_list(tuple_type: Any) -> Any:
    """tuple[int, int] as list[int]: the list type of a tuple type of a schema."""
    import typing

    parts = [part for part in typing.get_args(tuple_type) if part is not Ellipsis]
    if not parts:
        return typing.List  # noqa: UP006
    made: Any = typing.List  # noqa: UP006
    return made[typing.Union[tuple(parts)]]


def get_file_path_2(*parts: str) -> str:
    """A path of its parts."""
    return os.path.join(*parts)


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)


@contextlib.contextmanager
def _as_context(value: Any = None) -> Iterator[Any]:
    yield value


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A context inside __torch_dispatch__ in which calls meet the modes and subclasses again."""
    included, excluded = _C._thread_keys()
    for key in "Python", "Autograd", "ADInplaceOrView":
        excluded &= ~int(_C._dispatch_functionality_bits(key))
    before = _C._thread_keys()
    _C._set_thread_keys(included, excluded)
    try:
        yield
    finally:
        _C._set_thread_keys(*before)


def _batch_norm(*args: Any) -> Any:
    """native_batch_norm by operators whose schemas tell what they write."""
    input, weight, bias, running_mean, running_var, training, momentum, eps = args
    lamella.ops.aten.empty.memory_format(
        [0], dtype=lamella.uint8, layout=lamella.strided, device=input.device
    )  # PyTorch makes it as well
    if not training:
        return lamella.ops.aten._native_batch_norm_legit_no_training(*args[:5], momentum, eps)
    if running_mean is None:
        return lamella.ops.aten._native_batch_norm_legit.no_stats(*args[:3], *args[5:])
    return lamella.ops.aten._native_batch_norm_legit(*args)


@contextlib.contextmanager
def enable_python_dispatcher() -> Iterator[None]:
    """A context in which functional batch norms show the statistics that they write."""
    library = lamella.library.Library("aten", "IMPL")
    library.impl("native_batch_norm", _batch_norm, "Functionalize")
    try:
        yield
    finally:
        library.close()


def enable_single_level_autograd_function() -> Any:
    """A context that changes nothing: a Function may be applied under any transform."""
    return _as_context()


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., Any]:
    """func under a vmap of this size: inner(*args) -> (outputs, out_dims)."""
    from lamella.compat._batches import _add_batch_dim, is_batchedtensor, maybe_get_level
    from lamella.func.vmap import _RANDOMNESS
    from lamella.utils._pytree import tree_flatten, tree_unflatten

    def inner(*args: Any, **kwargs: Any) -> Any:
        level = _C._vmap_enter(batch_size, _RANDOMNESS[randomness])
        try:
            flat, spec = tree_flatten(args)
            dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
            each = tree_flatten(dims, lambda x: x is None)[0] if flat else []
            if len(each) != len(flat):
                each = [
                    dim for arg, dim in zip(args, dims) for _ in range(len(tree_flatten(arg)[0]))
                ]
            put = [x if d is None else _add_batch_dim(x, d, level) for x, d in zip(flat, each)]
            made = func(*tree_unflatten(put, spec), **kwargs)
            out, out_spec = tree_flatten(made)
            values: list[Any] = []
            out_dims: list[int | None] = []
            for x in out:
                if is_batchedtensor(x) and maybe_get_level(x) == level:
                    values.append(_C._vmap_unwrap(x, level, batch_size, 0))
                    out_dims.append(0)
                else:
                    values.append(x)
                    out_dims.append(None)
            return tree_unflatten(values, out_spec), tree_unflatten(out_dims, out_spec)
        finally:
            _C._vmap_leave(level)

    return inner


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """Moves dimension `src` in front of `dst` of what remains, and joins the two."""
    src %= x.dim()
    dst %= x.dim() - 1
    moved = x.movedim(src, dst)
    shape = list(x.shape)
    size = shape.pop(src)
    shape[dst] *= size
    return moved.reshape(shape)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """Splits dimension `src` in one of `size1` and the rest."""
    shape = list(x.shape)
    src %= x.dim()
    if size1 == 0 or shape[src] % size1:
        raise RuntimeError(
            f"reshape_dim_outof: expected a size that {size1} divides, got {shape[src]}"
        )
    return x.reshape([*shape[:src], size1, shape[src] // size1, *shape[src + 1 :]])


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """vmap in this number of parts, one after the other."""
    if chunks == 1:
        return lamella.vmap(func, in_dims, out_dims, randomness)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        from lamella.utils._pytree import tree_flatten

        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        size = max(
            leaf.shape[dim]
            for arg, dim in zip(args, dims)
            if isinstance(dim, int)
            for leaf in tree_flatten(arg)[0]
        )
        whole = lamella.vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))
        return whole(*args, **kwargs)

    return mapped


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Makes batch norms keep no running statistics, in a module and its parts."""
    for module in root.modules():
        if isinstance(module, lamella.nn.modules.batchnorm._BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root


class StorageWeakRef:
    """A weak reference to memory: its address, as long as a tensor holds it."""

    def __init__(self, storage: Any) -> None:
        import weakref

        self.cdata = storage._cdata if hasattr(storage, "_cdata") else storage.data_ptr()
        try:
            self._ref: Any = weakref.ref(storage)
        except TypeError:
            self._ref = lambda: storage

    def expired(self) -> bool:
        """Whether the memory is gone."""
        return self._ref() is None

    def __hash__(self) -> int:
        return hash(self.cdata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """vmap."""
    return lamella.vmap(func, in_dims, out_dims)


vmap = _vmap


def _abbreviate(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2]
    if name == "bool":
        return "b8"
    for long, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u")):
        if name.startswith(long):
            return (short + name[len(long) :]).replace("_", "", 1)
    return name.replace("int", "i")


# The short names of dtypes, such as f32 and i64.
dtype_abbrs: dict[Any, str] = {
    value: _abbreviate(value)
    for value in vars(lamella).values()
    if isinstance(value, lamella.dtype)
}


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple as it is, another value in a tuple."""
    return value if isinstance(value, tuple) else (value,)


def _slice_argnums(args: Any, argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments at some positions."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums: expected int or Tuple, got {type(argnums).__name__}")
    places = _as_tuple(argnums)
    if not places:
        raise RuntimeError("argnums: a tuple of them must be non-empty")
    if not all(isinstance(place, int) for place in places):
        raise RuntimeError(f"argnums: each of them must be int, got {argnums}")
    if not all(-len(args) <= place < len(args) for place in places):
        raise RuntimeError(f"argnums: expected one of {len(args)} positional inputs, got {argnums}")
    if len({place % len(args) for place in places}) != len(places):
        raise RuntimeError(f"argnums: they must be unique, got {argnums}")
    if isinstance(argnums, int) and not as_tuple:
        return args[argnums]
    return tuple(args[place] for place in places)


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """lamella.func.jvp()."""
    return lamella.func.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)
