"""torch.utils.data.dataset: data sets by index, and iterable ones."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import lamella
from lamella import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A data set by index: subclasses define __getitem__(), and __len__() if a sampler needs it."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}: expected the class to have __getitem__")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A data set with a fixed order: subclasses define __iter__()."""

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


def _examples(dataset: Any, indices: list[int]) -> list[Any]:
    """The examples at some indices, by one call of __getitems__() if the data set has it."""
    many = getattr(dataset, "__getitems__", None)
    if many is None:
        return [dataset[i] for i in indices]
    found: list[Any] = many(indices)
    if len(found) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__: expected {len(indices)} examples, got "
            f"{len(found)}"
        )
    return found


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors whose first dimensions have the same size."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"TensorDataset: expected tensors of the same first size, got {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Combines data sets: examples are tuples, or dictionaries, with one part from each data
    set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: expected data sets either by place or by name, got "
                + ("both" if args else "none")
            )
        self.datasets: Any = args or kwargs
        sizes = [len(one) for one in (args or kwargs.values())]
        if len(set(sizes)) > 1:
            raise ValueError(f"StackDataset: expected data sets of the same size, got {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_examples(one, indices) for one in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(_examples(one, indices) for one in self.datasets)))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Concatenates data sets."""

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: expected at least one data set")
        if any(isinstance(one, IterableDataset) for one in self.datasets):
            raise AssertionError("ConcatDataset: expected no IterableDataset; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Any) -> list[int]:
        """The end index of each data set."""
        ends, end = [], 0
        for one in sequence:
            end += len(one)
            ends.append(end)
        return ends

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if not -size <= index < size:
            # The IndexError ends iteration over the data set.
            raise IndexError(
                f"ConcatDataset: expected an index within {size} examples, got {index}"
            )
        index %= size
        place = bisect.bisect_right(self.cumulative_sizes, index)
        first = self.cumulative_sizes[place - 1] if place else 0
        return self.datasets[place][index - first]


class ChainDataset(IterableDataset[T_co]):
    """Concatenates iterable data sets."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for one in self.datasets:
            if not isinstance(one, IterableDataset):
                raise AssertionError(
                    f"ChainDataset: expected IterableDatasets, got {type(one).__name__}"
                )
            yield from one

    def __len__(self) -> int:
        sizes: list[int] = [len(one) for one in self.datasets]  # type: ignore[arg-type]
        return sum(sizes)


class Subset(Dataset[T_co]):
    """The examples of a data set at given indices."""

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[Any], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _examples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[Any]]:
    """Splits a data set randomly into disjoint parts.

    lengths: counts that add up to the size, or fractions that add up to 1; the remainder after
    rounding down is spread over the first parts.
    """
    size = len(dataset)  # type: ignore[arg-type]
    if sum(lengths) <= 1 and math.isclose(sum(lengths), 1):
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"random_split: expected fractions between 0 and 1, got {fraction} at {i}"
                )
        counts = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(f"random_split: part {i} has no examples", stacklevel=2)
    else:
        counts = list(lengths)  # type: ignore[arg-type]
    if sum(counts) != size:
        raise ValueError(
            f"random_split: expected lengths that add up to {size}, got a sum of {sum(counts)}"
        )
    order = lamella.randperm(size, generator=generator or lamella.default_generator).tolist()
    parts: list[Subset[Any]] = []
    begin = 0
    for count in counts:
        parts.append(Subset(dataset, order[begin : begin + count]))
        begin += count
    return parts
