"""lamella backend-check: checks the library of a backend; see lamella.conformance."""

from __future__ import annotations

from typing import Any

from lamella.conformance._command import DESCRIPTION, add_arguments, run


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "backend-check",
        help="find what is missing or wrong in a backend's library",
        description=DESCRIPTION,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)
