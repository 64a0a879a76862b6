"""lamella.profiler: the time spent in operators, in compiling programs, and in their steps."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from lamella import _C, _missing

__all__ = ["Average", "Event", "key_averages", "profile", "record_function"]


class Event(NamedTuple):
    """One call of an operator, pass, step or range. kind: "operator", "compile", "run" or "range".
    arguments: dtypes and sizes of an operator's tensors. Times are in nanoseconds; start_ns counts
    from the start of the profile, own_ns excludes nested events."""

    name: str
    kind: str
    arguments: str
    start_ns: int
    duration_ns: int
    own_ns: int
    thread: int


@dataclasses.dataclass
class Average:
    """The sum of all events of one name; times in microseconds, with PyTorch's names."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count


_SORTS = {
    "cpu_time_total": "total",
    "self_cpu_time_total": "own",
    "cpu_time": "mean",
    "count": "calls",
}


class profile:
    """Records what runs inside of `with lamella.profiler.profile() as p:`.

    It covers this thread and threads started inside. p.table() is a table by operator, p.save()
    writes a file for ui.perfetto.dev, p.events() lists the events. Only one profile can run at a
    time; there is no overhead while none runs.
    """

    def __init__(self) -> None:
        self._profile: Any = None

    def start(self) -> None:
        _C._profiler_start()

    def stop(self) -> None:
        self._profile = _C._profiler_stop()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _stopped(self) -> Any:
        if self._profile is None:
            raise RuntimeError("profile: expected the profile to have ended")
        return self._profile

    def table(self, sort_by: str = "own", row_limit: int = -1) -> str:
        """A line for each name: calls, total time, own time (without nested events), mean, share.

        sort_by: "own", "total", "mean" or "calls", or PyTorch's name for one of them."""
        sort_by = _SORTS.get(sort_by, sort_by)
        if sort_by not in _SORTS.values():
            raise ValueError(
                f"table: expected 'sort_by' to be own, total, mean or calls, got {sort_by!r}"
            )
        return _C._profile_table(self._stopped(), sort_by, row_limit)

    def _repr_html_(self) -> str | None:
        from lamella._notebook import of_profile

        return of_profile(self) if self._profile is not None else None

    def events(self) -> list[Event]:
        """All events, in the order of their start times."""
        return [Event(*row) for row in _C._profile_events(self._stopped())]

    def key_averages(self) -> key_averages:
        """The sums of events by name, with PyTorch's column names."""
        return key_averages(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace in Chrome's format, which ui.perfetto.dev shows."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_C._profile_trace(self._stopped()))

    export_chrome_trace = save


class key_averages(list[Average]):
    """The list of averages that profile.key_averages() returns, with table()."""

    def __init__(self, of: profile) -> None:
        rows: dict[str, list[float]] = {}
        for event in of.events():
            row = rows.setdefault(event.name, [0, 0, 0])
            row[0] += 1
            row[1] += event.duration_ns * 1e-3
            row[2] += event.own_ns * 1e-3
        super().__init__(
            Average(name, int(calls), total, own) for name, (calls, total, own) in rows.items()
        )
        self._profile = of

    def table(self, sort_by: str = "self_cpu_time_total", row_limit: int = 100) -> str:
        return self._profile.table(sort_by, row_limit)


class record_function:
    """A named range of a profile: a context, or a decorator of a function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        _C._profiler_enter(self.name)
        return self

    def __exit__(self, *error: object) -> None:
        _C._profiler_leave()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped


_missing.suggest(__name__)
