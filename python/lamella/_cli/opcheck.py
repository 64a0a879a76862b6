"""lamella opcheck: checks every operator of a library, as lamella.testing.opcheck does."""

from __future__ import annotations

import argparse
from typing import Any

from lamella._cli._common import CommandError, write_json


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "opcheck",
        help="find errors in the operators of a library",
        description="Makes inputs for each operator of a library from its schema, calls it in a "
        "separate process, and prints a line for each error. The exit status is 0 if there is "
        "none, else 1.",
    )
    parser.add_argument("library", metavar="LIBRARY.so")
    parser.add_argument("--namespace", metavar="NS", help="check exactly the operators of NS")
    parser.add_argument("--op", metavar="NAME", help="check only this operator")
    parser.add_argument(
        "--inputs",
        metavar="FILE.py",
        help="a file with a function inputs(name) that returns a list of (args, kwargs) for an "
        "operator, or None",
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; '-': print it")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of random inputs")
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="the time limit of one call (default: 30)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from lamella.testing._library import LibraryError, Report, check_library

    report = Report(options.library, [], [])
    quiet = options.json == "-"
    try:
        for name, findings in check_library(
            options.library,
            namespace=options.namespace,
            op=options.op,
            seed=options.seed,
            inputs=options.inputs,
            silence=options.timeout,
        ):
            report.operators.append(name)
            report.findings += findings
            for finding in findings if not quiet else ():
                print(finding.line(), flush=True)
    except LibraryError as error:
        raise CommandError(f"opcheck: {options.library}: {error}") from None
    if not quiet:
        count, found = len(report.operators), len(report.findings)
        print(f"{_number(count, 'operator')}, {_number(found, 'finding')}")
    if options.json:
        write_json(report.as_json(), options.json)
    return 1 if report.findings else 0


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"
