"""Prints which part of each room's lines ran, from what gcovr and coverage.py wrote into a folder."""

from __future__ import annotations

import json
import pathlib
import sys
from collections import Counter

import rooms


def main(folder: pathlib.Path) -> None:
    lines: Counter[str] = Counter()
    ran: Counter[str] = Counter()

    def add(path: str, all_lines: int, covered: int) -> None:
        room = rooms.room_of(path)
        place = room.folder if room is not None else path.partition("/")[0]
        lines[place] += all_lines
        ran[place] += covered

    for file in json.loads((folder / "cxx.json").read_text())["files"]:
        add(file["filename"], file["line_total"], file["line_covered"])
    python = folder / "python.json"
    if python.exists():
        for name, file in json.loads(python.read_text())["files"].items():
            path = "python/lamella/" + name.replace("\\", "/").rpartition("/lamella/")[2]
            summary = file["summary"]
            add(path, summary["num_statements"], summary["covered_lines"])
    print(f"{'room':32} {'lines':>7} {'ran':>7}")
    for place in sorted(lines):
        print(f"{place:32} {lines[place]:7} {100 * ran[place] / max(lines[place], 1):6.1f}%")
    total = sum(lines.values())
    print(f"{'all':32} {total:7} {100 * sum(ran.values()) / max(total, 1):6.1f}%")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
