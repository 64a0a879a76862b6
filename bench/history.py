"""Figures by commit and machine, so that a row that gets slower is seen.

bench/history has one file a machine: a JSON object a line with the commit, the day, the topic, and
for each row Lamella's time in microseconds and the ratio to the best peer of the same run. Times on
shared machines change from day to day by more than most changes of the code; ratios do so less, and
are what is compared.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "history"
SLOWER = 1.25  # times the ratio of the run before


def machine() -> str:
    """The processor's name, family and model, its widest vectors, and the number of cores."""
    info: dict[str, str] = {}
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            info.setdefault(name.strip(), value.strip())
    flags = info.get("flags", info.get("Features", "")).split()
    vectors = next((v for v in ("avx512f", "avx2", "asimd") if v in flags), "scalar")
    name = info.get("model name", "")
    family, model = info.get("cpu family", ""), info.get("model", "")
    kind = f"family {family} model {model}" if family else ""
    return ", ".join(filter(None, [name, kind, vectors, f"{os.cpu_count()} cores"]))


def commit() -> str:
    command = ["git", "-C", str(FOLDER.parent), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def slower(rows: dict[str, list[float]], before: dict[str, list[float]]) -> list[str]:
    """The rows whose ratio to the best peer grew, those that grew most first."""
    grown = {r: rows[r][1] / before[r][1] for r in rows if r in before and before[r][1] > 0}
    named = sorted((r for r in grown if grown[r] > SLOWER), key=lambda r: -grown[r])
    return [f"{row}: {before[row][1]:.2f} -> {rows[row][1]:.2f} x best peer" for row in named]


def keep(topic: str, entries: list[dict[str, Any]], folder: Path = FOLDER) -> None:
    """Appends a run, and prints the rows that are slower than in this machine's run before."""
    rows = {
        entry["row"]: [round(entry["us"]["lamella"], 3), round(entry["ratio"], 3)]
        for entry in entries
        if "ratio" in entry
    }
    file = folder / (re.sub(r"\W+", "-", machine()) + ".jsonl")
    earlier = []
    if file.exists():
        runs = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        earlier = [run for run in runs if run["topic"] == topic]
    if earlier:
        named = slower(rows, earlier[-1]["rows"])
        at = earlier[-1]["commit"]
        print(f"\nrows more than {SLOWER} x slower than at {at}: {len(named)}")
        for line in named[:40]:
            print("  " + line)
    run = {"commit": commit(), "date": str(datetime.date.today()), "topic": topic, "rows": rows}
    folder.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(run, separators=(",", ":")) + "\n")
