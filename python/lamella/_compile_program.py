"""One program of a compiled function: traces, functionalizes, lowers, compiles and runs it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lamella
from lamella import _C, Tensor, _hlo
from lamella._compile_guards import NotCompiled, is_own
from lamella._compile_reads import Reads
from lamella._compile_state import Found
from lamella._nest import Nest, fixed_values, is_plain
from lamella.func.functionalize import functionalize

__all__ = [
    "NotCompiled",
    "Program",
    "copy_of",
    "fresh_leaves",
    "gradient_facts",
    "record",
    "recorder_of",
    "tracing",
]


# An arbitrary seed ("lamella" in ASCII) that the traced function is unlikely to set itself.
_SEED = 0x6C616D656C6C61


# Tracing replaces the tensors of modules, so only one trace may run at a time.
tracing = threading.RLock()


_CAST_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def casting(enabled: Sequence[bool], dtypes: Sequence[Any]) -> Iterator[None]:
    """Autocast on the CPU and on CUDA, by device; dtypes of None stay."""
    with contextlib.ExitStack() as stack:
        for device, on, dtype in zip(_CAST_DEVICES, enabled, dtypes):
            stack.enter_context(lamella.autocast(device, enabled=on, dtype=dtype))
        yield


class Program:
    """A function, compiled for arguments of one structure and geometry. run() takes the leaves,
    which are the tensors among the arguments, then those in found.tensors, and returns what the
    function returns: door(again, leaves), nested as in `results`."""

    name, is_step = "forward", False

    def __init__(
        self, fn: Callable[..., Any], arguments: Nest, found: Found, watched: bool = True
    ) -> None:
        self._fn, self._arguments, self._found = fn, arguments, found
        self._places = [*found.tensors, *found.rates]
        leaves = [*arguments.tensors, *(place.value for place in found.tensors)]
        for leaf in leaves:
            _check_plain(leaf)
        self._count, self._leaves = len(leaves), leaves
        # Programs of differentiable gradients, by the requires_grad of each tensor: see again().
        self._gradients: dict[tuple[bool, ...], Program | None] = {}
        self.outside: Any = None  # the guards on what the function read
        self.say: Callable[[str], None] = lambda text: None
        self.forward: Any = None
        self.backward: Any = None
        self.results = arguments
        # See Note [Runs of compiled functions] in compiled_program.cpp.
        self._own = list(range(self._count))
        self._written: list[int] = []
        self._graded: list[int] = []
        self._set: list[int] = []
        self._cleared: list[int] = []
        gradient_program = None
        # What the function reads is watched, unless only its gradients are traced.
        self._reads: Any = contextlib.nullcontext()
        self._cast = (
            [_C.is_autocast_enabled(device) for device in _CAST_DEVICES],
            [_C.get_autocast_dtype(device) for device in _CAST_DEVICES],
        )
        self._devices = {leaf.device for leaf in leaves if leaf.device.type != "cpu"}
        if len(self._devices) > 1:
            raise NotCompiled(f"it takes tensors on {', '.join(sorted(map(str, self._devices)))}")
        state = lamella.get_rng_state()
        states = [lamella.cuda.get_rng_state(device) for device in self._devices]
        try:
            # Tracing must not advance the caller's random number generator.
            lamella.manual_seed(_SEED)
            seeded = [lamella.cuda.get_rng_state(device) for device in self._devices]
            if watched:
                found.reads = self._reads = Reads([fn, *fixed_values(arguments.form)])
            gradient_program = self._record(leaves)
            changed = found.reads.change() if found.reads is not None else ""
            if changed:
                raise NotCompiled(f"it changes {changed}")
            if lamella.initial_seed() != _SEED:
                raise NotCompiled("it seeds the random numbers")
            for device, before in zip(self._devices, seeded):
                if not bool(lamella.equal(lamella.cuda.get_rng_state(device), before)):
                    raise NotCompiled(f"it draws random numbers on {device}")
        finally:
            lamella.set_rng_state(state)
            for device, before in zip(self._devices, states):
                lamella.cuda.set_rng_state(before, device)
            if found.reads is not None:
                found.reads.change()
                found.reads.end()
            self._reads, self._leaves = contextlib.nullcontext(), []
            self._arguments = arguments.without_tensors()
            _hlo._release_memory()
        guarded = leaves if found.has_gradients else []
        self.door: Any = _hlo._program(
            self.forward,
            gradient_program,
            self._own,
            [(rate.container, rate.key) for rate in found.rates if self.is_step],
            self._graded,
            self._outside,
            self._written,
            self._aliases,
            self._set,
            self._cleared,
            self.is_step,
            [first for first, _ in gradient_facts(guarded)],
            [leaf.grad if leaf.is_leaf else None for leaf in guarded],
        )

    # ---- Tracing ----

    def _record(self, leaves: list[Tensor]) -> Any:
        """Records the function and, if gradients are recorded, its gradient in the same graph;
        compiles both. Returns the gradient program, None without gradients."""
        copies = [copy_of(leaf) for leaf in leaves]
        wants = [leaf.requires_grad for leaf in leaves]
        hooked = [_hlo._has_hooks(leaf) for leaf in leaves]
        recorder = recorder_of(copies, self._names())
        with_history: list[bool] = []
        tracked: list[int] = []  # results that the backward program takes tangents of
        outside: list[Tensor] = []  # tensors besides the inputs that have gradients
        there: list[bool] = []
        failures: list[Exception] = []

        def joint(*tensors: Tensor) -> Any:
            own_backward = [True]
            given = fresh_leaves(tensors, wants, hooked, own_backward)
            returned = self._call(*given)
            own_backward.clear()
            made = Nest.pack(returned).tensors
            with_history.extend(t.requires_grad for t in made)
            if any(leaf.grad is not None for leaf in given):
                raise NotCompiled("it leaves gradients in the attribute 'grad' of tensors")
            if lamella.is_grad_enabled():
                own = [*tensors, *given]
                fresh = (i for i, t in enumerate(made) if not _is_alias(t, own))
                tracked.extend(i for i in fresh if with_history[i])
            if not tracked:
                return returned, [], []
            tangents = [made[i].detach().clone() for i in tracked]
            outside.extend(t for t in recorder.outside() if t.requires_grad)
            into = [*(leaf for leaf, wanted in zip(given, wants) if wanted), *outside]
            try:
                of = [made[i] for i in tracked]
                with self._reads:
                    grads = lamella.autograd.grad(of, into, tangents, allow_unused=True)
            except Exception as error:
                # What the function does itself is a better reason, and known only after the trace.
                if not isinstance(error, NotCompiled):
                    error = NotCompiled(str(error) or type(error).__name__)
                failures.append(error)
                return returned, tangents, []
            there.extend(grad is not None for grad in grads)
            return returned, tangents, [grad for grad in grads if grad is not None]

        random = lamella.get_rng_state()
        raw, results = record(recorder, joint, copies)
        draws = not bool(lamella.equal(random, lamella.get_rng_state()))
        count = len(with_history)
        returned = Nest(results.form[-1][0], results.tensors[:count])
        inputs = self._look_at(raw, returned, copies)
        if not tracked:
            return self._compile_forward(raw)
        if any(leaves[inputs.index(i)].requires_grad for i in raw.mutated()):
            raise NotCompiled("it writes an argument that requires gradients")
        if failures:
            raise failures[0]
        if tracked != [i for i in self._fresh if with_history[i]]:
            raise NotCompiled("it returns a tensor whose memory changes hands while it runs")
        self._into = [i for i, wanted in enumerate(wants) if wanted]
        self._into += [self._count + _index(tensor, self._outside) for tensor in outside]
        self._with_tangents = tracked
        return self._divide(raw, count, there, draws)

    def _divide(self, raw: Any, count: int, there: list[bool], draws: bool) -> Any:
        """Divides a graph into the forward and the backward program. Its first `count` outputs are
        the results of the function; then come the tangents and the gradients. there: whether each
        tensor of `_into` has a gradient. draws: whether the function draws random numbers."""
        given, ids = [*raw.inputs(), *_outside(raw)], raw.outputs()
        late = count + len(self._with_tangents)
        tangents, grads = ids[count:late], ids[late:]
        saved = list(_hlo._divide_trace(raw, tangents, late))
        number = {i: k for k, i in enumerate(given)}
        inner = [i for i in saved if i not in number]
        before = [i for i in saved if i in number]
        results = [*(ids[i] for i in self._fresh), *inner]
        module = _module(raw, "forward", given, results, writes=True, tangents=tangents)
        backward = _module(
            raw, "backward", [*before, *inner, *tangents], grads, writes=False, tangents=tangents
        )
        self._written = _written(module)
        graphs = self._found.graphs
        self.forward = _hlo.compile(module, verified=True, device_graphs=graphs)
        self.backward = _hlo.compile(backward, verified=True, device_graphs=graphs)
        return _hlo._gradient_program(
            self.forward,
            self.backward,
            self._into,
            [number[i] for i in before],
            len(self._fresh),
            len(inner),
            self._written,
            [self._fresh.index(i) for i in self._with_tangents],
            there,
            draws,
        )

    def _look_at(self, raw: Any, results: Nest, copies: list[Tensor]) -> list[int]:
        """Stores which results are new tensors and which alias inputs; returns the value numbers of
        the inputs."""
        if _names_memory(raw):
            raise NotCompiled("it uses as_strided on memory of an argument")
        for value in fixed_values(results.form):
            if not is_plain(value):
                raise NotCompiled(f"it returns an object of the class {type(value).__name__}")
        self._outside = list(_outside(raw).values())
        self.results = results.without_tensors()
        self._aliases = [_alias(t, copies, self._outside) for t in results.tensors]
        self._fresh = [i for i, alias in enumerate(self._aliases) if alias is None]
        inputs = raw.inputs()
        # A program runs on one device: that of its inputs, or the CPU.
        for tensor in results.tensors:
            on = tensor.device
            if on not in self._devices and (self._devices or on.type != "cpu"):
                raise NotCompiled(f"it returns a tensor on {on}")
        if any(i not in inputs for i in raw.mutated()):
            raise NotCompiled("it writes a tensor that is none of its arguments")
        return inputs

    def _compile_forward(self, raw: Any) -> None:
        ids = raw.outputs()
        given = [*raw.inputs(), *_outside(raw)]
        module = _module(raw, self.name, given, [ids[i] for i in self._fresh], writes=True)
        self._written = _written(module)
        self.forward = _hlo.compile(module, verified=True, device_graphs=self._found.graphs)

    def _call(self, *tensors: Tensor) -> Any:
        """Calls the function with these tensors in place of those of the arguments and modules, and
        then puts the former ones back. NotCompiled if the function changed anything else."""
        given = self._count - len(self._found.tensors)
        args, kwargs = self._arguments.unpack(tensors[:given])
        rows = list(zip(self._places, tensors[given:]))
        changed = ""
        # The state of an optimizer is keyed by parameter, so the stand-ins need entries too.
        owned = [
            (state, place.value, tensor)
            for state in self._found.states
            for place, tensor in rows
            if isinstance(place.value, Tensor)
        ]
        try:
            for place, tensor in rows:
                place.put(tensor)
            for state, param, tensor in owned:
                if param in state:
                    state[tensor] = state[param]
            if self._found.reads is not None:
                given_tensors = zip(tensors, self._leaves)
                self._found.reads.stand_ins.update((id(t), leaf) for t, leaf in given_tensors)
                self._found.reads.stand_ins.update((id(t), place.value) for place, t in rows)
            with self._reads:
                returned = self._fn(*args, **kwargs)
        finally:
            for place, tensor in rows:
                if place.get() is not tensor:
                    changed = place.name
            for place in self._places:
                place.put(place.value)
            for state, param, tensor in owned:
                if state.pop(tensor, None) is not None and param not in state:
                    changed = "the state of an optimizer, which begins with this call"
            if self._found.reads is not None:
                changed = self._found.reads.change() or changed
        if changed:
            raise NotCompiled(f"it changes {changed}")
        return returned

    # ---- Gradients of gradients ----

    def again(
        self, given: list[Tensor], versions: tuple[int, ...], tangents: list[Tensor]
    ) -> list[Tensor | None]:
        """The gradients with respect to the inputs that require them, as differentiable results:
        from a program of their own, or from the uncompiled function if that cannot be compiled.
        versions: the versions of the tensors when the function was called."""
        if any(tensor._version != before for tensor, before in zip(given, versions)):
            raise RuntimeError(
                "compile: expected the tensors of a function to be unchanged when its gradients "
                "are differentiated, got one that was written since the call"
            )
        # The function must not write its arguments a second time, so it gets copies of these.
        leaves = given[: self._count]
        leaves = [t.clone() if i in self._written else t for i, t in enumerate(leaves)]
        tensors = [*leaves, *(tangent.contiguous() for tangent in tangents)]
        wants = tuple(tensor.requires_grad for tensor in tensors)
        with tracing:
            if self._gradients.get(wants) is None and self.outside.changed() is not None:
                raise RuntimeError(
                    "compile: expected what a function read to be unchanged when its gradients "
                    "are differentiated for the first time, got something that has changed"
                )
            if wants not in self._gradients:
                self._gradients[wants] = self._gradient_program(tensors)
            program = self._gradients[wants]
            if program is None:
                return self._gradient(*tensors)
        return program.run(tensors)

    def _gradient_program(self, tensors: list[Tensor]) -> Program | None:
        try:
            program = Program(self._gradient, Nest.pack((tuple(tensors), {})), Found(), False)
            program.say, program.outside = self.say, self.outside
            return program
        except NotCompiled as error:
            why = f"the gradient of {self.name} runs uncompiled when it is differentiated: {error}"
        self.say(why)
        return None

    def _gradient(self, *tensors: Tensor) -> list[Tensor | None]:
        leaves, tangents = tensors[: self._count], tensors[self._count :]
        before = [place.value for place in self._places]
        try:
            for place in self._places:
                place.value = place.get()
            with lamella.enable_grad():
                with casting(*self._cast):
                    results = Nest.pack(self._call(*leaves)).tensors
                every = [*leaves, *self._outside]
                grads = lamella.autograd.grad(
                    [results[i] for i in self._with_tangents],
                    [every[i] for i in self._into],
                    tangents,
                    create_graph=True,
                    allow_unused=True,
                )
        finally:
            for place, value in zip(self._places, before):
                place.value = value
        return list(grads)

    def _names(self) -> list[str]:
        names = ["_".join(map(str, where[1:])) for where in self._arguments.places()]
        return [*(f"argument{n}" for n in names), *(place.name for place in self._places)]

    # ---- Running ----

    def run(self, leaves: list[Tensor]) -> Any:
        made = self.door(self.again, leaves)
        if type(made) is not list:
            raise NotCompiled("it writes an argument that shares memory with another")
        return self.results.unpack(made)


# ---- Tensors -------------------------------------------------------------------------------------


def _check_plain(tensor: Tensor) -> None:
    if tensor.device.type not in ("cpu", "cuda") or not is_own(type(tensor).__module__):
        raise NotCompiled(f"it takes a {type(tensor).__name__} on {tensor.device}")
    if tensor.is_conj() or tensor.is_neg():
        raise NotCompiled("it takes a tensor that is conjugated or negated when it is read")


def _index(tensor: Tensor, others: list[Tensor]) -> int:
    return next(i for i, other in enumerate(others) if other is tensor)


def _is_alias(tensor: Tensor, own: list[Tensor]) -> bool:
    """Whether a result, inside a trace, is an input, a tensor from outside, or a view of one.
    _alias() finds out which one after the trace."""
    if tensor.numel() == 0 or tensor.is_conj() or tensor.is_neg():
        return False
    base = tensor if tensor._base is None else tensor._base
    if base.dtype != tensor.dtype:
        return False
    return any(base is one for one in own) or not _C._is_functional(base)


def _extent(tensor: Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))


def gradient_facts(leaves: list[Tensor]) -> list[Any]:
    """What a step is specialized on besides the facts of its tensors: for each tensor the position
    of its first occurrence, and the facts of its gradient, None if it has none."""
    first: dict[int, int] = {}
    facts = []
    for i, leaf in enumerate(leaves):
        grad = leaf.grad if leaf.is_leaf else None
        known = None if grad is None else _hlo._tensor_facts(grad)
        facts.append((first.setdefault(id(leaf), i), known))
    return facts


def copy_of(tensor: Tensor) -> Tensor:
    """A copy with the same strides."""
    with lamella.no_grad():
        plain = tensor.detach()
        flat = plain.as_strided((_extent(plain),), (1,), plain.storage_offset()).clone()
        return flat.as_strided(plain.shape, plain.stride(), 0)


def fresh_leaves(
    tensors: Any, wants: list[bool], hooked: list[bool], refuse: list[bool]
) -> list[Tensor]:
    """The tensors, where each that requires gradients is a new leaf made inside the trace.

    A program runs no hooks, so as long as `refuse` is not empty, a gradient of a leaf that replaces
    a tensor with hooks is refused."""

    def hook(_: Any) -> None:
        if refuse:
            raise NotCompiled("it computes gradients of a tensor with hooks")

    leaves = [t.detach().requires_grad_() if want else t for t, want in zip(tensors, wants)]
    for leaf, has in zip(leaves, hooked):
        if has:
            leaf.register_hook(hook)
    return leaves


_Alias = tuple[int, tuple[int, ...], tuple[int, ...], int]


def _alias(tensor: Tensor, copies: list[Tensor], outside: list[Tensor]) -> _Alias | None:
    """The number of the input that a result is a view of, and the view's shape, strides and offset;
    None for a new tensor."""
    if tensor.numel() == 0 or tensor.is_conj() or tensor.is_neg():
        return None
    memory = tensor.untyped_storage().data_ptr()
    for i, other in enumerate([*copies, *outside]):
        if other.numel() and other.untyped_storage().data_ptr() == memory:
            if other.dtype != tensor.dtype:
                return None
            offset = tensor.storage_offset() - other.storage_offset()
            return (i, tuple(tensor.shape), tuple(tensor.stride()), offset)
    return None


# ---- Graphs --------------------------------------------------------------------------------------


def recorder_of(tensors: list[Tensor], names: list[str]) -> Any:
    """A recorder whose inputs are these tensors."""
    recorder = _C._Recorder(True, True, True)
    for name, tensor in zip(names, tensors):
        recorder.add_input(name, tensor)
    return recorder


def record(recorder: Any, fn: Callable[..., Any], tensors: list[Tensor]) -> tuple[Any, Nest]:
    """The graph of fn(*tensors), and its results."""
    try:
        results = Nest.pack(recorder.run(functionalize(fn), tuple(tensors), {}))
    except NotCompiled:
        raise
    except Exception as error:
        # An error of the function itself is raised again when it runs uncompiled.
        raise NotCompiled(str(error) or type(error).__name__) from error
    return recorder.finish(results.tensors), results


def _outside(raw: Any) -> dict[int, Tensor]:
    """Tensors that the function uses besides its inputs, by value number."""
    return {i: raw.tensor(i) for i in raw.outside()}


def _written(module: Any) -> list[int]:
    """The parameters that the last results of the module are written to, in order."""
    return [parameter for _, parameter, _, _ in module.input_output_aliases]


def _names_memory(raw: Any) -> bool:
    """Whether the trace calls as_strided on memory that it did not allocate. Such a call can reach
    memory around an argument, which differs from call to call."""
    used = raw.used("aten::as_strided")
    values = raw.values() if used else []
    return any(values[values[i]["root"]]["kind"] != "result" for i in used)


def _module(
    raw: Any,
    name: str,
    inputs: list[int],
    outputs: list[int | None],
    *,
    writes: bool,
    tangents: list[int] | None = None,
) -> Any:
    """A part of a trace as a verified module."""
    try:
        return _hlo._from_trace(raw, name, True, inputs, outputs, writes, tangents)
    except RuntimeError as error:
        # Nodes that no module can have are refused by this name; anything else is a defect.
        if not str(error).startswith("from_trace: "):
            raise
        raise NotCompiled(str(error)) from None
