"""lamella.compile: compiles functions and modules to programs, and picks the one for a call."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import warnings
from typing import Any

import lamella
from lamella import _hlo, _nest
from lamella._compile_guards import MISSING
from lamella._compile_program import NotCompiled, Program, casting, gradient_facts, tracing
from lamella._compile_state import Found, find
from lamella._compile_step import Plain, Step
from lamella._nest import Nest

__all__ = ["Compiled", "compile"]

# The largest number of programs of one function. Calls that need another one run uncompiled.
_MAX_PROGRAMS = 64
# PyTorch's modes, and whether programs that repeat on CUDA run as captured graphs.
_MODES = {
    None: False,
    "default": False,
    "reduce-overhead": True,
    "max-autotune": True,
    "max-autotune-no-cudagraphs": False,
}


def compile(
    fn: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    explain: bool = False,
    disable: bool = False,
) -> Any:
    """Returns a compiled version of a function or module: the first call traces it, compiles the
    trace to one program, and runs that; later calls run the program. Also a decorator.

    A program is specialized on the dtypes, shapes, strides and devices of the tensor arguments, on
    grad mode, autocast and the default dtype, on all other arguments, and on whatever else the
    function reads while it is traced; a change in any of these compiles another program. If
    gradients are
    recorded, forward and backward are compiled. Tensors of modules are read at each call, so
    training works as without compile; arguments that the function writes are written.

    A function whose Python control flow depends on the elements of a tensor, such as
    `if x.sum() > 0`, cannot be compiled: it runs uncompiled, and explain says where.

    One function has at most 64 programs. After that, calls that match no program run the function
    uncompiled; a RuntimeWarning says once what differed in the first of these calls.

    fullgraph: raises RuntimeError instead of running the function uncompiled.
    dynamic: accepted for compatibility and ignored, even if True: each shape has its own program.
    If lengths vary from call to call, round them up to a few sizes.
    mode: with "reduce-overhead" a program that repeats on a CUDA device runs as a captured graph:
    one launch instead of one for each step. It keeps memory of its own. "max-autotune" does the
    same; "default" and "max-autotune-no-cudagraphs" launch each step.
    explain: prints to stderr what was compiled and why it was compiled again, what the passes
    changed, what was fused or called, and why the rest was not. See Compiled.explanation().
    disable: returns fn unchanged.
    """
    if fn is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            mode=mode,
            explain=explain,
            disable=disable,
        )
    if not callable(fn):
        raise TypeError(f"compile: expected 'fn' to be callable, got {type(fn).__name__}")
    if mode not in _MODES:
        names = ", ".join(repr(name) for name in _MODES if name)
        raise ValueError(f"compile: expected 'mode' to be None or one of {names}, got {mode!r}")
    if disable:
        return fn
    return _hlo._compiled(Compiled(fn, fullgraph, explain, mode), fn)


class _Entry:
    """A program, or the reason why there is none, and the calls that it serves."""

    def __init__(self, state: Any, nest: Nest, found: Found) -> None:
        self.state, self.form, self.found = state, nest.form, found
        self.examples: list[Any] = nest.tensors
        leaves = self.leaves(nest)
        self.facts = [_hlo._tensor_facts(leaf) for leaf in leaves]
        self.gradients: list[Any] | None = None
        self.program: Program | None = None
        self.reason = ""
        self.outside: Any = None  # guards on what the function read besides its arguments
        self.names: list[str] = []
        self.expected: list[Any] = []

    def leaves(self, nest: Nest) -> list[Any]:
        return [*nest.tensors, *(place.get() for place in self.found.tensors)]

    def run(self, leaves: list[Any], fn: Any) -> Any:
        if self.program is not None:
            try:
                return self.program.run(leaves)
            except NotCompiled:
                pass
        args, kwargs = _nest.Nest(self.form, []).unpack(leaves)
        return fn(*args, **kwargs)

    def parts(self) -> list[tuple[str, Any]]:
        """The executables of the program, by name."""
        program = self.program
        if program is None:
            return []
        both = [(program.name, program.forward)]
        return both if program.backward is None else [*both, ("backward", program.backward)]

    def forget_tensors(self) -> None:
        """Drops the references to the tensors of the first call."""
        self.examples = []
        for place in self.found.tensors:
            place.value = None

    def guards(self) -> Any:
        """This entry as compiled.cpp takes it to serve calls without Python: see entry_from()
        there."""
        program = self.program
        places = [(place.container, place.key) for place in self.found.tensors]
        leaves = [*self.examples, *(place.value for place in self.found.tensors)]
        run = () if program is None else (program.results, program.door, program.again)
        return (self.state, self.form, leaves, places, self.outside, *run)

    def difference(self, state: Any, nest: Nest) -> str:
        """Why this entry cannot serve a call; empty if it can."""
        if state != self.state:
            return _state_difference(self.state, state)
        if not _is_form(nest.form, self.form):
            text = _nest.difference(self.form, nest.form)
            return f"arguments: expected {text}" if text else "an argument is another object"
        changed = self.outside.changed()
        if changed is not None:
            at, *now = changed
            is_now = f"is {_short(now[0])}" if now else "has changed"
            was = "" if self.expected[at] is MISSING else f", was {_short(self.expected[at])}"
            return f"'{self.names[at]}' {is_now}{was if now else ''}"
        names = [f"argument {i}" for i in range(len(nest.tensors))]
        names += [f"'{place.name}'" for place in self.found.tensors]
        for name, fact, leaf in zip(names, self.facts, self.leaves(nest)):
            text = _fact_difference(fact, leaf)
            if text:
                return f"{name} {text}"
        if self.gradients is not None and self.gradients != gradient_facts(self.leaves(nest)):
            return "the gradients of tensors have changed"
        return ""


class Compiled:
    """The programs of a compiled function; makes more when none fits. Attributes are those of the
    function or module. compiled.cpp calls _call() when none of its own entries matches."""

    def __init__(self, fn: Any, fullgraph: bool, explain: bool, mode: str | None = None) -> None:
        self.__dict__["_fn"] = fn
        self.__dict__["_entries"] = []
        self.__dict__["_log"] = []
        self.__dict__["_options"] = (fullgraph, explain, mode)
        self.__dict__["_is_full"] = False
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(fn, name):
                self.__dict__[name] = getattr(fn, name)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The result, and the guards by which compiled.cpp serves such calls from then on, or
        None."""
        state = _hlo._call_state()
        if _is_layered(state):
            return self._fn(*args, **kwargs), None
        nest = Nest.pack((args, kwargs))
        reasons = []
        for entry in self._entries:
            reason = entry.difference(state, nest)
            if not reason:
                return entry.run(entry.leaves(nest), self._fn), None
            reasons.append(reason)
        if len(self._entries) >= _MAX_PROGRAMS:
            self._warn_of_many(reasons[0])
            return self._fn(*args, **kwargs), None
        # Tracing replaces the tensors of modules, so only one trace may run at a time.
        with tracing:
            entry = self._compiled(state, nest, reasons)
        guards = entry.guards()
        entry.forget_tensors()
        return entry.run(entry.leaves(nest), self._fn), guards

    def _compiled(self, state: Any, nest: Nest, reasons: list[str]) -> _Entry:
        fullgraph, _, mode = self._options
        found = find(self._fn, _nest.fixed_values(nest.form))
        found.graphs = _MODES[mode]
        entry = _Entry(state, nest, found)
        try:
            entry.program = _program(self._fn, nest, found)
        except NotCompiled as error:
            entry.reason = str(error)
        if found.has_gradients:
            entry.gradients = gradient_facts(entry.leaves(nest))
        if found.reads is not None:
            if entry.program is None:
                found.reads.forget_changes()
            entry.outside, entry.names, entry.expected = found.reads.guards()
            found.reads = None
        else:
            entry.outside = _hlo._guards([])
        if entry.program is not None:
            entry.program.say, entry.program.outside = self._say, entry.outside
        self._entries.insert(0, entry)
        self._note(entry, reasons)
        if entry.program is None and fullgraph:
            raise RuntimeError(f"compile: expected a function that is one program, {entry.reason}")
        return entry

    def _warn_of_many(self, why: str) -> None:
        """Warns once that the limit of programs is reached, and why none of them fits a call."""
        fullgraph = self._options[0]
        if not self._is_full or fullgraph:
            self.__dict__["_is_full"] = True
            text = (
                f"{_name(self._fn)} has {_MAX_PROGRAMS} programs, so other calls run uncompiled: "
                f"in this one {why}"
            )
            self._log.append(text)
            if fullgraph:
                raise RuntimeError(f"compile: {text}")
            warnings.warn(f"compile: {text}", RuntimeWarning, stacklevel=3)

    def _note(self, entry: _Entry, reasons: list[str]) -> None:
        why = f" again, as {reasons[0]}" if reasons else ""
        if entry.program is None:
            text = f"{_name(self._fn)} runs uncompiled{why}: {entry.reason}"
        else:
            text = f"{_name(self._fn)} was compiled{why}: {_contents(entry)}"
        self._say(text)
        if self._options[1]:
            print(_steps(entry), end="", file=sys.stderr)

    def _say(self, text: str) -> None:
        self._log.append(text)
        if self._options[1]:
            print(f"compile: {text}", file=sys.stderr)

    def explanation(self, *, steps: bool = False) -> str:
        """What was compiled so far, a line for each program: why it was made, how many opcodes it
        has and which operators it calls, and where a function runs uncompiled.

        steps: also lists how each part of each program runs, the last program first: how many
        instructions each pass changed, what was fused or called, and why the rest was not.
        """
        lines = list(self._log)
        if steps:
            for entry in self._entries:
                lines.append(_steps(entry).rstrip("\n"))
        return "\n".join(lines)

    def programs(self, *, planned: bool = False) -> list[Any]:
        """The modules of the programs, the last one first; a program with a gradient has two.
        planned: the modules as they run (lamella.hlo.Executable.plan), whose to_html() shows
        fusions, memory and cost."""
        parts = [part for entry in self._entries for _, part in entry.parts()]
        return [part.plan if planned else part.module for part in parts]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """isinstance() takes a compiled module for a module, so that others can contain it."""
        return type(self._fn) if isinstance(self._fn, lamella.nn.Module) else Compiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fn, name)

    def __reduce__(self) -> Any:
        """Copies and pickles keep the function and the options, and compile again."""
        return _again, (self._fn, *self._options)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._fn, name, value)

    def __repr__(self) -> str:
        return f"compile({self._fn!r})"


