"""torch.utils.data.sampler: the order in which examples are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import lamella

T_co = TypeVar("T_co", covariant=True)


def _expect_count(what: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{what}: expected '{name}' to be a positive int, got {value!r}")


class Sampler(Generic[T_co]):
    """An order of indices: subclasses define __iter__()."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: expected the class to have __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 and so on."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A random permutation; with `replacement`, independent random indices.

    num_samples: the number of indices, by default the number of examples.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"RandomSampler: expected 'replacement' to be a bool, got {replacement!r}"
            )
        if num_samples is not None or hasattr(data_source, "__len__"):
            _expect_count("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = self.generator
        if generator is None:
            # Always one draw of the default generator, whatever the number of examples.
            generator = lamella.Generator()
            generator.manual_seed(int(lamella.empty((), dtype=lamella.int64).random_().item()))
        whole, rest = divmod(self.num_samples, 32 if self.replacement else max(size, 1))
        if self.replacement:
            for count in [32] * whole + [rest]:
                yield from lamella.randint(
                    high=size, size=(count,), dtype=lamella.int64, generator=generator
                ).tolist()
            return
        for _ in range(whole):
            yield from lamella.randperm(size, generator=generator).tolist()
        yield from lamella.randperm(size, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in lamella.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Random indices, with probabilities proportional to the weights."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        _expect_count("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"WeightedRandomSampler: expected 'replacement' to be a bool, got {replacement!r}"
            )
        self.weights = lamella.as_tensor(weights, dtype=lamella.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "WeightedRandomSampler: expected 'weights' to have one dimension, got a shape of "
                f"{list(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from lamella.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        ).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups another sampler's indices into lists of `batch_size`; the last may be shorter."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _expect_count("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: expected 'drop_last' to be a bool, got {drop_last!r}")
        self.sampler: Iterable[int] = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return (count if self.drop_last else count + self.batch_size - 1) // self.batch_size
