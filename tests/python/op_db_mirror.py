"""Translates PyTorch's functions and values to Lamella's. See op_db.py."""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
import warnings

import torch

import lamella

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as invocations

# PyTorch's own function seeds every kind of device and formats a stack trace for each, which takes
# most of the time of a short test. Only the generator of the CPU is used here.
torch.manual_seed = torch.default_generator.manual_seed
# Samples are small, and its threads would wait for processors that other tests use.
torch.set_num_threads(1)

SEEDED = invocations.wrapper_set_seed  # what entries call that draw random numbers


class Absent(Exception):
    """Lamella lacks this name."""


# ---- Functions -----------------------------------------------------------------------------------


def _paths():
    """From PyTorch's functions to where they are found: ("nn.functional", "relu")."""
    found = {}
    places = ["Tensor", "sparse", "special", "linalg", "fft", "nn.functional", ""]
    for place in places:  # later ones win
        owner = functools.reduce(getattr, place.split("."), torch) if place else torch
        for name in dir(owner):
            with contextlib.suppress(Exception):
                value = getattr(owner, name)
                if callable(value) and not isinstance(value, type):
                    found[id(value)] = (place, name)
    return found


PATHS = _paths()


def resolve(place, name):
    owner = lamella
    for part in [*filter(None, place.split(".")), name]:
        try:
            owner = getattr(owner, part)
        except (AttributeError, ImportError):
            path = f"{place}.{name}" if place else name
            raise Absent(f"lamella.{path}") from None
    return owner


class Mirror:
    """A module of PyTorch's, as Lamella has it."""

    def __init__(self, place):
        self._place = place

    def __getattr__(self, name):
        path = f"{self._place}.{name}" if self._place else name
        theirs = functools.reduce(getattr, path.split("."), torch)
        if isinstance(theirs, types.ModuleType) and hasattr(theirs, "__path__"):
            return Mirror(path)
        if path in ("nn.functional", "linalg", "special", "fft", "ops", "ops.aten"):
            return Mirror(path)
        if path == "SymInt":
            return theirs  # the type of no size of ours
        if path in ("Tensor", "float32") or isinstance(theirs, torch.dtype):
            return resolve("", name)
        if isinstance(theirs, types.FunctionType) and id(theirs) not in PATHS:
            return ours(theirs)
        return resolve(self._place, name)


def _seeded(function, *args, **kwargs):
    lamella.manual_seed(42)
    return function(*args, **kwargs)


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _again(function, memo):
    """A Python function with its globals and closure over Lamella."""
    globals_ = dict(function.__globals__)
    # Cells are filled afterwards: functions may refer to themselves.
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(function.__code__, globals_, function.__name__, None, cells or None)
    memo[id(function)] = made
    made.__defaults__ = ours(function.__defaults__, memo)
    made.__kwdefaults__ = ours(function.__kwdefaults__, memo)
    for cell, theirs in zip(cells, function.__closure__ or ()):
        cell.cell_contents = ours(theirs.cell_contents, memo)
    for name in set(_names(function.__code__)):
        if name in globals_:
            with contextlib.suppress(Absent):
                globals_[name] = ours(globals_[name], memo)
    return made


def ours(value, memo=None):
    """Lamella's counterpart of an object of PyTorch."""
    memo = {} if memo is None else memo
    if value is torch:
        return Mirror("")
    if id(value) in memo:
        return memo[id(value)]
    if value is SEEDED:
        return _seeded
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return Mirror(value.__name__.partition(".")[2])
    if value is torch.Tensor:
        return lamella.Tensor
    if id(value) in PATHS:
        return resolve(*PATHS[id(value)])
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        packet = value.overloadpacket if hasattr(value, "overloadpacket") else value
        namespace, _, name = packet._qualified_op_name.partition("::")
        found = resolve(f"ops.{namespace}", name)
        if packet is not value:
            found = getattr(found, value._overloadname)
        return found
    if isinstance(value, functools.partial):
        return functools.partial(
            ours(value.func, memo), *ours(value.args, memo), **ours(value.keywords, memo)
        )
    if isinstance(value, types.FunctionType) and "torch" in value.__module__:
        return _again(value, memo)
    if isinstance(value, types.BuiltinFunctionType) and (value.__module__ or "").startswith(
        "torch"
    ):
        raise Absent(f"lamella.{value.__name__}")
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        if issubclass(torch.Tensor, value.__objclass__):
            return resolve("Tensor", value.__name__)
    if isinstance(value, (list, tuple, dict, torch.dtype, torch.layout, torch.memory_format)):
        return to_lamella(value, lambda item: ours(item, memo))
    return value


