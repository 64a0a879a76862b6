"""Makes inputs for operators from their schemas.

A sample describes the arguments of one call; each call makes new tensors from it, so that calls
cannot affect each other.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import lamella
from lamella.testing._operator import Argument, Operator

_FLOATS = (lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16)
_COMPLEX = (lamella.complex64, lamella.complex128)
# The value of storage elements that are not elements of the tensor.
_BETWEEN = 77


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """The description of a tensor: its values and its layout. strides None: contiguous."""

    shape: tuple[int, ...]
    dtype: lamella.dtype
    values: tuple[Any, ...]
    strides: tuple[int, ...] | None = None
    offset: int = 0

    @staticmethod
    def of(tensor: lamella.Tensor) -> TensorSpec:
        """The spec that makes copies of `tensor`."""
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        contiguous = tensor.is_contiguous() and tensor.storage_offset() == 0
        return TensorSpec(
            tuple(tensor.shape),
            tensor.dtype,
            tuple(flat.tolist()),
            None if contiguous else tuple(tensor.stride()),
            0 if contiguous else tensor.storage_offset(),
        )

    @property
    def numel(self) -> int:
        return len(self.values)

    @property
    def is_floating(self) -> bool:
        return self.dtype in _FLOATS

    def make(self, device: str = "cpu") -> lamella.Tensor:
        if device == "meta":
            strides = self.strides or contiguous_strides(self.shape)
            return lamella.empty_strided(self.shape, strides, dtype=self.dtype, device="meta")
        if not self.values:
            return lamella.empty(self.shape, dtype=self.dtype)
        values = lamella.tensor(_nest(list(self.values), self.shape), dtype=self.dtype)
        if self.strides is None:
            return values
        last = self.offset + sum((s - 1) * t for s, t in zip(self.shape, self.strides) if s > 0)
        storage = lamella.full((last + 1,), _BETWEEN, dtype=self.dtype)
        view = storage.as_strided(self.shape, self.strides, self.offset)
        view.copy_(values)
        return view.detach()

    def laid_out(self, strides: Sequence[int], offset: int = 0) -> TensorSpec:
        return dataclasses.replace(self, strides=tuple(strides), offset=offset)

    def __str__(self) -> str:
        text = f"{str(self.dtype).rpartition('.')[2]}{list(self.shape)}"
        if self.strides is not None:
            text += f" with strides {list(self.strides)}"
            if self.offset:
                text += f" from element {self.offset}"
        return text


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _nest(values: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return values[0]
    if len(shape) == 1:
        return values
    step = len(values) // shape[0]
    return [_nest(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


@dataclasses.dataclass(frozen=True)
class Sample:
    """The arguments of a call by name, with tensors as specs. Missing ones are not passed."""

    values: dict[str, Any]

    def replace(self, name: str, value: Any) -> Sample:
        return Sample({**self.values, name: value})

    def without(self, name: str) -> Sample:
        return Sample({k: v for k, v in self.values.items() if k != name})

    def make(self, device: str = "cpu") -> dict[str, Any]:
        return {name: _made(value, device) for name, value in self.values.items()}

    def specs(self) -> Iterator[tuple[str, TensorSpec]]:
        """All tensor specs, each with the name of the argument that contains it."""
        for name, value in self.values.items():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, TensorSpec):
                    yield name, item

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        parts = []
        for name, value in self.values.items():
            if isinstance(value, (list, tuple)) and any(isinstance(v, TensorSpec) for v in value):
                parts.append(f"{name}=[{', '.join(map(str, value))}]")
            else:
                parts.append(f"{name}={value if isinstance(value, TensorSpec) else repr(value)}")
        return ", ".join(parts)


def _made(value: Any, device: str) -> Any:
    if isinstance(value, TensorSpec):
        return value.make(device)
    if isinstance(value, (list, tuple)):
        return [_made(item, device) for item in value]
    if isinstance(value, lamella.device) and device != "cpu":
        return lamella.device(device)
    return value


def sample_of(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> Sample:
    """The sample of a call with the given arguments."""
    positional = [a.name for a in op.arguments if not a.kwarg_only]
    if len(args) > len(positional):
        raise TypeError(
            f"opcheck: expected at most {len(positional)} positional arguments "
            f"of {op.full_name}, got {len(args)}"
        )
    values = {**dict(zip(positional, args)), **kwargs}

    def spec(value: Any) -> Any:
        if isinstance(value, lamella.Tensor):
            return TensorSpec.of(value)
        if isinstance(value, (list, tuple)):
            return [spec(item) for item in value]
        return value

    return Sample({name: spec(value) for name, value in values.items()})


def arguments_of(op: Operator, made: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The args and kwargs of a call with these values by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    skipped = False
    for argument in op.arguments:
        if argument.name not in made:
            skipped = True
        elif argument.kwarg_only or skipped:
            kwargs[argument.name] = made[argument.name]
        else:
            args.append(made[argument.name])
    return args, kwargs


# ---- Made from the schema ----------------------------------------------------------------------

# The shapes of the first tensor, the second, ...; the last one also applies to the rest. 16 float32
# elements fill a block of memory completely.
_SAME_SHAPES = [((4, 4),), ((16,),), ((3, 5),), ((2, 3, 4),), ((),), ((0, 4),)]
_OTHER_SHAPES = [
    ((3, 4), (4, 5), (5,)),
    ((3, 4), (4,)),
    ((4, 4), (4, 4), (3,)),
    ((2, 3, 4), (2, 4, 5)),
    ((4,), (3, 4)),
    ((2, 3, 8), (4, 3, 3), (4,)),
    ((2, 3, 8, 8), (4, 3, 3, 3), (4,)),
    ((2, 3, 4, 4), (3,)),
    ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,)),
]
_FIRST_DTYPES = [lamella.float32, lamella.float64, lamella.int64, lamella.bool, lamella.complex64]
_FURTHER_DTYPES = [lamella.float16, lamella.bfloat16, lamella.int32, lamella.uint8]


class Maker:
    """Makes samples for one operator. accepts(sample): whether the operator takes it."""

    def __init__(self, op: Operator, seed: int, accepts: Any) -> None:
        self.op = op
        self.seed = seed
        self.accepts = accepts
        self.random = random.Random(f"{seed} {op.full_name}")

    def tensor(self, shape: Sequence[int], dtype: lamella.dtype) -> TensorSpec:
        count = 1
        for size in shape:
            count *= size
        return TensorSpec(tuple(shape), dtype, tuple(self._value(dtype) for _ in range(count)))

    def _value(self, dtype: lamella.dtype) -> Any:
        # Avoids values near 0 and 1, where many functions are not smooth or not defined.
        number = self.random.choice((-1, 1)) * self.random.uniform(0.15, 0.85)
        if dtype in _FLOATS:
            return number
        if dtype in _COMPLEX:
            return complex(number, self.random.uniform(-0.9, 0.9))
        if dtype == lamella.bool:
            return number > 0
        return self.random.randrange(0, 3)

    def scalars(self, argument: Argument) -> list[Any]:
        """Values for an argument that is not a tensor, the likeliest first."""
        length = argument.length
        base = argument.base
        if argument.is_list:
            counts = [length] if length else [1, 2, 3]
            numbers: dict[str, list[Any]] = {
                "int": [1, 0, 2],
                "SymInt": [1, 0, 2],
                "float": [1.0, 2.0],
                "bool": [True, False],
                "Scalar": [2, 0.5],
                "str": ["ij"],
            }
            return [[v] * n for n in counts for v in numbers.get(base, ())] + (
                [] if length else [[]]
            )
        values: dict[str, list[Any]] = {
            "int": [1, 0, 2, -1],
            "SymInt": [1, 0, 2, -1],
            "float": [0.5, 2.0, 1.0],
            "bool": [True, False],
            "Scalar": [2, 0.5],
            "str": ["mean", "floor", "reflect", "sum", "none", "ij", ""],
            "ScalarType": [lamella.float32, lamella.float64, lamella.int64],
            "Layout": [lamella.strided],
            "Device": [lamella.device("cpu")],
            "MemoryFormat": [lamella.contiguous_format],
        }
        return values.get(base, [])

    def first(self) -> Sample | None:
        """A sample that the operator takes, or None if none was found."""
        has_defaults = [a for a in self.op.arguments if a.default is not None]
        for spelled_out in (False, True) if has_defaults else (False,):
            scalars = [
                a
                for a in self.op.arguments
                if not a.is_tensor and (a.default is None or spelled_out)
            ]
            choices = [
                ([None] if a.is_optional else []) + self.scalars(a)[:3] or [None] for a in scalars
            ]
            for shapes in _SAME_SHAPES[:2] + _OTHER_SHAPES + _SAME_SHAPES[3:]:
                for dtypes in ((lamella.float32,), *_dtype_plans()):
                    for values in itertools.islice(itertools.product(*choices), 12):
                        sample = self._sample(shapes, dtypes)
                        for argument, value in zip(scalars, values):
                            sample = sample.replace(argument.name, value)
                        if self.accepts(sample):
                            return sample
                        for argument in has_defaults:
                            if argument.is_tensor:
                                sample = sample.without(argument.name)
                        if any(a.is_tensor for a in has_defaults) and self.accepts(sample):
                            return sample
        return None

    def _sample(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[lamella.dtype]) -> Sample:
        values: dict[str, Any] = {}
        place = 0
        for argument in self.op.arguments:
            if not argument.is_tensor:
                continue
            shape = shapes[min(place, len(shapes) - 1)]
            dtype = dtypes[min(place, len(dtypes) - 1)]
            place += 1
            if argument.is_out:
                # An empty tensor may be resized to the shape of the result.
                values[argument.name] = TensorSpec((0,), dtypes[0], ())
            elif argument.is_list:
                count = argument.length or 2
                values[argument.name] = [self.tensor(shape, dtype) for _ in range(count)]
            else:
                values[argument.name] = self.tensor(shape, dtype)
        return Sample(values)

    def more(self, base: Sample) -> Iterator[Sample]:
        """Variations of an accepted sample: other shapes, dtypes and values of arguments."""
        specs = [spec for name, spec in base.specs() if not self._argument(name).is_out]
        if specs and len({spec.shape for spec in specs}) == 1:
            for shapes in _SAME_SHAPES:
                if shapes[0] != specs[0].shape:
                    yield self._again(base, lambda s, new=shapes[0]: self.tensor(new, s.dtype))
        if specs and len({spec.dtype for spec in specs}) == 1:
            for dtype in _FIRST_DTYPES + _FURTHER_DTYPES:
                if dtype != specs[0].dtype:
                    yield self._again(
                        base,
                        lambda s, new=dtype: self.tensor(s.shape, new),
                        lambda s, new=dtype: dataclasses.replace(s, dtype=new),
                    )
        for argument in self.op.arguments:
            if argument.default is None:
                if not argument.is_tensor:
                    for value in self.scalars(argument):
                        if value != base.values.get(argument.name):
                            yield base.replace(argument.name, value)
                elif argument.is_optional:
                    yield base.replace(argument.name, None)
                continue
            if argument.is_tensor:
                yield base.without(argument.name)
            for value in self.scalars(argument)[:3]:
                yield base.replace(argument.name, value)

    def as_dtype(self, base: Sample, dtype: lamella.dtype) -> Sample:
        """The sample with its floating-point tensors converted to another dtype."""
        return self._again(
            base,
            lambda s: self.tensor(s.shape, dtype) if s.is_floating else s,
            lambda s: dataclasses.replace(s, dtype=dtype) if s.is_floating else s,
        )

    def enlarged(self, base: Sample, times: int) -> Sample:
        """The sample with the first dimension of each tensor `times` as large."""
        return self._again(
            base,
            lambda s: self.tensor((s.shape[0] * times, *s.shape[1:]), s.dtype) if s.shape else s,
            lambda s: s,
        )

    def _argument(self, name: str) -> Argument:
        return next(a for a in self.op.arguments if a.name == name)

    def _again(self, base: Sample, change: Any, change_out: Any = None) -> Sample:
        def changed(name: str, value: Any) -> Any:
            if isinstance(value, TensorSpec):
                if self._argument(name).is_out:
                    return change_out(value) if change_out else value
                return change(value)
            if isinstance(value, list):
                return [changed(name, item) for item in value]
            return value

        return Sample({name: changed(name, value) for name, value in base.values.items()})


def _dtype_plans() -> list[tuple[lamella.dtype, ...]]:
    integers = [lamella.int64, lamella.bool, lamella.int32]
    plans: list[tuple[lamella.dtype, ...]] = [(d,) for d in _FIRST_DTYPES[1:]]
    plans += [(lamella.float32, d) for d in integers]
    plans += [(lamella.float32, lamella.float32, lamella.int64), (lamella.int64, lamella.float32)]
    return plans


def layouts(op: Operator, sample: Sample) -> Iterator[tuple[str, Sample]]:
    """The sample with other layouts of one tensor at a time: with transposed strides, with gaps
    between elements, and with a storage offset."""
    for argument in op.arguments:
        spec = sample.values.get(argument.name)
        if not isinstance(spec, TensorSpec) or argument.is_out or not spec.values:
            continue
        if spec.strides is not None or not spec.shape:
            continue
        strides = contiguous_strides(spec.shape)
        if sum(size > 1 for size in spec.shape) > 1:
            turned = tuple(reversed(contiguous_strides(spec.shape[::-1])))
            yield argument.name, sample.replace(argument.name, spec.laid_out(turned))
        spread = spec.laid_out([2 * s for s in strides])
        yield argument.name, sample.replace(argument.name, spread)
        yield argument.name, sample.replace(argument.name, spec.laid_out(strides, offset=5))
