"""Compile times of Lamella and jax.jit: nanoseconds of a function's first call minus the next one.

Usage: compile_time.py lamella|jax
Prints one JSON object a line, {"row": name, "ns": number}, medians. Lamella is measured twice:
compiling anew, and with the code cached on disk.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import compiled
from training import report

ROWS = {
    "x sigmoid(x) + b, 1,000": "a chain",
    "training step of the digits' MLP": "the digits' MLP step",
    "encoder, 1 x 32 tokens": "the encoder",
}
ROUNDS = 7


def report_first_calls(rows: Callable[[], Iterator[compiled.Row]], ending: str) -> None:
    # The first round loads what compiling needs, or fills the folder.
    times: dict[str, list[float]] = {}
    for _ in range(1 + ROUNDS):
        for name, call in rows():
            if name not in ROWS:
                continue
            stamps = [time.perf_counter()]
            for _ in range(2):
                call()
                stamps.append(time.perf_counter())
            first, second = (after - before for before, after in zip(stamps, stamps[1:]))
            times.setdefault(name, []).append(first - second)
    for name, seconds in times.items():
        report(f"compiling {ROWS[name]}{ending}", statistics.median(seconds[1:]) * 1e9)


def main() -> None:
    if sys.argv[1] == "jax":
        report_first_calls(compiled.jax_rows, "")
        return
    os.environ["LAMELLA_CACHE"] = "off"
    report_first_calls(compiled.lamella_rows, "")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAMELLA_CACHE"] = os.path.join(folder, "code")
        report_first_calls(compiled.lamella_rows, ", from the disk")


if __name__ == "__main__":
    main()
