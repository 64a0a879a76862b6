"""torch.futures: results that become available later, within one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value or an error that is set later."""

    def __init__(self, *, devices: Any = None) -> None:
        self._set = threading.Condition()
        self._done, self._value, self._error = False, None, None
        self._after: list[Callable[..., Any]] = []

    def done(self) -> bool:
        """True once a value or an error is set."""
        return self._done

    def wait(self) -> Any:
        """Waits for the value and returns it, or raises the error."""
        with self._set:
            self._set.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The value; raises the error, or a RuntimeError if nothing is set yet."""
        if not self._done:
            raise RuntimeError("value: expected a future that is done, got one that is not")
        if self._error is not None:
            raise self._error
        return self._value

    def _end(self, value: Any, error: Any) -> None:
        with self._set:
            if self._done:
                raise RuntimeError("set_result: expected a future without a value, got one with it")
            self._value, self._error, self._done = value, error, True
            self._set.notify_all()
        for callback in self._after:
            callback(self)

    def set_result(self, result: Any) -> None:
        """Sets the value; allowed once."""
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets the error that wait() raises."""
        self._end(None, result)

    def add_done_callback(self, callback: Callable[[Future[Any]], Any]) -> None:
        """Calls a function with this future once it is done, or immediately if it is."""
        with self._set:
            if not self._done:
                self._after.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """A future for the result of a function of this future."""
        made: Future[Any] = Future()

        def go_on(done: Future[Any]) -> None:
            try:
                made.set_result(callback(done))
            except Exception as error:
                made.set_exception(error)

        self.add_done_callback(go_on)
        return made


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future for the list of futures, done when all of them are."""
    made: Future[list[Future[Any]]] = Future()
    left, lock = [len(futures)], threading.Lock()

    def one_less(_: Any) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_less)
    if not futures:
        made.set_result([])
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Waits for all futures; returns their values."""
    return [future.wait() for future in futures]
