"""lamella ops: lists the registered operators, or prints one with its kernels and policies."""

from __future__ import annotations

import argparse
import fnmatch
from typing import Any

from lamella._cli._common import CommandError, load, write_json


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "ops",
        help="list operators: what they compute, schemas, kernels, policies, derivatives",
        description="Lists operators, one per line. An exact name prints that operator in full.",
    )
    parser.add_argument(
        "pattern",
        nargs="?",
        help="a name ('aten::add', 'add', 'add.Tensor') or a pattern ('aten::*_backward'); "
        "without one, every operator",
    )
    parser.add_argument(
        "--library", action="append", default=[], metavar="LIB.so", help="load this library first"
    )
    parser.add_argument("--json", action="store_true", help="print all facts as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from lamella import _C
    from lamella._docs import operator_doc

    for path in options.library:
        load(path)
    names = [
        (name, overload)
        for name, overload in sorted(_C._operator_names())
        if options.pattern is None or _matches(name, overload, options.pattern)
    ]
    if not names:
        raise CommandError(f"ops: no operator is called '{options.pattern}'{_near(options)}")
    entries = [
        {**_C._operator_entry(name, overload), "doc": operator_doc(name)}
        for name, overload in names
    ]
    if options.json:
        write_json(entries)
    elif options.pattern is not None and not set("*?[") & set(options.pattern):
        # The text of an operator is printed once, before its overloads.
        docs = dict.fromkeys(entry["name"] for entry in entries)
        for name in docs:
            own = [entry for entry in entries if entry["name"] == name]
            docs[name] = "\n\n".join(filter(None, [own[0]["doc"], *map(_in_full, own)]))
        print("\n\n".join(map(str, docs.values())))
    else:
        for entry in entries:
            print(_in_short(entry))
    return 0


def _matches(name: str, overload: str, pattern: str) -> bool:
    full = f"{name}.{overload}" if overload else name
    own = full.partition("::")[2]
    candidates = (name, full, own, name.partition("::")[2])
    return any(fnmatch.fnmatchcase(candidate, pattern) for candidate in candidates)


def _near(options: argparse.Namespace) -> str:
    import difflib

    from lamella import _C

    names: list[str] = sorted({name for name, _ in _C._operator_names()})
    plain: dict[str, str] = {name.partition("::")[2]: name for name in names}
    near = difflib.get_close_matches(options.pattern.partition(".")[0], [*names, *plain], 3)
    return (
        f": near are {', '.join(plain[name] if name in plain else name for name in near)}"
        if near
        else ""
    )


def _schema(entry: dict[str, Any]) -> str:
    return f"{entry['name'].partition('::')[0]}::{entry['schema']}"


def _in_short(entry: dict[str, Any]) -> str:
    keys = ", ".join(dict.fromkeys(kernel["key"] for kernel in entry["kernels"]))
    return f"{_schema(entry)}  [{keys}]"


def _in_full(entry: dict[str, Any]) -> str:
    rows = [
        ("declared", f"{entry['file']}:{entry['line']}"),
        ("tags", ", ".join(tag for tag in entry["tags"] if ":" not in tag) or "none"),
        *((policy, entry["policies"].get(policy, "not stated")) for policy in _POLICIES),
        ("derivative", _derivative(entry)),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [_schema(entry), *(f"  {name:{width}}  {value}" for name, value in rows)]
    if not entry["kernels"]:
        return "\n".join([*lines, "  kernels: none"])
    lines.append("  kernels")
    width = max(len(kernel["key"]) for kernel in entry["kernels"])
    seen: set[str] = set()
    for kernel in entry["kernels"]:
        notes = [kernel["file"] + ":" + str(kernel["line"])]
        if kernel["fallthrough"]:
            notes.append("falls through")
        elif not kernel["typed"]:
            notes.append("boxed")
        if kernel["key"] in seen:
            notes.append("replaced by the one above")
        seen.add(kernel["key"])
        lines.append(f"    {kernel['key']:{width}}  {', '.join(notes)}")
    return "\n".join(lines)


_POLICIES = ("autocast", "batching", "hlo")


def _derivative(entry: dict[str, Any]) -> str:
    derivative = entry["derivative"]
    if derivative is not None:
        where = f"{derivative['file']}:{derivative['line']}"
        return where if derivative["differentiable"] else f"not differentiable, says {where}"
    keys = [kernel["key"] for kernel in entry["kernels"]]
    own = [key for key in keys if key.startswith("Autograd")]
    if own:
        return f"by the kernel for {own[0]}"
    return "by its parts" if "CompositeImplicitAutograd" in keys else "none"
