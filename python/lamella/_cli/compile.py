"""lamella compile: compiles an HLO program or a Python module to a C library and a C header."""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
from typing import Any

from lamella._cli._common import CommandError
from lamella._cli.explain import value_of
from lamella._cli.hlo import parse


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "compile",
        help="compile an HLO program or a Python module to a C library and a C header",
        description="Writes NAME.o and NAME.h, or the static library NAME.a: a C function NAME "
        "that runs the program without Python. Link it with -llamella_graph -llamella. It is "
        "compiled for this machine's processor; LAMELLA_CPU_CAPABILITY=avx2 or default compiles "
        "for others.",
        epilog="FILE.py:NAME is a module or function that a file of Python defines; it is traced "
        "with tensors of zeros, and its parameters become constants of the library.",
    )
    parser.add_argument(
        "file", metavar="FILE", help="a file of HLO text ('-': standard input), or FILE.py:NAME"
    )
    parser.add_argument(
        "--example",
        action="append",
        default=[],
        metavar="ARGUMENT",
        help="an argument of FILE.py:NAME, such as 'float32[2,3]' or 3; give one for each",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        required=True,
        help="path of the files; its last part, without 'lib' and '.a', is the function's name",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if sys.platform != "linux":
        raise CommandError(
            f"compile: expected Linux, whose object files it writes, got {sys.platform}"
        )
    path, _, name = options.file.rpartition(":")
    module = _traced(path, name, options.example) if path.endswith(".py") else parse(options.file)
    from lamella import _hlo

    base = options.output.removesuffix(".a") if options.output.endswith(".a") else options.output
    folder, function = os.path.split(base)
    if base != options.output:
        function = function.removeprefix("lib")
    try:
        data, header = _hlo._compile_ahead_of_time(module, function)
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    try:
        with open(f"{os.path.join(folder, function)}.h", "w", encoding="utf-8") as text:
            text.write(header)
        if base == options.output:
            with open(f"{base}.o", "wb") as file:
                file.write(data)
        else:
            _write_archive(options.output, function, data)
    except OSError as error:
        raise CommandError(f"compile: {options.output}: {error.strerror or error}") from None
    return 0


def _traced(path: str, name: str, examples: list[str]) -> Any:
    """The program of a module or function in a file of Python."""
    import lamella
    from lamella import hlo

    try:
        found = runpy.run_path(path).get(name)
    except OSError as error:
        raise CommandError(f"compile: {path}: {error.strerror or error}") from None
    if not callable(found):
        raise CommandError(f"compile: expected '{path}' to define a module or function '{name}'")
    arguments = [value_of(text) for text in examples]
    for argument in arguments:
        if isinstance(argument, lamella.Tensor):
            argument.zero_()
    if isinstance(found, lamella.nn.Module):
        found.eval()
    try:
        with lamella.no_grad():
            return hlo.from_trace(lamella.trace(found, *arguments, check=False, strict=True))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise CommandError(f"compile: {path}:{name}: {error}") from None


def _write_archive(path: str, function: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        member = os.path.join(folder, f"{function}.o")
        with open(member, "wb") as file:
            file.write(data)
        if os.path.exists(path):
            os.remove(path)
        done = subprocess.run(["ar", "rcs", path, member], capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"compile: {path}: {done.stderr.strip()}")
