"""Prints which lines of each room ran: of C++ by the counters of a build folder, of
Python by python.json, which coverage.py wrote there."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import subprocess
import sys
from collections import defaultdict

import rooms


def counted(notes: pathlib.Path) -> dict[str, dict[int, bool]]:
    """Which lines of each file of the tree ran, of one object."""
    command = ["gcov", "--json-format", "--stdout", str(notes)]
    # Objects that were not run have no counters, of which gcov warns.
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, dict[int, bool]] = {}
    for report in text.splitlines():
        for file in json.loads(report)["files"]:
            path = file["file"].removeprefix(f"{rooms.ROOT}/")
            if path.startswith(("codegen/", "compat/", "lamella/", "python/")):
                lines = found.setdefault(path, {})
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
    return found


def main(folder: pathlib.Path) -> None:
    files: dict[str, dict[int, bool]] = defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for found in pool.map(counted, sorted(folder.rglob("*.gcno"))):
            for path, lines in found.items():
                for number, ran in lines.items():
                    files[path][number] = files[path].get(number, False) or ran
    python = folder / "python.json"
    for name, file in json.loads(python.read_text())["files"].items() if python.exists() else ():
        lines = files["python/lamella/" + name.rpartition("/lamella/")[2]]
        lines |= dict.fromkeys(file["missing_lines"], False)
        lines |= dict.fromkeys(file["executed_lines"], True)
    by_room: dict[str, list[bool]] = defaultdict(list)
    for path, lines in files.items():
        room = rooms.room_of(path)
        by_room[path.partition("/")[0] if room is None else room.folder] += lines.values()
    by_room["all"] = [ran for lines in files.values() for ran in lines.values()]
    print(f"{'room':32} {'lines':>7} {'ran':>7}")
    for place, every in by_room.items():
        print(f"{place:32} {len(every):7} {100 * sum(every) / max(len(every), 1):6.1f}%")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
