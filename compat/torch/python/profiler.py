"""torch.profiler: lamella.profiler with PyTorch's arguments."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import lamella.profiler
from lamella.compat._fallback import names_of
from lamella.compat._profile_events import EventList, FunctionEventAvg, events_of

__getattr__, __dir__ = names_of("profiler")


class ProfilerActivity(enum.Enum):
    """The activities to record: CPU calls; the others do not exist here."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What a profile does in one step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """{ProfilerActivity.CPU}."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from the step number to the action: a cycle of skipping, warming up and
    recording."""

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait != 0:
            step += wait
        cycle = wait + warmup + active
        if 0 < repeat <= step // cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """A callback that writes a profile's trace into a folder for TensorBoard."""

    def write(profile: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        profile.export_chrome_trace(
            os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json")
        )

    return write


class profile(lamella.profiler.profile):
    """Records what runs on the CPU, in all steps or in those of a schedule.

    `on_trace_ready(profile)` is called at the end of each cycle of the schedule, or of the profile.
    Shapes are always recorded; stacks, memory and operation counts are not.
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._schedule, self.on_trace_ready, self.step_num = schedule, on_trace_ready, 0
        self._runs = False

    def _action(self) -> ProfilerAction:
        if self._schedule is None:
            return ProfilerAction.RECORD
        return self._schedule(self.step_num)

    def _switch(self, on: bool) -> None:
        if on and not self._runs:
            super().start()
        elif not on and self._runs:
            super().stop()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._runs = on

    def start(self) -> None:
        self._switch(self._action() not in (ProfilerAction.NONE, ProfilerAction.WARMUP))

    def stop(self) -> None:
        self._switch(False)

    def events(self) -> EventList:
        """All calls, sorted by their start."""
        return events_of(super().events())

    def key_averages(  # type: ignore[override]
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any
    ) -> EventList:
        """An average for each name, or for each name and shapes."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def step(self) -> None:
        """Ends one step and begins the next."""
        if self._action() is ProfilerAction.RECORD_AND_SAVE:
            self._switch(False)
        self.step_num += 1
        self.start()


class OldProfile(profile):
    """torch.autograd.profiler.profile: its events are attributes. If disabled, it records nothing
    and `with` gives None."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        super().__init__()
        self.enabled, self.entered = enabled, False

    def __enter__(self) -> OldProfile | None:  # type: ignore[override]
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("profile: expected a profile to be entered once")
        self.entered = True
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            self.stop()

    function_events = property(lambda self: self.events(), doc="All calls, sorted by their start.")

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all calls, without counting nested time twice."""
        return self.events().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        """The sum over all calls."""
        return self.events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """A table with one row for each call."""
        return self.events().table(sort_by, row_limit, **options)

    def __str__(self) -> str:
        return self.table() if self._profile is not None else "<unfinished profile>"


def kineto_available() -> bool:
    """True: profiles can be recorded."""
    return True