def _program(fn: Any, nest: Nest, found: Found) -> Program:
    if not found.has_gradients:
        program = Program(fn, nest, found)
        # Its code may read gradients without naming them.
        found.has_gradients = found.reads is not None and found.reads.gradients
        if not found.has_gradients:
            return program
    try:
        return Step(fn, nest, found)
    except Plain:
        return Program(fn, nest, found)


def _again(fn: Any, fullgraph: bool, explain: bool, mode: str | None = None) -> Any:
    return compile(fn, fullgraph=fullgraph, mode=mode, explain=explain)


def _is_layered(state: Any) -> bool:
    """Whether calls on this thread are traced, batched or otherwise intercepted."""
    return state[:2] not in _plain_states()


@functools.cache
def _plain_states() -> frozenset[Any]:
    """The dispatch keys that a thread includes and excludes in each grad mode, with and without
    autocast."""
    states = set()

    def visit() -> None:
        for mode in (lamella.enable_grad, lamella.no_grad, lamella.inference_mode):
            for cast in itertools.product((False, True), repeat=2):
                with mode(), casting(cast, (None, None)):
                    states.add(_hlo._call_state()[:2])

    # The calling thread itself may be inside a trace or a transform.
    thread = threading.Thread(target=visit)
    thread.start()
    thread.join()
    return frozenset(states)


