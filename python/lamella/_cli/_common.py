"""What the parts of the command share."""

from __future__ import annotations


class CommandError(Exception):
    """What the command cannot do, in one sentence for its user."""


def load(path: str) -> None:
    """Loads a library of operators that the user named."""
    import lamella

    try:
        lamella.load_library(path)
    except (OSError, RuntimeError) as error:
        raise CommandError(str(error)) from None
