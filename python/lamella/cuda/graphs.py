"""Captured graphs: the work of a stream, recorded once and replayed with one launch.

The names are PyTorch's.
"""

from __future__ import annotations

import ctypes
import gc
import warnings
from typing import Any

import lamella
from lamella import _C
from lamella._nest import Nest
from lamella.cuda import _library, streams

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

# Values of CUstreamCaptureMode.
_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def is_current_stream_capturing() -> bool:
    """Whether the current stream is captured; False without a device."""
    if not _C._has_backend("cuda"):
        return False
    stream = streams.current_stream()
    captured = ctypes.c_int()
    number = ctypes.c_int64(stream.stream_id)
    name = "is_current_stream_capturing"
    _library.call(name, "is_capturing", stream.device.index, number, ctypes.byref(captured))
    return bool(captured.value)


def graph_pool_handle() -> tuple[int, int]:
    """A pool of memory that graphs may share, for 'pool'. They must be replayed in the order of
    their captures, since each may write over what an earlier one left."""
    return 0, _library.numbers("graph_pool_handle", "graph_pool", 1)[0]


class CUDAGraph:
    """Work of a stream between capture_begin() and capture_end(), which replay() does again, at the
    same addresses. Tensors that were made meanwhile live in a pool of memory of the graph."""

    def __init__(self, keep_graph: bool = False) -> None:
        handle = ctypes.c_void_p()
        _library.call("CUDAGraph", "graph_make", ctypes.byref(handle))
        self._handle = handle

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library.call("CUDAGraph", "graph_free", self._handle)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begins to capture the current stream, which must not be the default one. pool: that of
        another graph. capture_error_mode: 'global' refuses what may wait on all threads,
        'thread_local' on this one, 'relaxed' on none."""
        if capture_error_mode not in _MODES:
            raise ValueError(
                "capture_begin: expected 'capture_error_mode' to be 'global', 'thread_local' or "
                f"'relaxed', got {capture_error_mode!r}"
            )
        number = ctypes.c_int64(0 if pool is None else pool[1])
        mode = _MODES[capture_error_mode]
        _library.call("capture_begin", "graph_begin", self._handle, number, mode)

    def capture_end(self) -> None:
        """Ends the capture; the graph can be replayed."""
        if _library.numbers("capture_end", "graph_end", 1, self._handle)[0] == 0:
            warnings.warn(
                "capture_end: the graph is empty; was its work on another stream?", stacklevel=2
            )

    def _abandon(self) -> None:
        _library.call("capture_end", "graph_abandon", self._handle)

    def register_generator_state(self, generator: Any) -> None:
        """For PyTorch's programs: generators that are drawn from during a capture join by
        themselves."""

    def replay(self) -> None:
        """Does the captured work on the current stream. Random numbers go on from where their
        generators are."""
        _library.call("replay", "graph_replay", self._handle)

    def reset(self) -> None:
        """Frees the graph, which may then capture anew; its pool's memory serves others when no
        graph and no tensor uses it."""
        _library.call("reset", "graph_reset", self._handle)

    def pool(self) -> tuple[int, int]:
        """The pool of the graph's memory, for other captures."""
        return 0, _library.numbers("pool", "graph_pool_of", 1, self._handle)[0]


class graph:
    """A context whose work is captured into a graph: on a stream of its own, or the given one."""

    _streams: dict[int, Any] = {}

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            index = _library.device_index("graph", None)
            stream = self._streams.get(index) or self._streams.setdefault(
                index, streams.Stream(index)
            )
        self.capture_stream = stream
        self.cuda_graph = cuda_graph
        self._options = pool, capture_error_mode

    def __enter__(self) -> None:
        _C._synchronize_device(self.capture_stream.device)
        gc.collect()
        _library.call("empty_cache", "empty_cache")
        self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(*self._options)
        except BaseException:
            self.capture_stream.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:  # the error itself is raised
                self.cuda_graph._abandon()
        finally:
            self.capture_stream.__exit__(kind, *error)


# ---- Functions as graphs ----


