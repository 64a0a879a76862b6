"""Parts of torch.autograd that Lamella lacks."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.autograd import Function
from lamella.autograd.graph import saved_tensors_hooks
from lamella.utils._python_dispatch import TorchDispatchMode


class _Saved:
    """A tensor that was saved for backward, and its copy once its memory was written."""

    def __init__(self, tensor: Tensor, context: _Mutations) -> None:
        self.tensor: Tensor | None = tensor
        self.version = tensor._version
        self.copy: Tensor | None = None
        self.context = context

    def write(self) -> None:
        """Copies the tensor, before its memory is written for the first time."""
        if self.copy is None and self.tensor is not None and self.tensor._version == self.version:
            self.copy = self.tensor.clone()
            self.tensor = None
            self.context.cloned[self] = self.copy
            self.context.original.pop(self, None)


class _Mutations:
    """The saved tensors of a context: those that were not written, and copies of the others."""

    def __init__(self) -> None:
        self.cloned: Any = weakref.WeakKeyDictionary()
        self.original: Any = weakref.WeakKeyDictionary()
        # A tensor that is saved several times is kept once: {(its id, version): _Saved}.
        self.tid_to_weakhandle: Any = weakref.WeakValueDictionary()
        self.open = True

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _CopyBeforeWrite(TorchDispatchMode):
    """A mode that copies saved tensors before an operator writes their memory."""

    def __init__(self, context: _Mutations) -> None:
        super().__init__()
        self._context = context

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for i, argument in enumerate(func._schema.arguments):
            if not argument.is_write:
                continue
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(each, Tensor):
                    for saved in list(self._context.original):
                        if saved.tensor is not None and _memory(saved.tensor) == _memory(each):
                            saved.write()
        return func(*args, **kwargs)


_active = False


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutations]:
    """A context in which tensors that are saved for backward may be written: backward sees them as
    they were. Backward must run in the context too."""
    global _active
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _Mutations()

    def pack(tensor: Tensor) -> _Saved:
        tid = id(tensor), tensor._version
        saved: _Saved | None = context.tid_to_weakhandle.get(tid)
        if saved is None or saved.tensor is not tensor:
            saved = context.tid_to_weakhandle[tid] = _Saved(tensor, context)
            context.original[saved] = tensor
        return saved

    def unpack(saved: _Saved) -> Tensor:
        if not context.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        value = saved.copy if saved.copy is not None else saved.tensor
        assert value is not None
        return value

    with saved_tensors_hooks(pack, unpack), _CopyBeforeWrite(context):
        _active = True
        try:
            yield context
        finally:
            _active = False
            context.open = False
            context.clear()


@contextlib.contextmanager
def _force_original_view_tracking(mode: bool) -> Iterator[None]:
    """A context that changes nothing: views are tracked in one way."""
    yield


def is_view_replay_enabled() -> bool:
    """False."""
    return False


class SavedTensor:
    """A tensor that a node keeps, before it is unpacked: node._raw_saved_self."""

    _node: Any
    _name: str
    _index: int

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden")

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Packs the tensor by one function, and unpacks it by the other whenever it is used."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("register_hooks: expected two functions")
        _C._hook_saved(self._node, self._name, self._index, pack_hook, unpack_hook)


def raw_saved(node: Any, name: str) -> Any:
    """What a node's attribute _raw_saved_`name` is; None if there is none."""

    def at(index: int) -> SavedTensor:
        made: SavedTensor = object.__new__(SavedTensor)
        made._node, made._name, made._index = node, name, index
        return made

    count = _C._count_saved(node, name)
    if count is None:
        return None
    return at(0) if count < 0 else tuple(map(at, range(count)))


class _AccumulateGradMeta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _C._Node) and value.name().endswith("AccumulateGrad")


class AccumulateGrad(metaclass=_AccumulateGradMeta):
    """The class of the nodes of leaves."""


class _Fails(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *inputs: Tensor) -> Any:
        ctx.message = message
        return tuple(each.view_as(each) for each in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


class DelayedError:
    """DelayedError(message, count)(*tensors): the tensors, whose backward raises the message."""

    def __init__(self, message: str, count: int) -> None:
        self.message = message

    def __call__(self, *inputs: Tensor) -> Any:
        made = _Fails.apply(self.message, *inputs)
        return made[0] if len(made) == 1 else made


class UndefinedGrad(Function):
    """The identity, whose backward gives no gradient."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        views = tuple(each.view_as(each) for each in inputs)
        return views[0] if len(views) == 1 else views

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


class _Undefined:
    """UndefinedGrad()(x)."""

    def __call__(self, *inputs: Tensor) -> Any:
        return UndefinedGrad.apply(*inputs)


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._ref() is None


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be set."""
    before = _C._disable_saved_tensors_hooks("")
    _C._disable_saved_tensors_hooks(before)
    return not before


# Whether the backward that runs on this thread keeps the graph.
_get_current_graph_task_keep_graph = _C._backward_retains


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The rows of an identity matrix over the elements of all tensors, cut into the part of each
    tensor, in its dtype."""
    whole = lamella.eye(sum(tensor_numels))
    return tuple(
        part.to(device=each.device, dtype=each.dtype)
        for part, each in zip(whole.split(list(tensor_numels), 1), tensors)
    )
