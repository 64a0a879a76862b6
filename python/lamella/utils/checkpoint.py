"""Activation checkpoints: backward recomputes parts of a network instead of keeping their tensors.

Note [What a checkpoint keeps]
  Without use_reentrant, each tensor that the function saves for backward is replaced by a number.
  When backward needs the first of them, it runs the function again and keeps all saved tensors that
  are still needed, identified by the order of saving; each is released when it is used. The
  function's arguments are saved like those of an operator, before these hooks are installed, so
  that the hooks of an outer checkpoint apply to them.
  With use_reentrant the whole function is one node, whose backward runs it again with gradients and
  then runs backward through it.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import lamella
from lamella import _C, Tensor

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """Raised if the recomputation of a function saves other tensors than the first run."""


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts that do nothing, for the forward pass and for the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop: bool | None = None


class set_checkpoint_early_stop:  # noqa: N801
    """In the block, sets whether a recomputation stops once it has all tensors that are needed."""

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        global _early_stop
        self.before, _early_stop = _early_stop, self.enable

    def __exit__(self, *error: Any) -> None:
        global _early_stop
        _early_stop = self.before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls function(*args, **kwargs) without keeping its saved tensors; backward recomputes them.

    use_reentrant: makes the function one node of the graph; it then needs an argument that requires
    gradients, and takes no keyword arguments. Without it, see the note above.
    preserve_rng_state=False: the recomputation may draw other random numbers. context_fn: returns
    contexts for the first run and the recomputation. determinism_check: "default" compares shapes,
    dtypes and devices of the saved tensors, "none" does not. debug: errors list the saved tensors
    of both runs.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly; False is "
            "recommended, and True is assumed",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(
                "checkpoint: expected no keyword arguments with use_reentrant=True, got "
                + ", ".join(kwargs)
            )
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "checkpoint: expected 'context_fn' and 'debug' only with use_reentrant=False"
            )
        return _reentrant(function, preserve, args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            "checkpoint: expected 'determinism_check' to be default or none, got "
            f"'{determinism_check}'"
        )
    forward_context, again_context = context_fn()
    if not lamella.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    stop = early_stop if _early_stop is None else _early_stop
    frame = _Frame(function, args, kwargs, preserve, again_context, determinism_check, debug, stop)
    with lamella.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        made = function(*args, **kwargs)
    frame.complete = True
    return made


# ---- The state that a recomputation restores


@contextlib.contextmanager
def _autocast_as(state: Any) -> Iterator[None]:
    before = _C._autocast_snapshot()
    _C._autocast_restore(*state)
    _C.autocast_increment_nesting()
    try:
        yield
    finally:
        _C.autocast_decrement_nesting()
        _C._autocast_restore(*before)


class _Surroundings:
    """A snapshot of the autocast state and optionally of the default generator's state; again() is
    a context that restores it."""

    def __init__(self, random: bool) -> None:
        self.autocast = _C._autocast_snapshot()
        self.state = lamella.get_rng_state() if random else None

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with _autocast_as(self.autocast):
            if self.state is None:
                yield
                return
            now = lamella.get_rng_state()
            lamella.set_rng_state(self.state)
            try:
                yield
            finally:
                lamella.set_rng_state(now)


# ---- Without use_reentrant


class _Place:
    """The placeholder in the graph for a saved tensor that was not kept."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Done(Exception):
    """Stops a recomputation when all needed tensors have been computed."""


