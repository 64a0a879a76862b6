"""The arguments of the command, its report and its exit status."""

from __future__ import annotations

import argparse
import json
from typing import Any

PARTS = ("streams", "events", "generator", "autocast", "vmap")

DESCRIPTION = """Loads the library of a backend and checks its memory, devices, copies, factories,
streams, events, views and every operator against the CPU, each in a process of its own. Prints a
line for each thing that is missing or wrong. The exit status is 0 where nothing is, 1 where
something was found, 2 where the library cannot be loaded."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("library", metavar="LIBRARY.so")
    parser.add_argument(
        "--device",
        required=True,
        metavar="NAME",
        help="what the backend calls its devices, as in lamella.device(NAME)",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=PARTS,
        help="a part that the backend does without; again for more",
    )
    parser.add_argument("--only", metavar="WORD", help="only checks whose name has this word")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON, '-': print it")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long one check may take (default: 60)",
    )
    parser.add_argument("--verbose", action="store_true", help="a line for each check that passed")


def run(options: Any) -> int:
    from lamella.conformance._runner import check_backend

    quiet = options.json == "-"

    def show(finding: Any) -> None:
        if not quiet and (finding.status != "ok" or options.verbose):
            print(finding.line(), flush=True)

    report = check_backend(
        options.library,
        options.device,
        without=options.without,
        only=options.only,
        timeout=options.timeout,
        show=show,
    )
    if quiet:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print(report.summary())
    if options.json and not quiet:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report.as_json(), file, indent=2)
            file.write("\n")
    if not report.loaded:
        return 2
    return 1 if report.failures() else 0
