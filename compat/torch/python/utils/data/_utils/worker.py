"""torch.utils.data._utils.worker: the worker processes of a DataLoader."""

from __future__ import annotations

import os
import queue
import random
import traceback
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import lamella


@dataclass
class WorkerInfo:
    """The result of get_worker_info(): worker index and count, seed and data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo in a worker process; None in other processes."""
    return _info


class _Plain(str):
    """A message for KeyError, which shows its argument by repr(): this repr() keeps line breaks."""

    __repr__ = str.__str__


class Failure:
    """An exception on its way from a worker to the main process: its type and traceback text."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind = type(error)
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.where = where

    def reraise(self) -> None:
        """Raises the same type, with the worker's traceback as message."""
        text = f"DataLoader: {self.where} raised {self.kind.__name__}\n{self.text}"
        if issubclass(self.kind, KeyError):  # its message is shown by repr()
            text = _Plain(text)
        try:
            error = self.kind(text)
        except Exception:  # the type's constructor takes other arguments
            error = RuntimeError(text)
        raise error


class Ended:
    """The worker's iterable data set is exhausted."""


class Reset:
    """Starts a new epoch in a persistent worker; its random generators keep their state."""


class Fetcher:
    """Reads and collates the examples of a batch. StopIteration at an iterable data set's end."""

    def __init__(
        self, dataset: Any, iterable: bool, batches: bool, collate: Any, drop_last: bool
    ) -> None:
        self.dataset, self.batches, self.collate = dataset, batches, collate
        self.drop_last = drop_last
        self.examples = iter(dataset) if iterable else None
        self.ended = False

    def __call__(self, index: Any) -> Any:
        if self.examples is not None:
            return self.collate(self._next(index))
        if not self.batches:
            return self.collate(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        if many is not None:
            return self.collate(many(index))
        return self.collate([self.dataset[i] for i in index])

    def _next(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        assert self.examples is not None
        if not self.batches:
            return next(self.examples)
        examples: list[Any] = []
        for _ in index:
            try:
                examples.append(next(self.examples))
            except StopIteration:
                self.ended = True
                break
        if not examples or (self.drop_last and len(examples) < len(index)):
            raise StopIteration
        return examples


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """The four words that seed NumPy's generator in a worker."""
    import numpy

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed(worker: int, base: int) -> int:
    seed = base + worker
    random.seed(seed)
    lamella.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return seed
    numpy.random.seed(_generate_state(base, worker))
    return seed


def run(
    make_fetcher: Any,
    dataset: Any,
    indices: Any,
    results: Any,
    base_seed: int,
    init: Any,
    worker: int,
    count: int,
) -> None:
    """Reads (number, index) from a queue and writes pickled (number, worker, batch), until it reads
    None."""
    global _info
    parent = os.getppid()
    fetch: Any = None
    failure = None
    try:
        # One thread each, because the workers share the processor.
        lamella.set_num_threads(1)
        seed = _seed(worker, base_seed)
        _info = WorkerInfo(worker, count, seed, dataset)
        if init is not None:
            init(worker)
        fetch = make_fetcher()
    except Exception as error:
        failure = Failure(error, f"worker process {worker}")
    try:
        while True:
            try:
                task = indices.get(timeout=5)
            except queue.Empty:
                if os.getppid() != parent:
                    return
                continue
            if task is None:
                break
            if isinstance(task, Reset):
                fetch = make_fetcher()
                continue
            number, index = task
            results.put(_packed(number, worker, _result(fetch, index, failure, worker)))
            failure = None
    except KeyboardInterrupt:
        return


def _packed(number: int, worker: int, result: Any) -> bytes:
    """The pickled answer. If the result cannot be pickled, the answer is that error."""
    try:
        return bytes(ForkingPickler.dumps((number, worker, result)))
    except Exception as error:
        told = Failure(error, f"worker process {worker}")
        if isinstance(result, Failure):  # its type cannot be pickled
            told = result
        told.kind = RuntimeError
        return bytes(ForkingPickler.dumps((number, worker, told)))


def _result(fetch: Any, index: Any, failure: Failure | None, worker: int) -> Any:
    if failure is not None:
        return failure
    try:
        return fetch(index)
    except StopIteration as error:
        return Ended() if fetch.examples is not None else Failure(error, f"worker process {worker}")
    except Exception as error:
        return Failure(error, f"worker process {worker}")