class _Frame:
    """One call of a checkpointed function: what its recomputation needs."""

    def __init__(
        self,
        function: Any,
        args: Any,
        kwargs: Any,
        preserve: bool,
        context: Any,
        check: str,
        debug: bool,
        early_stop: bool,
    ) -> None:
        self.function = function
        self.surroundings = _Surroundings(preserve)
        self.context = context
        self.check = check
        self.debug = debug
        self.early_stop = early_stop
        # False while the function runs for the first time, in which it may call backward itself.
        self.complete = False
        self.places: list[Any] = []  # weak references to _Place, in the order of saving
        self.saved: list[Any] = []  # (shape, dtype, device) of each
        self.computed: dict[int, Tensor] = {}
        self.run = -1
        leaves = [*args, *kwargs.values()]
        self.keys = list(kwargs)
        self.positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.rest = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        tensors = [leaves[i] for i in self.positions]
        # This node is not part of a graph; it only saves the tensor arguments.
        anchor = lamella.empty(0).requires_grad_()
        self.keeper = _keeper().apply(anchor, *tensors).grad_fn

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        leaves = list(self.rest)
        for i, tensor in zip(self.positions, self.keeper.saved_tensors):
            leaves[i] = tensor
        split = len(leaves) - len(self.keys)
        return leaves[:split], dict(zip(self.keys, leaves[split:]))

    def pack(self, tensor: Tensor) -> _Place:
        place = _Place(len(self.places))
        self.places.append(weakref.ref(place))
        self.saved.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        return place

    def unpack(self, place: _Place) -> Tensor:
        run = _C._backward_number()
        if run != self.run or run < 0:
            self.computed.clear()
            self.run = run
        if place.number not in self.computed:
            self.compute()
        if place.number not in self.computed:
            raise CheckpointError(
                "checkpoint: expected the function to save as many tensors as before when run "
                f"again, {len(self.saved)}, got fewer" + self._listed([])
            )
        return self.computed.pop(place.number)

    def compute(self) -> None:
        """Runs the function again, and fills `computed` with the tensors that are still needed."""
        awaited = {i for i, place in enumerate(self.places) if place() is not None}
        last = max(awaited) if self.early_stop else -1
        again: list[Any] = []
        computed: dict[int, Tensor] = {}

        def pack(tensor: Tensor) -> Tensor:
            number = len(again)
            again.append((tuple(tensor.shape), tensor.dtype, tensor.device))
            tensor = tensor.detach() if tensor.requires_grad else tensor
            if number in awaited:
                computed[number] = tensor
            if number == last:
                raise _Done
            return tensor

        with lamella.enable_grad():
            args, kwargs = self.arguments()
        graph = lamella.autograd.graph
        try:
            hooks = graph.saved_tensors_hooks(pack, lambda tensor: tensor)
            with self.surroundings.again(), lamella.enable_grad(), self.context, hooks:
                self.function(*args, **kwargs)
        except _Done:
            pass
        self._compare(again)
        self.computed.update(computed)

    def _compare(self, again: list[Any]) -> None:
        if self.check == "none":
            return
        if self.complete and not self.early_stop and len(again) != len(self.saved):
            raise CheckpointError(
                f"checkpoint: expected the function to save {len(self.saved)} tensors when run "
                f"again, as before, got {len(again)}" + self._listed(again)
            )
        for i, (before, now) in enumerate(zip(self.saved, again)):
            if before != now:
                raise CheckpointError(
                    f"checkpoint: expected saved tensor {i} to have {_described(before)} when the "
                    f"function is run again, as before, got {_described(now)}" + self._listed(again)
                )

    def _listed(self, again: list[Any]) -> str:
        if not self.debug:
            return ""
        lines = ["\nbefore:", *map(_described, self.saved), "again:", *map(_described, again)]
        return "\n  ".join(lines)


def _described(what: Any) -> str:
    shape, dtype, device = what
    return f"shape {list(shape)}, dtype {dtype}, on {device}"


_keeper_class: Any = None


def _keeper() -> Any:
    global _keeper_class
    if _keeper_class is None:

        class CheckpointArguments(lamella.autograd.Function):
            """Saves tensors as an operator would, and computes nothing."""

            @staticmethod
            def forward(ctx: Any, anchor: Any, *tensors: Any) -> Any:
                ctx.save_for_backward(*tensors)
                return anchor.clone()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                raise AssertionError("checkpoint: the node of the arguments is in no graph")

        _keeper_class = CheckpointArguments
    return _keeper_class


# ---- With use_reentrant


def _reentrant(function: Any, preserve: bool, args: Any) -> Any:
    if lamella.is_grad_enabled() and not any(
        isinstance(arg, Tensor) and arg.requires_grad for arg in args
    ):
        warnings.warn(
            "checkpoint: no argument requires gradients, so with use_reentrant=True there will be "
            "none",
            stacklevel=3,
        )
    return _whole().apply(function, preserve, *args)


_whole_class: Any = None


def _whole() -> Any:
    global _whole_class
    if _whole_class is None:

        class CheckpointFunction(lamella.autograd.Function):
            """A function as one node; its backward runs it again."""

            @staticmethod
            def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
                ctx.function = function
                ctx.surroundings = _Surroundings(preserve)
                ctx.rest = [None if isinstance(arg, Tensor) else arg for arg in args]
                ctx.positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
                ctx.save_for_backward(*(args[i] for i in ctx.positions))
                with lamella.no_grad():
                    return function(*args)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if _C._backward_has_inputs():
                    raise RuntimeError(
                        "checkpoint: expected a backward to all leaves with use_reentrant=True, "
                        "since it adds to the gradients of all that the function uses, got one to "
                        "given inputs; pass use_reentrant=False"
                    )
                args = list(ctx.rest)
                for i, tensor in zip(ctx.positions, ctx.saved_tensors):
                    args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
                with ctx.surroundings.again(), lamella.enable_grad():
                    outputs = ctx.function(*args)
                outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
                pairs = [
                    (y, grad)
                    for y, grad in zip(outputs, grads)
                    if isinstance(y, Tensor) and y.requires_grad
                ]
                if not pairs:
                    raise RuntimeError(
                        "checkpoint: expected an output of the function to require gradients"
                    )
                lamella.autograd.backward([y for y, _ in pairs], [grad for _, grad in pairs])
                return (
                    None,
                    None,
                    *(arg.grad if isinstance(arg, Tensor) else None for arg in args),
                )

        _whole_class = CheckpointFunction
    return _whole_class


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a Sequential, or a list of functions, in `segments` parts, of which all but the last are
    checkpoints."""
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: the use_reentrant parameter should be passed explicitly; False "
            "is recommended, and True is assumed",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            "checkpoint_sequential: got unexpected keyword arguments " + ", ".join(kwargs)
        )
    parts = list(functions)
    size = len(parts) // segments

    def run(first: int, last: int) -> Callable[[Any], Any]:
        def segment(value: Any) -> Any:
            for function in parts[first:last]:
                value = function(value)
            return value

        return segment

    first = 0
    for _ in range(segments - 1):
        input = checkpoint(
            run(first, first + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        first += size
    return run(first, len(parts))(input)
