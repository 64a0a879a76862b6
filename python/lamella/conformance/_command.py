"""The command line of backend-check: arguments, printing of the report, exit status."""

from __future__ import annotations

import argparse
from typing import Any

from lamella._cli._common import write_json

PARTS = ("streams", "events", "generator", "autocast", "vmap")

DESCRIPTION = """Loads the library of a backend and checks its memory, devices, copies, factories,
streams, events, views and operators against the CPU. A check that crashes or hangs does not stop
the others. Prints a line for each part that is missing or wrong. The exit status is 0 if there is
none, 1 if there are some, 2 if the library cannot be loaded."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("library", metavar="LIBRARY.so")
    parser.add_argument(
        "--device",
        required=True,
        metavar="NAME",
        help="the device type of the backend, as in lamella.device(NAME)",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=PARTS,
        help="an optional part that the backend does not have; may be repeated",
    )
    parser.add_argument("--only", metavar="WORD", help="run checks whose name contains WORD")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON, '-': print it")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="the time limit of one check (default: 60)",
    )
    parser.add_argument("--verbose", action="store_true", help="print passed checks, too")


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
    if not quiet:
        print(report.summary())
    if options.json:
        write_json(report.as_json(), options.json)
    if not report.loaded:
        return 2
    return 1 if report.failures() else 0
