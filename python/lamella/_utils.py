"""Functions of the package that are written in Python: seeds, loading of libraries, explain(), and
wrappers of operators that take their arguments in several ways."""

from __future__ import annotations

import os

from lamella import _C, Tensor, _operators

# Type checkers recognize this name; importing it from typing would slow `import lamella` down.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from lamella import Generator, Size


def manual_seed(seed: int) -> Generator:
    """Seeds the default generators of all devices and returns the CPU's."""
    from lamella._device import seed_all

    seed_all(seed)
    return _C._default_generator().manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the system and returns the seed."""
    return _C._default_generator().seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return _C._default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor."""
    return _C._default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restores a state of the default generator."""
    _C._default_generator().set_state(new_state)


def typename(obj: Any) -> str:
    """The full name of an object's type."""
    if isinstance(obj, Tensor):
        return type_name(obj)
    kind = type(obj)
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


_TYPE_NAMES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def type_name(tensor: Tensor) -> str:
    name = repr(tensor.dtype).partition(".")[2]
    device = "" if tensor.device.type == "cpu" else f".{tensor.device.type}"
    return f"lamella{device}.{_TYPE_NAMES.get(name, name)}Tensor"


class LoadedLibrary:
    """A library of operators that was loaded. Pass it to unload_library()."""

    def __init__(self, path: str, handle: Any) -> None:
        self.path = path
        self._handle = handle

    def __repr__(self) -> str:
        state = "loaded" if self._handle is not None else "unloaded"
        return f"<lamella library '{self.path}', {state}>"

    def unload(self) -> None:
        """Removes the library's operators and kernels. Waits for running calls of its kernels."""
        handle, self._handle = self._handle, None
        if handle is None:
            raise RuntimeError(f"unload_library: '{self.path}' is not loaded")
        _C._unload_library(handle)


def load_library(path: str | os.PathLike[str]) -> LoadedLibrary:
    """Loads a shared library; its operators are then in lamella.ops.

    path: a name without a folder is first looked for in the current folder, then where the system
    looks for libraries. If registrations of the library fail, one error lists all failures.
    """
    path = os.fspath(path)
    found = os.path.abspath(path) if os.path.exists(path) else path
    return LoadedLibrary(path, _C._load_library(found))


def unload_library(library: LoadedLibrary) -> None:
    """Removes the operators and kernels of a library that load_library() loaded."""
    library.unload()


class Explanation(str):
    """How a call would be dispatched: its key set, why keys are skipped, the kernel that runs."""

    def __repr__(self) -> str:
        return str(self)


def explain(op: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Explains which kernel op(*args, **kwargs) would run and why, without running it."""
    return Explanation(_C._explain(op, *args, **kwargs))


def numel(input: Tensor) -> int:
    """How many elements a tensor has."""
    return input.numel()


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that all given shapes broadcast to."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    result = [1] * max(map(len, given), default=0)
    for shape in given:
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] not in (1, result[i]):
                if result[i] != 1:
                    raise RuntimeError(
                        "broadcast_shapes: expected shapes that broadcast, got "
                        + ", ".join(str(list(s)) for s in given)
                    )
                result[i] = shape[i]
    return _C.Size(result)


def _tensors(operands: tuple[Any, ...]) -> list[Tensor]:
    """The tensors of f(a, b) or f([a, b])."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return list(operands[0])
    return list(operands)


def _letters(places: Sequence[Any]) -> str:
    """Dimension numbers as letters that sort in the same order: A to Z, then a to z."""
    letters = ""
    for place in places:
        if place is not Ellipsis and not 0 <= place < 52:
            raise ValueError(f"einsum: expected numbers of dimensions in [0, 52), got {place}")
        letters += "..." if place is Ellipsis else chr(place + (65 if place < 26 else 71))
    return letters


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums products of the operands' elements as the equation describes (Einstein summation).

    einsum(a, [0, 1], b, [1, 2], [0, 2]) means einsum("ab,bc->ac", a, b), with numbers for letters
    and Ellipsis for "...". The last list may be omitted.
    """
    if not isinstance(equation, str):
        parts = [equation, *operands]
        result = f"->{_letters(parts.pop())}" if len(parts) % 2 else ""
        equation, operands = ",".join(map(_letters, parts[1::2])) + result, tuple(parts[::2])
    return _operators["einsum"](equation, _tensors(operands))


def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: str | None = None
) -> tuple[Tensor, ...]:
    """Grids of coordinates from one-dimensional tensors."""
    if indexing is None:
        return _operators["meshgrid"](_tensors(tensors))
    return _operators["meshgrid"](_tensors(tensors), indexing=indexing)


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors, all expanded to the shape that they broadcast to."""
    return _operators["broadcast_tensors"](_tensors(tensors))


def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """The indices of elements that are not zero: one row for each element, or with `as_tuple` one
    tensor for each dimension."""
    if not as_tuple:
        return _operators["nonzero"](input, out=out)
    if out is not None:
        raise TypeError("nonzero: expected no 'out' with 'as_tuple'")
    return _operators["nonzero"](input if input.dim() else input.reshape(1)).unbind(1)


def trace(*args: Any, **kwargs: Any) -> Any:
    """trace(fn, *example_inputs, check=True, ...): the operators that fn calls, as a Graph; see
    lamella._trace. trace(input): the sum of a matrix's diagonal."""
    if args and callable(args[0]) and not isinstance(args[0], Tensor):
        from lamella._trace import trace as record

        return record(*args, **kwargs)
    if not args and "fn" in kwargs:
        return trace(kwargs.pop("fn"), **kwargs)
    return _operators["trace"](*args, **kwargs)
