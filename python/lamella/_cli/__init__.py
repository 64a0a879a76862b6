"""The command `lamella`: one module for each of its parts, with add_parser() and run()."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 2 where it was called wrongly."""
    from lamella import __version__
    from lamella._cli import backend_check, compile, explain, hlo, new, opcheck, ops
    from lamella._cli._common import CommandError

    parser = argparse.ArgumentParser(
        prog="lamella",
        description="Questions about operators, new projects of operators, programs of HLO.",
    )
    parser.add_argument("--version", action="version", version=f"lamella {__version__}")
    parts = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (ops, explain, hlo, compile, opcheck, backend_check, new):
        module.add_parser(parts)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"lamella: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read has enough. Nothing may be written at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
