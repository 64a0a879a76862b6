"""Profile events in PyTorch's format: times in microseconds, parents and children, averages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import lamella.profiler


class Interval(NamedTuple):
    """The start and end of an event, in microseconds since the start of its profile."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """The duration in microseconds."""
        return self.end - self.start


def _as_text(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class _Times:
    """The fields that single events and averages share. The only device is the CPU; memory and
    operation counts are not recorded."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    is_async = is_remote = is_legacy = is_user_annotation = False
    node_id = -1
    sequence_nr = -1
    flops = cpu_memory_usage = self_cpu_memory_usage = 0
    device_memory_usage = self_device_memory_usage = 0
    device_time = device_time_total = self_device_time_total = 0.0
    device_type = "cpu"

    @property
    def cpu_time(self) -> float:
        """The mean time of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_str") and not name.startswith("_"):
            return _as_text(getattr(self, name[:-4]))
        raise AttributeError(f"{type(self).__name__}: expected a time or a count, got {name!r}")


class FunctionEvent(_Times):
    """One call. `name` is the operator's name without the overload, `overload_name` has that."""

    count = 1
    scope = 0

    def __init__(self, index: int, event: lamella.profiler.Event) -> None:
        start = event.start_ns * 1e-3
        self.id = index
        self.name, self.overload_name = event.name, ""
        if event.kind == "operator":
            self.name, _, self.overload_name = event.name.partition(".")
        self.is_user_annotation = event.kind == "range"
        self.thread = self.fwd_thread = event.thread
        self.time_range = Interval(start, start + event.duration_ns * 1e-3)
        self.cpu_time_total = event.duration_ns * 1e-3
        self.self_cpu_time_total = event.own_ns * 1e-3
        sizes = re.findall(r"\[([^\]]*)\]", event.arguments)
        self.input_shapes = [[int(n) for n in size.split(",") if n.strip()] for size in sizes]
        self.stack: list[str] = []
        self.kernels: list[Any] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    key = property(lambda self: self.name, doc="The key by which averages group events.")

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """The sum over several events with one key."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] = []
        self.cpu_children: list[FunctionEvent] = []

    def add(self, event: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event. The first event sets the key if there is none."""
        if self.key is None:
            self.key = event.key
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


def _own(event: Any) -> float:
    return event.self_cpu_time_total


class EventList(list[Any]):
    """A list of events, or of their averages, that prints as a table."""

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all events, without counting nested time twice."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any
    ) -> EventList:
        """An average for each name, or for each name and shapes."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            average = found.setdefault((event.key, shapes), FunctionEventAvg(event.key))
            average.input_shapes = event.input_shapes if group_by_input_shape else ""
            average.add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, with the name Total."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        **options: Any,
    ) -> str:
        """A table with one row for each event, largest first. sort_by: the name of a time or
        count."""
        rows = sorted(self, key=lambda e: getattr(e, sort_by), reverse=True) if sort_by else self
        whole = self.self_cpu_time_total or 1.0
        shown: list[tuple[str, Callable[[Any], str]]] = [
            ("Name", lambda e: str(e.key)[:max_name_column_width]),
            ("Self CPU %", lambda e: f"{100 * _own(e) / whole:.2f}%"),
            ("Self CPU", lambda e: e.self_cpu_time_total_str),
            ("CPU total %", lambda e: f"{100 * e.cpu_time_total / whole:.2f}%"),
            ("CPU total", lambda e: e.cpu_time_total_str),
            ("CPU time avg", lambda e: e.cpu_time_str),
            ("# of Calls", lambda e: str(e.count)),
        ]
        if any(event.input_shapes for event in self):
            shown.append(("Input Shapes", lambda e: str(e.input_shapes)))
        cells = [[title for title, _ in shown]]
        cells += [[cell(event) for _, cell in shown] for event in rows[:row_limit]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(shown))]
        line = "  ".join("-" * width for width in widths)
        texts = ["  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in cells]
        end = f"Self CPU time total: {_as_text(self.self_cpu_time_total)}\n"
        return "\n".join([line, texts[0], line, *texts[1:], line, end])

    __str__ = table


def events_of(events: Iterable[lamella.profiler.Event]) -> EventList:
    """Converts Lamella's events, which are sorted by their start, to PyTorch's."""
    made = EventList(FunctionEvent(i, event) for i, event in enumerate(events))
    open_on: dict[int, list[FunctionEvent]] = {}
    for event in made:
        around = open_on.setdefault(event.thread, [])
        while around and around[-1].time_range.end < event.time_range.end:
            around.pop()
        if around:
            event.cpu_parent = around[-1]
            around[-1].cpu_children.append(event)
        around.append(event)
    return made