class _Graphed:
    """A function whose forward, and whose backward if it has gradients, are graphs."""

    def __init__(self, name: str, fn: Any, arguments: Any) -> None:
        self.name, self.fn, self.arguments = name, fn, arguments
        self.form = Nest.pack(arguments)
        self.given = list(self.form.tensors)
        self.surface = list(self.given)
        if isinstance(fn, lamella.nn.Module):
            self.surface += fn.parameters()
        self.into = [tensor for tensor in self.surface if tensor.requires_grad]
        self.forward = CUDAGraph()
        self.backward: CUDAGraph | None = None
        self.grads: list[Any] = []

    def differentiate(self, outputs: Any, tangents: Any, allow_unused: bool) -> Any:
        return lamella.autograd.grad(
            outputs, self.into, tangents, allow_unused=allow_unused, retain_graph=False
        )

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            made = [t for t in Nest.pack(self.fn(*self.arguments)).tensors if t.requires_grad]
            if made and self.into:
                tangents = [lamella.zeros_like(t) for t in made]
                self.differentiate(made, tangents, allow_unused)

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward, pool):
            self.results = Nest.pack(self.fn(*self.arguments))
        self.outputs = list(self.results.tensors)

    def capture_backward(self, pool: Any, allow_unused: bool) -> None:
        self.tangents = [lamella.zeros_like(t) if t.requires_grad else None for t in self.outputs]
        made = [t for t in self.outputs if t.requires_grad]
        grads: list[Any] = []
        if made and self.into:
            self.backward = CUDAGraph()
            with graph(self.backward, pool):
                given = [t for t in self.tangents if t is not None]
                grads = list(self.differentiate(made, given, allow_unused))
        rest = iter(grads)
        self.grads = [next(rest, None) if t.requires_grad else None for t in self.surface]

    def callable(self) -> Any:
        count, whole = len(self.given), self

        class Run(lamella.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Any) -> Any:
                for own, tensor in zip(whole.given, tensors):
                    if own.data_ptr() != tensor.data_ptr():
                        own.copy_(tensor)
                whole.forward.replay()
                return tuple(tensor.detach() for tensor in whole.outputs)

            @staticmethod
            def backward(ctx: Any, *tangents: Any) -> Any:
                for own, tangent in zip(whole.tangents, tangents):
                    if own is not None and own.data_ptr() != tangent.data_ptr():
                        own.copy_(tangent)
                if whole.backward is not None:
                    whole.backward.replay()
                return tuple(None if g is None else g.detach() for g in whole.grads)

        def graphed(*arguments: Any) -> Any:
            tensors = Nest.pack(arguments).tensors
            if len(tensors) != count or any(
                one.shape != own.shape or one.dtype != own.dtype
                for one, own in zip(tensors, whole.given)
            ):
                raise RuntimeError(
                    f"{whole.name}: expected tensors like the sample's, got others: a graph has "
                    "one shape and dtype for each"
                )
            return whole.results.unpack(list(Run.apply(*tensors, *whole.surface[count:])))

        return graphed


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Functions or modules with their forward and backward as graphs, which take part in autograd.

    sample_args: a tuple of arguments, tensors of the device; for a tuple of functions a tuple of
    such tuples. The functions must be called in that order, and their backwards in the reverse.
    Results are overwritten by the next call. A module is changed in place: its graph runs
    while its mode, training or not, is that of now.
    """
    name = "make_graphed_callables"
    if lamella.is_autocast_enabled("cuda") and lamella.is_autocast_cache_enabled():
        raise RuntimeError(
            f"{name}: expected autocast without its cache, got one with it: use cache_enabled=False"
        )
    is_one = not isinstance(callables, tuple)
    if is_one:
        callables, sample_args = (callables,), (sample_args,)
    for fn, arguments in zip(callables, sample_args, strict=True):
        for tensor in Nest.pack(arguments).tensors:
            if tensor.device.type != "cuda":
                raise ValueError(
                    f"{name}: expected 'sample_args' to be on cuda, got a tensor on {tensor.device}"
                )
        if isinstance(fn, lamella.nn.Module) and any(b.requires_grad for b in fn.buffers()):
            raise ValueError(
                f"{name}: expected buffers without gradients, got one that requires them"
            )
    graphed = [_Graphed(name, fn, args) for fn, args in zip(callables, sample_args)]
    pool = graph_pool_handle() if pool is None else pool
    lamella.cuda.synchronize()
    with streams.stream(streams.Stream()):
        for one in graphed:
            one.warm_up(num_warmup_iters, allow_unused_input)
    lamella.cuda.synchronize()
    for one in graphed:
        one.capture_forward(pool)
    for one in reversed(graphed):
        one.capture_backward(pool, allow_unused_input)
    made = []
    for one in graphed:
        call, fn = one.callable(), one.fn
        if isinstance(fn, lamella.nn.Module):
            fn.__dict__["forward"] = _in_mode(call, fn, fn.forward, fn.training)
            made.append(fn)
        else:
            made.append(call)
    return made[0] if is_one else tuple(made)


def _in_mode(call: Any, module: Any, otherwise: Any, training: bool) -> Any:
    def forward(*arguments: Any) -> Any:
        return call(*arguments) if module.training == training else otherwise(*arguments)

    return forward