def _is_form(form: Any, other: Any) -> bool:
    """Whether two forms have the same structure and the same fixed values."""
    if form[0] != other[0]:
        return False
    if form[0] == "tensor":
        return bool(form[1] == other[1])
    if form[0] == "fixed":
        return bool(_hlo._is_same(form[1], other[1]))
    kinds = zip(form[1:-1], other[1:-1])
    if len(form[-1]) != len(other[-1]) or not all(a is b or a == b for a, b in kinds):
        return False
    return all(map(_is_form, form[-1], other[-1]))


def _state_difference(expected: Any, got: Any) -> str:
    if expected[2] != got[2]:
        return "grad mode has changed"
    if expected[4] != got[4]:
        return "the default dtype has changed"
    return "autocast has changed"


def _fact_difference(expected: Any, leaf: Any) -> str:
    if not isinstance(leaf, lamella.Tensor):
        return f"is a {type(leaf).__name__}, was a tensor"
    got = _hlo._tensor_facts(leaf)
    if got == expected:
        return ""
    for at, what in ((1, "dtype"), (4, "shape"), (5, "strides"), (2, "device"), (6, "type")):
        if got[at] != expected[at]:
            if what in ("shape", "strides"):
                return f"has {what} {list(got[at])}, had {list(expected[at])}"
            return f"has another {what}"
    return "differs in requires_grad, in having hooks or in its dispatch keys"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"another {type(value).__name__}"


def _name(fn: Any) -> str:
    return getattr(fn, "__qualname__", type(fn).__name__)


def _steps(entry: _Entry) -> str:
    """What the passes did to each part and how it runs."""
    return "".join(f"{name}:\n{part.explain()}" for name, part in entry.parts())


def _contents(entry: _Entry) -> str:
    """How many opcodes there are, and which operators are called."""
    parts = []
    for part, executable in entry.parts():
        opcodes, calls = 0, []
        for computation in executable.module.computations:
            for i in computation.instructions:
                if i.opcode == "custom-call":
                    calls.append(i.attributes["custom_call_target"])
                elif i.opcode not in ("parameter", "tuple", "get-tuple-element", "constant"):
                    opcodes += 1
        text = f"{part} of {opcodes} opcodes"
        if calls:
            text += f" and calls of {', '.join(sorted(set(calls)))}"
        parts.append(text)
    return "; ".join(parts)
