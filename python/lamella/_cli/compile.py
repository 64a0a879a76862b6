"""lamella compile: compiles an HLO program to an object file and a C header."""

from __future__ import annotations

import argparse
import os
from typing import Any

from lamella._cli._common import CommandError
from lamella._cli.hlo import parse


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "compile",
        help="compile an HLO program to an object file and a C header",
        description="Writes NAME.o and NAME.h: a C function NAME that runs the program without "
        "Python. Link the object file with -llamella_graph -llamella. It is compiled for this "
        "machine's processor; LAMELLA_CPU_CAPABILITY=avx2 or default compiles for others.",
    )
    parser.add_argument("file", metavar="FILE", help="a file of HLO text; '-': standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        required=True,
        help="path of the files without the ending; its last part is the function's name",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    module = parse(options.file)
    from lamella import _hlo

    try:
        data, header = _hlo._compile_ahead_of_time(module, os.path.basename(options.output))
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    try:
        with open(f"{options.output}.o", "wb") as file:
            file.write(data)
        with open(f"{options.output}.h", "w", encoding="utf-8") as text:
            text.write(header)
    except OSError as error:
        raise CommandError(f"compile: {options.output}: {error.strerror or error}") from None
    return 0
