"""The command `lamella`: one module for each of its subcommands, with add_parser()."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0 for success, 1 if a run fails or a check or
    comparison finds something, 2 for wrong usage and for files and programs that cannot be read,
    compiled or written."""
    from lamella import __version__
    from lamella._cli import (
        backend_check,
        compile,
        completion,
        explain,
        hlo,
        info,
        new,
        opcheck,
        ops,
    )
    from lamella._cli._common import CommandError

    parser = argparse.ArgumentParser(
        prog="lamella",
        description="Inspects and checks operators, starts operator projects, runs HLO programs.",
    )
    parser.add_argument("--version", action="version", version=f"lamella {__version__}")
    parts = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (ops, explain, hlo, compile, opcheck, backend_check, new, info, completion):
        module.add_parser(parts)
    options = parser.parse_args(arguments)
    options.parser = parser
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"lamella: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of stdout has closed the pipe. Redirecting it keeps the flush at exit from
        # failing, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