# ---- Arguments and results -----------------------------------------------------------------------


@functools.lru_cache(None)
def has_autograd():
    return hasattr(lamella.Tensor, "requires_grad_")


def name_of(dtype):
    """float32 for torch.float32 and lamella.float32."""
    return str(dtype).rpartition(".")[2]


def dtype_of(dtype):
    name = name_of(dtype)
    try:
        return getattr(lamella, name)
    except AttributeError:
        raise Absent(f"lamella.{name}") from None


def copy_tensor(tensor):
    """A detached copy with the same strides and offset, on memory of its own."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.clone()
    storage = tensor.untyped_storage().clone()
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def whole_storage(tensor):
    """A copy of all elements behind a tensor."""
    storage = tensor.detach().untyped_storage().clone()
    return torch.empty(0, dtype=tensor.dtype).set_(storage)


def to_lamella(value, other=None):
    """A value for Lamella. Tensors become copies with the same strides that require gradients
    where theirs did."""
    if isinstance(value, torch.Tensor) and value.layout in (torch.sparse_coo, torch.sparse_csr):
        return sparse_to_lamella(value)
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            raise Absent("tensors that are not strided")
        dtype_of(value.dtype)
        if value.device.type == "meta":
            return lamella.empty_strided(
                value.shape, value.stride(), dtype=dtype_of(value.dtype), device="meta"
            )
        if value.is_conj():
            made = to_lamella(value.detach().conj()).conj()
        elif value.is_neg():
            made = to_lamella(value.detach().resolve_neg())
        else:
            made = lamella.from_dlpack(whole_storage(value)).as_strided(
                value.shape, value.stride(), value.storage_offset()
            )
        return made.requires_grad_() if value.requires_grad and has_autograd() else made
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.memory_format):
        return getattr(lamella, str(value).rpartition(".")[2])
    if isinstance(value, torch.layout):
        return getattr(lamella, str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return lamella.Size(value)
    if isinstance(value, torch.Generator):
        made = lamella.Generator()
        made.manual_seed(value.initial_seed())
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_lamella(item, other) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_lamella(item, other) for item in value)
    if isinstance(value, dict):
        return {
            dtype_of(key) if isinstance(key, torch.dtype) else key: to_lamella(item, other)
            for key, item in value.items()
        }
    if isinstance(value, torch.nn.Module):  # its attributes are numbers
        return functools.partial(ours(type(value).forward), value)
    if isinstance(value, slice):
        return slice(*(to_lamella(part, other) for part in (value.start, value.stop, value.step)))
    return other(value) if other is not None else value


def sparse_to_lamella(value):
    """A sparse tensor of PyTorch's, made again of its parts."""
    made = value.detach()
    if value.layout == torch.sparse_coo:
        parts, make = (made._indices(), made._values()), lamella.sparse_coo_tensor
    else:
        parts = (made.crow_indices(), made.col_indices(), made.values())
        make = lamella.sparse_csr_tensor
    made = make(*map(to_lamella, parts), tuple(value.shape))
    return made.requires_grad_() if value.requires_grad else made


def mapped(value, change, kind=torch.Tensor):
    """The nest with change(tensor) in the place of each tensor of a kind."""

    def inside(item):
        return mapped(item, change, kind)

    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(inside, value))
    if isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, lamella.Size)):
        return type(value)(map(inside, value))
    if isinstance(value, dict):
        return {key: inside(item) for key, item in value.items()}
    return value


def fresh(value):
    """The same for PyTorch: copies, so that neither side sees the other's writes."""
    return mapped(value, lambda t: copy_tensor(t).requires_grad_(t.requires_grad))


def tensors_in(value, kind):
    """Tensors of nested lists, in order; sparse ones as dense ones."""
    if not str(getattr(value, "layout", "strided")).endswith("strided"):
        value = value.to_dense()
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, (list, tuple)):
        return list(itertools.chain.from_iterable(tensors_in(item, kind) for item in value))
    return []


def to_torch(tensor):
    """A tensor of Lamella's, for comparing."""
    tensor = tensor.detach() if has_autograd() else tensor
    if str(tensor.device).startswith("meta"):
        return torch.empty(tuple(tensor.shape), dtype=getattr(torch, name_of(tensor.dtype)))
    for bit in ("conj", "neg"):
        if getattr(tensor, f"is_{bit}")():
            tensor = getattr(tensor, f"resolve_{bit}")()
    return torch.from_dlpack(tensor)
