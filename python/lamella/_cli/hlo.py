"""lamella hlo: runs, prints, draws and compares HLO programs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from lamella._cli._common import CommandError, load, write_json

_PLACE = re.compile(r"^hlo: line (\d+), column (\d+): (.*)$", re.DOTALL)


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "hlo",
        help="run, print, draw and compare HLO programs",
        description="Works on HLO programs in XLA's text, as jax.jit(f).lower(x).as_text('hlo') "
        "prints them. The FILE '-' is the standard input.",
    )
    what = parser.add_subparsers(metavar="WHAT", required=True)

    one = what.add_parser(
        "run",
        help="run a program, or repeat a failure",
        description="Runs a program's entry computation and prints its results. If FILE is the "
        "folder of a failed compilation or run, repeats that. If the folder names code for custom "
        "calls, this needs --trust; without it the code is listed. Failures write such folders "
        "below LAMELLA_BUNDLES (off: none are written): at most 20, and 1 GiB in total.",
        epilog="An input is a file of one array (.npy), a file of several (.safetensors: by the "
        "parameters' names, else in the file's order), or a number.",
    )
    one.add_argument("file", metavar="FILE", help="a file of HLO text, or the folder of a failure")
    one.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="INPUT",
        help="arrays for the next parameters, with tuples flattened",
    )
    one.add_argument(
        "--random", type=int, metavar="SEED", help="random arrays for parameters without an input"
    )
    one.add_argument("--output", metavar="DIR", help="write the results to DIR/output_N.npy")
    one.add_argument(
        "--library",
        action="append",
        default=[],
        metavar="LIB.so",
        help="load this library of custom calls first",
    )
    one.add_argument(
        "--trust",
        action="store_true",
        help="load and run the code that the folder of a failure names",
    )
    one.add_argument("--json", action="store_true", help="print the results as JSON")
    one.add_argument("--platform", help="platform of the custom calls: Host (default) or CUDA")
    one.set_defaults(run=_run)

    one = what.add_parser(
        "print",
        help="print a program in XLA's text",
        description="Reads a program, verifies it and prints it in XLA's text.",
    )
    one.add_argument("file", metavar="FILE")
    one.add_argument("--percent", action="store_true", help="print names with %%")
    one.add_argument("--operand-shapes", action="store_true", help="print the operands' shapes")
    one.add_argument("--no-metadata", action="store_true", help="omit metadata={...}")
    one.add_argument("--no-verify", action="store_true", help="print invalid programs, too")
    one.add_argument("--json", action="store_true", help="print it as JSON")
    one.set_defaults(run=_print)

    one = what.add_parser(
        "graph",
        help="draw a program: HTML, DOT or JSON",
        description="Writes a program as a page that shows its graph (.html), as Graphviz text "
        "(.dot) or as JSON (.json).",
    )
    one.add_argument("file", metavar="FILE")
    one.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="a file name that ends in .html, .dot or .json",
    )
    one.add_argument(
        "--compiled",
        action="store_true",
        help="draw the compiled program: its fusions, with their memory and cost",
    )
    one.set_defaults(run=_graph)

    one = what.add_parser(
        "diff",
        help="compare two programs by their structure",
        description="Prints what is added, removed and changed between two programs. Exit status "
        "0: they are equal except for names; 1: they differ.",
    )
    one.add_argument("first", metavar="A")
    one.add_argument("second", metavar="B")
    one.add_argument("--json", action="store_true", help="print the differences as JSON")
    one.set_defaults(run=_diff)


# ---- Reading -----------------------------------------------------------------------------------


def _read(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        if os.path.isdir(path):
            path = os.path.join(path, "module.hlo")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"hlo: {path}: {getattr(error, 'strerror', None) or error}") from None


def parse(path: str, verify: bool = True) -> Any:
    from lamella import hlo

    text = _read(path)
    try:
        return hlo.parse(text, verify)
    except RuntimeError as error:
        raise CommandError(_placed(path, text, str(error))) from None


def compiled(module: Any, platform: str = "Host") -> Any:
    from lamella import hlo

    try:
        return hlo.compile(module, platform=platform)
    except Exception as error:
        raise CommandError(_message(error)) from None


def _placed(path: str, text: str, message: str) -> str:
    """An error message with the file, the line of text that it is about, and a mark below the
    column."""
    found = _PLACE.match(message)
    lines = text.split("\n")
    if not found or not 1 <= int(found[1]) <= len(lines):
        return message if message.startswith("hlo: ") else f"hlo: {message}"
    line, column = lines[int(found[1]) - 1], int(found[2])
    # Columns count bytes. Only the part of a long line around the column is shown.
    before = line.encode()[: column - 1].decode(errors="replace")
    start = max(0, len(before) - 70)
    shown = line[start : start + 100].replace("\t", " ").rstrip("\r")
    mark = " " * (len(before) - start) + "^"
    return f"hlo: {path}:{found[1]}:{column}: {found[3]}\n  {shown}\n  {mark}"


# ---- Running -----------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from lamella.hlo import _bundle

    # A failure of this command must not write another folder.
    os.environ["LAMELLA_BUNDLES"] = "off"
    for path in options.library:
        load(path)
    facts = None
    platform = options.platform or "Host"
    if os.path.isdir(options.file):
        try:
            facts = _bundle.read(options.file)
        except ValueError as error:
            raise CommandError(f"hlo: {error}") from None
        platform = options.platform or facts["options"]["platform"]
        _load_code(options, _bundle.code_of(facts))
    module = parse(options.file)
    executable = compiled(module, platform)
    inputs = _inputs(options, _leaves(executable), facts)
    try:
        results = executable(*inputs)
    except Exception as error:
        print(f"lamella: {_message(error)}", file=sys.stderr)
        return 1
    if options.output is not None:
        _write(options.output, results)
    shapes = _arrays(executable.output_shape)
    if options.json:
        write_json([{"shape": str(s), "values": r.tolist()} for s, r in zip(shapes, results)])
        return 0
    for i, (shape, result) in enumerate(zip(shapes, results)):
        print(f"output {i}: {shape}\n{result!r}")
    return 0


def _load_code(options: argparse.Namespace, entries: list[Any]) -> None:
    from lamella.hlo import _bundle

    if entries and not options.trust:
        listed = "".join(f"\n  {_bundle.describe(entry)}" for entry in entries)
        raise CommandError(
            f"hlo: {options.file}: expected --trust, to load and run the code that the folder "
            f"names:{listed}"
        )
    for entry in entries:
        try:
            _bundle.restore(entry)
        except Exception as error:
            print(f"lamella: hlo: not loaded: {_bundle.describe(entry)}: {error}", file=sys.stderr)


def _message(error: Exception) -> str:
    if not isinstance(error, RuntimeError):
        return f"hlo: {type(error).__name__}: {error}"
    return str(error) if str(error).startswith("hlo: ") else f"hlo: {error}"


def _arrays(shape: Any) -> list[Any]:
    if shape.is_tuple:
        return [leaf for element in shape.tuple_shapes for leaf in _arrays(element)]
    return [shape] if shape.is_array else []


def _leaves(executable: Any) -> list[tuple[str, Any]]:
    """The name and shape of each array of the parameters, with tuples flattened."""
    return [
        (parameter.name, shape)
        for parameter in executable.module.entry.parameters
        for shape in _arrays(parameter.shape)
    ]


def _inputs(options: argparse.Namespace, leaves: list[Any], facts: Any) -> list[Any]:
    if facts is not None and not options.input and options.random is None:
        if facts["inputs"] is None:
            raise CommandError(
                f"hlo: {options.file}: the inputs were too large to be saved; give --input or "
                "--random SEED"
            )
        # A failed compilation has no saved inputs; repeating it fails before it needs any.
        kept = min(facts["inputs"], len(leaves))
        names = [os.path.join(options.file, f"input_{i}.npy") for i in range(kept)]
        return [_array(name, shape) for name, (_, shape) in zip(names, leaves)]
    inputs: list[Any] = []
    for text in options.input:
        if text.endswith(".safetensors"):
            inputs += _several(text, leaves[len(inputs) :])
        elif len(inputs) < len(leaves):
            inputs.append(_array(text, leaves[len(inputs)][1]))
        else:
            inputs.append(None)
    if len(inputs) > len(leaves):
        raise CommandError(f"hlo: expected at most {len(leaves)} inputs, got {len(inputs)}")
    if len(inputs) < len(leaves):
        if options.random is None:
            listed = ", ".join(f"{name}: {shape}" for name, shape in leaves[len(inputs) :])
            raise CommandError(
                f"hlo: expected {len(leaves)} inputs, got {len(inputs)}; missing are {listed}; "
                "give --input for each, or --random SEED"
            )
        inputs += _random(options.random, leaves[len(inputs) :])
    return inputs


def _array(text: str, shape: Any) -> Any:
    import lamella
    from lamella.hlo import _npy

    if text.endswith(".npy") or os.path.exists(text):
        try:
            return _npy.load(text, shape.element_type)
        except (OSError, ValueError) as error:
            raise CommandError(f"hlo: {error}") from None
    for kind in (int, float, complex):
        try:
            number = kind(text)
        except ValueError:
            continue
        if shape.element_type == "pred" and text in ("0", "1"):
            return lamella.tensor(text == "1")
        return number
    if text in ("true", "false"):
        return text == "true"
    raise CommandError(f"hlo: expected --input to be a file or a number, got '{text}'")


def _several(path: str, leaves: list[Any]) -> list[Any]:
    import lamella

    try:
        tensors = lamella.load_file(path)
    except (OSError, ValueError, RuntimeError) as error:
        raise CommandError(f"hlo: {error}") from None
    names = [name for name, _ in leaves]
    if set(tensors) == set(names):
        return [tensors[name] for name in names]
    return list(tensors.values())


def _random(seed: int, leaves: list[Any]) -> list[Any]:
    """Random inputs: normally distributed floats, small integers and booleans; equal for equal
    seeds."""
    import lamella
    from lamella.hlo import _arrays

    generator = lamella.Generator().manual_seed(seed)
    inputs = []
    for _, shape in leaves:
        element, sizes = shape.element_type, list(shape.dimensions)
        carrier = getattr(lamella, _arrays.carrier(element))
        if element == "pred":
            made = lamella.randint(0, 2, sizes, generator=generator)
        elif element[0] in "su":
            bits = int(element[1:])
            low = -min(8, 2 ** (bits - 1)) if element[0] == "s" else 0
            made = lamella.randint(low, min(8, 2 ** (bits - 1)), sizes, generator=generator)
        elif element[0] == "c":
            parts = [lamella.randn(sizes, generator=generator) for _ in range(2)]
            made = lamella.complex(*parts)
        elif carrier == lamella.uint8:
            # Bit patterns of 8-bit and narrower floats with small exponents, so no NaN or infinity.
            made = lamella.randint(0, 64, sizes, generator=generator)
        else:
            made = lamella.randn(sizes, generator=generator)
        inputs.append(made.to(carrier))
    return inputs


def _write(folder: str, results: list[Any]) -> None:
    from lamella.hlo import _npy

    try:
        os.makedirs(folder, exist_ok=True)
        for i, result in enumerate(results):
            _npy.save(os.path.join(folder, f"output_{i}.npy"), result)
    except OSError as error:
        raise CommandError(f"hlo: {error}") from None


# ---- Printing, drawing and comparing -----------------------------------------------------------


def _print(options: argparse.Namespace) -> int:
    module = parse(options.file, not options.no_verify)
    if options.json:
        print(module.to_json())
        return 0
    text = module.to_string(
        percent=options.percent,
        operand_shapes=options.operand_shapes,
        metadata=not options.no_metadata,
    )
    sys.stdout.write(text)
    return 0


def _graph(options: argparse.Namespace) -> int:
    ending = os.path.splitext(options.output)[1]
    if ending not in (".html", ".dot", ".json"):
        raise CommandError(
            f"hlo: expected --output to end in .html, .dot or .json, got '{options.output}'"
        )
    module = parse(options.file)
    if options.compiled:
        module = compiled(module).plan
    text = {".html": module.to_html, ".dot": module.to_dot, ".json": module.to_json}[ending]()
    try:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"hlo: {error}") from None
    return 0


def _diff(options: argparse.Namespace) -> int:
    if options.first == options.second == "-":
        raise CommandError("hlo: expected one of the programs to be a file")
    first, second = parse(options.first), parse(options.second)
    text = first.diff(second)
    if options.json:
        write_json({"equal": not text, "differences": text.splitlines()})
        return 1 if text else 0
    sys.stdout.write(text or ("equal\n" if first == second else "equal up to renaming\n"))
    return 1 if text else 0
