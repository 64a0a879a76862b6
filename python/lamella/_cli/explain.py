"""lamella explain: explains which kernel a call would run, and why."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any

from lamella._cli._common import CommandError, load, write_json

_TENSOR = re.compile(
    r"^(?:(?P<device>[a-z]+(?::\d+)?)\s+)?(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,\s]*)\]"
    r"(?P<grad>\s+requires_grad)?$"
)


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "explain",
        help="explain which kernel a call would run, and why",
        description="Prints the dispatch keys of a call, why keys are skipped, and which kernel "
        "would run, with the file and line that registered it. Runs no kernel.",
        epilog="An argument is a tensor ('float32[2,3]', 'meta float32[2,3]', 'float32[3] "
        "requires_grad'), a number, a text, None, True, False, a list of these in brackets, "
        "or NAME=ARGUMENT.",
    )
    parser.add_argument("op", help="the operator: 'add', 'aten::add', 'aten::add.Tensor'")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT")
    parser.add_argument(
        "--library", action="append", default=[], metavar="LIB.so", help="load this library first"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import lamella
    from lamella import _C

    for path in options.library:
        load(path)
    name, _, overload = options.op.partition(".")
    if "::" not in name:
        name = f"aten::{name}"
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in options.arguments:
        keyword, equals, value = text.partition("=")
        if equals and keyword.isidentifier():
            kwargs[keyword] = value_of(value)
        else:
            args.append(value_of(text))
    try:
        op = _C._operator(name, overload) if overload else _C._operator(name)
        text = str(lamella.explain(op, *args, **kwargs))
    except (RuntimeError, TypeError) as error:
        raise CommandError(f"explain: {error}") from None
    if options.json:
        first, schema, keys, *rows = text.splitlines()
        steps = [dict(zip(("key", "what"), row.split(None, 1))) for row in rows]
        write_json(
            {
                "operator": first,
                "schema": schema.partition(": ")[2],
                "keys": keys.partition(": ")[2].strip("{}").split(", "),
                "steps": steps,
            }
        )
    else:
        print(text)
    return 0


def value_of(text: str) -> Any:
    """The value that an argument on the command line stands for."""
    import lamella

    text = text.strip()
    found = _TENSOR.match(text)
    if found:
        dtype = getattr(lamella, found["dtype"], None)
        if not isinstance(dtype, lamella.dtype):
            raise CommandError(f"explain: expected a dtype in '{text}', got '{found['dtype']}'")
        shape = [int(size) for size in found["shape"].split(",") if size.strip()]
        try:
            return lamella.empty(
                shape,
                dtype=dtype,
                device=found["device"] or "cpu",
                requires_grad=found["grad"] is not None,
            )
        except (RuntimeError, NotImplementedError) as error:
            raise CommandError(f"explain: {text}: {error}") from None
    if text.startswith("[") and text.endswith("]"):
        return [value_of(item) for item in _items(text[1:-1])]
    named = getattr(lamella, text, None) if text.isidentifier() else None
    if isinstance(named, (lamella.dtype, lamella.layout, lamella.memory_format)):
        return named
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _items(text: str) -> list[str]:
    """Splits text at the commas outside of brackets."""
    items, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]] if text.strip() else []
