"""Shared code of the subcommands."""

from __future__ import annotations


class CommandError(Exception):
    """An error that the command reports as one line; the exit status is then 2."""


def load(path: str) -> None:
    """Loads a library of operators; CommandError if that fails."""
    import lamella

    try:
        lamella.load_library(path)
    except (OSError, RuntimeError) as error:
        raise CommandError(str(error)) from None
