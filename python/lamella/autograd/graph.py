"""The backward graph: its nodes, edges and hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from lamella import _C, Tensor
from lamella._C import _Node as Node

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """A node of the backward graph and the number of one of its inputs. `autograd.grad` accepts it
    in place of a tensor."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of a tensor is passed to."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "get_gradient_edge: expected a tensor that requires grad, got one that does not"
        )
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Records that code other than an operator wrote to a tensor, or to each of several."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not each.is_inference():  # those count no versions
            _C._bump_version(each)


class saved_tensors_hooks:  # noqa: N801
    """In the block, tensors saved for backward are replaced by `pack_hook(tensor)`; on use they are
    restored by `unpack_hook(packed)`, which must return a tensor with the same contents."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """In the block, tensors saved for backward are kept in CPU memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> Any:
            # A copy even on the CPU, so that later writes to the tensor do not change it.
            copy = tensor.detach().clone() if tensor.device.type == "cpu" else tensor.cpu()
            return tensor.device, copy

        def unpack(packed: Any) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:  # noqa: N801
    """In the block, using saved_tensors_hooks raises an error with this message."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        self._before = _C._disable_saved_tensors_hooks(self.error_message)

    def __exit__(self, *error: object) -> None:
        _C._disable_saved_tensors_hooks(self._before)


class _MultiHandle:
    """A handle that removes several hooks."""

    def __init__(self, handles: Iterable[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _forget(drop: Callable[[int], Any], runs: Iterable[int], newest: int) -> None:
    """Drops the numbers of backwards that are long over; others may run in other threads."""
    for run in [run for run in runs if run < newest - 1000]:
        drop(run)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> _MultiHandle:
    """Calls `fn` once in each backward: in mode "all" with the list of the tensors' gradients, None
    for tensors without one; in mode "any" with the first gradient that is computed."""
    if mode not in ("all", "any"):
        raise ValueError(
            f"register_multi_grad_hook: expected 'mode' to be 'all' or 'any', got '{mode}'"
        )
    tensors = tuple(tensors)
    lock = threading.Lock()
    if mode == "any":
        runs: set[int] = set()

        def first(grad: Tensor) -> None:
            run = _C._backward_number()
            with lock:
                if run in runs:
                    return
                runs.add(run)
                _forget(runs.discard, runs, run)
            fn(grad)

        return _MultiHandle(each.register_hook(first) for each in tensors)

    nodes = [get_gradient_edge(each).node for each in tensors]
    waiting: dict[int, list[Any]] = {}  # number of a backward -> [missing count, gradients so far]

    def collector(index: int) -> Callable[[Tensor], None]:
        def collect(grad: Tensor) -> None:
            run = _C._backward_number()
            with lock:
                state = waiting.get(run)
                if state is None:
                    _forget(waiting.pop, waiting, run)
                    expected = sum(map(_C._will_run, nodes))
                    state = waiting[run] = [expected, [None] * len(nodes)]
                state[0] -= 1
                state[1][index] = grad
                if state[0]:
                    return
                del waiting[run]
            fn(state[1])

        return collect

    return _MultiHandle(each.register_hook(collector(index)) for index, each in enumerate(tensors))
