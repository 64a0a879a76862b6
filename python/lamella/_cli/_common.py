"""Shared code of the subcommands."""

from __future__ import annotations

import json
from typing import Any


class CommandError(Exception):
    """An error that the command reports as one line; the exit status is then 2."""


def load(path: str) -> None:
    """Loads a library of operators; CommandError if that fails."""
    import lamella

    try:
        lamella.load_library(path)
    except (OSError, RuntimeError) as error:
        raise CommandError(str(error)) from None


def write_json(facts: Any, path: str = "-") -> None:
    """Prints facts as JSON, or writes them to a file; CommandError if that fails."""
    # JSON has no complex numbers.
    text = json.dumps(facts, indent=2, default=lambda number: [number.real, number.imag])
    if path == "-":
        print(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
