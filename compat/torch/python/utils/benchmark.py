"""torch.utils.benchmark: measures the run time of statements."""

from __future__ import annotations

import statistics
import time
import timeit
from typing import Any

import lamella


class Measurement:
    """The measured times of a statement, in seconds for each run."""

    def __init__(self, number_per_run: int, raw_times: list[float], label: str | None) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.label = label

    @property
    def times(self) -> list[float]:
        """The time of one run, for each round."""
        return [total / self.number_per_run for total in self.raw_times]

    mean = property(lambda self: statistics.fmean(self.times), doc="The mean of the times.")
    median = property(lambda self: statistics.median(self.times), doc="The median of the times.")

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        if len(self.times) < 2:
            return 0.0
        quarters = statistics.quantiles(self.times, n=4)
        return quarters[2] - quarters[0]

    def __repr__(self) -> str:
        rounds = f"{len(self.times)} rounds of {self.number_per_run}"
        return f"<Measurement {self.label or ''} median {self.median * 1e6:.3f} us, {rounds}>"


class Timer:
    """Measures a statement; `num_threads` threads run its kernels."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Any = time.perf_counter,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = None,
    ) -> None:
        if language not in (None, "python", "py"):
            raise ValueError(f"Timer: expected statements of Python, got {language!r}")
        names = {"torch": lamella, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._threads = num_threads
        self._label = label or description or sub_label or stmt

    def _run(self, number: int) -> float:
        before = lamella.get_num_threads()
        lamella.set_num_threads(self._threads)
        try:
            return self._timer.timeit(number)
        finally:
            lamella.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Measures one round of `number` runs, after a warm-up of a hundredth of them."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._label)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measures rounds for `min_run_time` seconds, each at least a thousandth of that."""
        number = 1
        while self._run(number) < min_run_time / 1000 and number < 1 << 30:
            number *= 10
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._label)

    adaptive_autorange = blocked_autorange
