"""Call: calls an operator once and records its results, its error, and what it changed."""

from __future__ import annotations

import cmath
import ctypes
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import lamella
from lamella import _C
from lamella.testing._inputs import Sample, arguments_of
from lamella.testing._operator import Operator

# The tolerances for comparing two ways to compute the same values, by dtype.
_TOLERANCES = {
    lamella.float64: 1e-9,
    lamella.complex128: 1e-9,
    lamella.float32: 1e-4,
    lamella.complex64: 1e-4,
    lamella.float16: 1e-2,
    lamella.bfloat16: 5e-2,
}


def tensors_in(value: Any) -> Iterator[lamella.Tensor]:
    """The tensors of a value: itself, or those in a list."""
    if isinstance(value, lamella.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def storage_of(tensor: lamella.Tensor) -> tuple[int, int]:
    """The address and the size of a tensor's storage; (0, 0) if it has no memory."""
    if tensor.device.type == "meta":
        return (0, 0)
    whole = _C._storage_bytes(tensor)
    return (whole.data_ptr(), whole.numel()) if whole.numel() else (0, 0)


def describe(tensor: lamella.Tensor) -> str:
    """The dtype and shape of a tensor, such as "float32[3, 4]"."""
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A snapshot of a tensor's geometry and version, with all bytes of its storage."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: lamella.dtype
    storage: tuple[int, int]
    contents: bytes
    version: int

    @staticmethod
    def of(tensor: lamella.Tensor) -> Snapshot:
        storage = storage_of(tensor)
        return Snapshot(
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.storage_offset(),
            tensor.dtype,
            storage,
            ctypes.string_at(*storage) if storage[0] else b"",
            0 if tensor.is_inference() else tensor._version,
        )

    def changes_to(self, later: Snapshot) -> str | None:
        """What changed between two snapshots, as text after "argument 'x' was"; None: nothing."""
        if later.storage[0] == self.storage[0] and later.contents != self.contents:
            return "written"
        for name in ("shape", "strides", "offset", "dtype"):
            if getattr(later, name) != getattr(self, name):
                return f"given another {name.rstrip('s') if name == 'strides' else name}"
        if later.storage != self.storage:
            return "given other memory"
        if later.version != self.version:
            return "marked as written"
        return None


class Call:
    """A call with new tensors for the sample's arguments. `error` is set if it raised."""

    def __init__(
        self,
        op: Operator,
        sample: Sample,
        *,
        fresh: int = 0,
        margin: int = 0,
        seed: int = 0,
        device: str = "cpu",
        around: Callable[..., Any] | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.op = op
        self.sample = sample
        self.error: Exception | None = None
        self.changed_state: list[str] = []
        self.results: list[Any] = []
        guard_memory(fresh, margin)
        self.made = sample.make(device)
        self.before = {
            name: [Snapshot.of(t) for t in tensors_in(value)] for name, value in self.made.items()
        }
        args, kwargs = arguments_of(op, self.made)
        lamella.manual_seed(seed)
        state = thread_state()
        try:
            if around is None:
                result = (function or op.call)(*args, **kwargs)
            else:
                with around():
                    result = (function or op.call)(*args, **kwargs)
        except Exception as error:
            self.error = error
            return
        finally:
            after = thread_state()
            self.changed_state = [
                f"{name} was {state[name]} and is {after[name]}"
                for name in state
                if state[name] != after[name]
            ]
            if self.changed_state:
                restore_thread_state(state)
        count = len(op.returns)
        self.results = [] if count == 0 else [result] if count == 1 else list(result)

    def after(self, name: str) -> list[Snapshot]:
        return [Snapshot.of(t) for t in tensors_in(self.made[name])]

    def outputs(self) -> list[tuple[str, Any]]:
        """The results and the written arguments, each with a description."""
        pairs = [(_return_name(self.op, i), value) for i, value in enumerate(self.results)]
        for argument in self.op.arguments:
            if argument.write and argument.name in self.made:
                pairs.append((f"argument '{argument.name}'", self.made[argument.name]))
        return pairs

    def values(self) -> list[tuple[str, Any]]:
        """The outputs as plain Python values, tensors with dtype and shape."""
        return [(name, plain(value)) for name, value in self.outputs()]


def thread_state() -> dict[str, Any]:
    """The state of the thread that a call must not change."""
    return {
        "grad mode": lamella.is_grad_enabled(),
        "inference mode": lamella.is_inference_mode_enabled(),
        "the default dtype": lamella.get_default_dtype(),
        "the number of threads": lamella.get_num_threads(),
    }


def restore_thread_state(state: dict[str, Any]) -> None:
    lamella.set_grad_enabled(state["grad mode"])
    lamella.set_default_dtype(state["the default dtype"])
    lamella.set_num_threads(state["the number of threads"])


def _return_name(op: Operator, index: int) -> str:
    name = op.returns[index].name
    if name:
        return f"return '{name}'"
    return "the result" if len(op.returns) == 1 else f"return {index}"


@dataclasses.dataclass(frozen=True)
class Plain:
    """The dtype, shape and elements of a tensor."""

    dtype: lamella.dtype
    shape: tuple[int, ...]
    values: tuple[Any, ...]


def plain(value: Any) -> Any:
    if isinstance(value, lamella.Tensor):
        flat = value.detach().contiguous().reshape(-1).tolist()
        return Plain(value.dtype, tuple(value.shape), tuple(flat))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def difference(
    first: list[tuple[str, Any]], second: list[tuple[str, Any]], exact: bool = False
) -> str | None:
    """The first difference between the values of two calls, as text; None if they agree."""
    for (name, a), (_, b) in zip(first, second):
        found = _difference(a, b, exact)
        if found is not None:
            return f"{name} {found}"
    return None


def _difference(a: Any, b: Any, exact: bool) -> str | None:
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"has {len(b)} tensors instead of {len(a)}"
        return next((d for d in (_difference(x, y, exact) for x, y in zip(a, b)) if d), None)
    if not (isinstance(a, Plain) and isinstance(b, Plain)):
        same = a == b or (a != a and b != b)
        if not same and not exact and isinstance(a, float) and isinstance(b, float):
            same = _near(a, b, 1e-4)
        return None if same else f"is {b!r} instead of {a!r}"
    if a.shape != b.shape:
        return f"has the shape {list(b.shape)} instead of {list(a.shape)}"
    if a.dtype != b.dtype:
        return f"has the dtype {b.dtype} instead of {a.dtype}"
    tolerance = 0.0 if exact else _TOLERANCES.get(a.dtype, 0.0)
    for i, (x, y) in enumerate(zip(a.values, b.values)):
        if not _near(x, y, tolerance):
            return f"has {y!r} instead of {x!r} as element {i}"
    return None


def _near(x: Any, y: Any, tolerance: float) -> bool:
    if x == y or (x != x and y != y):
        return True
    if tolerance == 0 or isinstance(x, bool) or not (cmath.isfinite(x) and cmath.isfinite(y)):
        return False
    return bool(abs(x - y) <= tolerance * max(1.0, abs(x), abs(y)))


# ---- Guarded memory ----------------------------------------------------------------------------

_guarding = [False]


class guarded_memory:
    """A context in which new tensors are allocated between inaccessible guard pages."""

    def __enter__(self) -> None:
        _guarding[0] = True
        guard_memory(0, 0)

    def __exit__(self, *_: Any) -> None:
        _guarding[0] = False
        _C._set_guarded_memory(False)


def guard_memory(fresh: int, margin: int) -> None:
    """Sets the bytes that fill new memory and the memory around tensors, if guarded memory is in
    use."""
    if _guarding[0]:
        _C._set_guarded_memory(True, fresh, margin)
