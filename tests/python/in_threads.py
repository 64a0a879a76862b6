"""Calls from several threads at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(work: Callable[..., Any], times: int = 4, over: Iterable[Any] = ()) -> None:
    """Calls work() in so many threads, or work(x) in one thread for each x of `over`; what a call
    raises is raised here."""
    given = [(x,) for x in over] or [()] * times
    with ThreadPoolExecutor(len(given)) as pool:
        for call in [pool.submit(work, *arguments) for arguments in given]:
            call.result()
