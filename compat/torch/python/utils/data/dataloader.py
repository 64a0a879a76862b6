"""torch.utils.data.dataloader: batches of a data set, loaded in this process or by workers."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import queue
import warnings
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

import lamella
from lamella.compat.utils.data._utils import worker as workers
from lamella.compat.utils.data._utils.collate import default_collate as default_collate
from lamella.compat.utils.data._utils.collate import default_convert as default_convert
from lamella.compat.utils.data._utils.worker import get_worker_info as get_worker_info
from lamella.compat.utils.data.dataset import IterableDataset
from lamella.compat.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

T_co = TypeVar("T_co", covariant=True)

_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]


class _DatasetKind:
    """The two kinds of data sets: by index, and iterable."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> workers.Fetcher:
        """Creates the fetcher that reads the examples of a batch."""
        return workers.Fetcher(dataset, kind == 1, auto_collation, collate_fn, drop_last)


# Attributes that are fixed after construction, because iterators depend on them.
_SETTLED = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)

# The interval, in seconds, at which a waiting process checks that the workers are alive.
_LOOK = 5.0


class _Endless(Sampler[Any]):
    """The sampler for an iterable data set: its entries only count examples."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Batches of a data set, in the order of a sampler.

    dataset: by index or iterable. batch_size: None gives single examples. num_workers: the number
    of processes that load examples; 0 loads in this process. collate_fn: combines a list of
    examples into a batch. generator: random numbers for the order and for the workers' seeds; for
    equal seeds both equal PyTorch's. pin_memory is ignored: there is no device to copy to.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        def expect(right: bool, expected: str) -> None:
            if not right:
                raise ValueError(f"DataLoader: expected {expected}")

        expect(num_workers >= 0, f"'num_workers' not to be negative, got {num_workers}")
        expect(timeout >= 0, f"'timeout' not to be negative, got {timeout}")
        expect(num_workers > 0 or prefetch_factor is None, "'prefetch_factor' only with workers")
        expect(
            prefetch_factor is None or prefetch_factor > 0,
            f"'prefetch_factor' to be positive, got {prefetch_factor}",
        )
        expect(num_workers > 0 or not persistent_workers, "'persistent_workers' only with workers")
        expect(
            num_workers > 0 or multiprocessing_context is None,
            "'multiprocessing_context' only with workers",
        )
        if isinstance(multiprocessing_context, str):
            methods = multiprocessing.get_all_start_methods()
            expect(
                multiprocessing_context in methods,
                f"'multiprocessing_context' to be one of {methods}, got "
                f"{multiprocessing_context!r}",
            )
        elif not isinstance(multiprocessing_context, (BaseContext, type(None))):
            raise TypeError(
                "DataLoader: expected 'multiprocessing_context' to be a context or its name, got "
                + type(multiprocessing_context).__name__
            )
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            expect(not shuffle, f"no 'shuffle' for an IterableDataset, got {shuffle}")
            expect(sampler is None, "no 'sampler' for an IterableDataset")
            expect(batch_sampler is None, "no 'batch_sampler' for an IterableDataset")
        expect(sampler is None or not shuffle, "either 'sampler' or 'shuffle', got both")
        if batch_sampler is not None:
            expect(
                batch_size == 1 and not shuffle and sampler is None and not drop_last,
                "'batch_sampler' without batch_size, shuffle, sampler and drop_last",
            )
            batch_size, drop_last = None, False
        elif batch_size is None:
            expect(not drop_last, "no 'drop_last' without a batch_size")

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._iterable = iterable
        if sampler is None:
            if iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self._kept: _MultiProcessingDataLoaderIter | None = None
        # The result of len() of an iterable data set, shared with the iterators.
        self._announced: list[int] = []

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTLED and "_kept" in self.__dict__:
            raise ValueError(
                f"DataLoader: expected '{name}' to stay as it was made, got another one"
            )
        super().__setattr__(name, value)

    _auto_collation = property(lambda self: self.batch_sampler is not None)

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._kept is None:
            self._kept = _MultiProcessingDataLoaderIter(self)
        else:
            self._kept.restart(self)
        return self._kept

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is not None:
            whole, rest = divmod(count, self.batch_size)
            count = whole + bool(rest and not self.drop_last)
        self._announced[:] = [count]
        return count

    def check_worker_number_rationality(self) -> None:
        """Does nothing."""


def _fetcher(loader: DataLoader[Any]) -> Callable[[], workers.Fetcher]:
    return functools.partial(
        workers.Fetcher,
        loader.dataset,
        loader._iterable,
        loader._auto_collation,
        loader.collate_fn,
        loader.drop_last,
    )


class _BaseDataLoaderIter:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self._announced, self._given = loader._announced, 0
        self._indices = iter(loader._index_sampler)
        self._count = len(loader) if not loader._iterable else -1
        # Drawn with and without workers, so that the random numbers after it are the same.
        self._base_seed = int(
            lamella.empty((), dtype=lamella.int64).random_(generator=loader.generator).item()
        )

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        result = self._next_batch()
        self._given += 1
        if self._announced and self._given > self._announced[0]:
            warnings.warn(
                f"DataLoader: expected {self._announced[0]} batches, as len() said of the data "
                f"set, got {self._given}; with workers, get_worker_info() tells each its share",
                stacklevel=2,
            )
        return result

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        if self._count < 0:
            raise TypeError("DataLoader: an IterableDataset's iterator has no length")
        return self._count


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout:
            raise ValueError(
                f"DataLoader: expected 'timeout' only with workers, got {loader.timeout}"
            )
        self._fetch = _fetcher(loader)()

    def _next_batch(self) -> Any:
        return self._fetch(next(self._indices))


def _stop(owner: int, processes: list[Any], inboxes: list[Any], results: Any) -> None:
    """Ends the workers: asks them to stop, waits, then terminates those still running."""
    if os.getpid() != owner:  # in a fork of the process that owns them
        return
    for inbox in inboxes:
        inbox.put(None)
    for process in processes:
        process.join(timeout=_LOOK)
        if process.is_alive():
            process.terminate()
            process.join()
    for one in [*inboxes, results]:
        one.cancel_join_thread()
        one.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self._results = context.Queue()
        self._timeout = loader.timeout
        self._stays = loader.persistent_workers
        self._in_order = loader.in_order
        self._ahead = loader.prefetch_factor or 2
        self._inboxes, self._workers = [], []
        for number in range(loader.num_workers):
            inbox = context.Queue()
            # Lets the process exit without flushing the queue.
            inbox.cancel_join_thread()
            process = context.Process(
                target=workers.run,
                args=(
                    _fetcher(loader),
                    loader.dataset,
                    inbox,
                    self._results,
                    self._base_seed,
                    loader.worker_init_fn,
                    number,
                    loader.num_workers,
                ),
                daemon=True,
            )
            process.start()
            self._inboxes.append(inbox)
            self._workers.append(process)
        self.close = weakref.finalize(
            self, _stop, os.getpid(), self._workers, self._inboxes, self._results
        )
        self._begin()

    def restart(self, loader: DataLoader[Any]) -> None:
        """Starts a new epoch with the same workers; outstanding batches are discarded."""
        while self._asked > self._answers:
            self._receive()
        self._indices, self._given = iter(loader._index_sampler), 0
        for inbox in self._inboxes:
            inbox.put(workers.Reset())
        self._begin()

    def _begin(self) -> None:
        self._asked = self._answers = self._next = 0
        self._of: dict[int, int] = {}  # the worker of each requested batch
        self._ready: dict[int, Any] = {}
        self._working = [True] * len(self._workers)
        self._turn = 0
        for _ in range(self._ahead * len(self._workers)):
            self._ask()

    def _ask(self, worker: int | None = None) -> None:
        """Requests the next batch from a worker: the given one, or the next in turn."""
        if worker is None:
            for _ in self._workers:
                worker, self._turn = self._turn, (self._turn + 1) % len(self._workers)
                if self._working[worker]:
                    break
            else:
                return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        assert worker is not None
        self._of[self._asked] = worker
        self._inboxes[worker].put((self._asked, index))
        self._asked += 1

    def _receive(self) -> None:
        """Waits for one answer of a worker."""
        waited = 0.0
        while True:
            step = min(_LOOK, self._timeout - waited) if self._timeout else _LOOK
            try:
                packed = self._results.get(timeout=step)
                break
            except queue.Empty:
                waited += step
            dead = [p.pid for p in self._workers if not p.is_alive()]
            if dead:
                self.close()
                raise RuntimeError(
                    "DataLoader: expected the workers to run, but processes "
                    + ", ".join(map(str, dead))
                    + " ended"
                )
            if self._timeout and waited >= self._timeout:
                self.close()
                raise RuntimeError(f"DataLoader: no batch came in {self._timeout} seconds")
        number, worker, result = pickle.loads(packed)
        self._answers += 1
        self._ready[number] = result
        if isinstance(result, workers.Ended):
            self._working[worker] = False

    def _next_batch(self) -> Any:
        while True:
            if self._in_order:
                number = self._next
                if number >= self._asked:
                    break
            else:
                if self._answers == self._asked and not self._ready:
                    break
                number = next(iter(self._ready), -1)
            if number not in self._ready:
                self._receive()
                continue
            result = self._ready.pop(number)
            worker = self._of.pop(number)
            self._next += 1
            self._ask(None if self._in_order or not self._working[worker] else worker)
            if isinstance(result, workers.Ended):
                continue
            if isinstance(result, workers.Failure):
                result.reraise()
            return result
        if not self._stays:
            self.close()
        raise StopIteration
