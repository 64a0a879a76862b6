"""Documentation texts of operators.

Note [Texts of operators]
  A declaration's `doc:` describes what the operator computes. For Lamella's own operators the
  generator writes these texts, including those of ops/docs/, to _operator_docs.json beside this
  file, which is read on first use; the libraries do not contain them. For operators of other
  libraries, of m.def() and of Library.define() the registry keeps the text. The overloads of a
  name and its in-place form share one text.
"""

from __future__ import annotations

import functools
import json
import keyword
import pathlib

from lamella import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect


@functools.cache
def _own() -> dict[str, str]:
    """The texts of Lamella's own operators, by qualified name."""
    texts = pathlib.Path(__file__).with_name("_operator_docs.json").read_text(encoding="utf-8")
    made: dict[str, str] = json.loads(texts)
    return made


def _registered(name: str) -> str:
    """The first text that an overload was defined with; empty if there is none."""
    for overload in _C._operator(name).overloads():
        entry = _C._operator_entry(name, "" if overload == "default" else overload)
        if entry["doc"]:
            return str(entry["doc"])
    return ""


def operator_doc(name: str) -> str:
    """The text of the operator `name` ("aten::add"); empty if it has none.

    An in-place form without its own text has the text of the operator that it is derived from.
    """
    text = _registered(name) or _own().get(name, "")
    base = _base_name(name)
    if text or base == name:
        return text
    try:
        of_base = operator_doc(base)
    except RuntimeError:  # The operator has only an in-place form.
        of_base = _own().get(base, "")
    if not of_base:
        return ""
    return f"In place: `self` becomes the result of `{base.partition('::')[2]}`.\n\n{of_base}"


def _base_name(name: str) -> str:
    ns, _, own = name.partition("::")
    if own.startswith("__i") and own.endswith("__") and own not in ("__invert__", "__index__"):
        return f"{ns}::__{own[3:]}"
    return f"{ns}::{own[:-1]}" if own.endswith("_") and not own.endswith("__") else name


def _help(name: str, schemas: str) -> str:
    """The text of help(): the schemas, one a line, then what the operator computes."""
    text = operator_doc(name)
    return f"{schemas}\n\n{text}" if text else schemas


def _signature(name: str, overload: str | None) -> inspect.Signature:
    """What inspect.signature() says of an operator: the arguments of an overload; of all of them
    (None), of the one with the most arguments and no output among them."""
    import inspect

    packet = _C._operator(name)
    names = packet.overloads() if overload is None else [overload or "default"]
    schemas = [_C._operator(name, own)._schema.arguments for own in names]
    functional = [own for own in schemas if not any(a.is_out for a in own)]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return inspect.Signature(
        [
            inspect.Parameter(
                f"{a.name}_" if keyword.iskeyword(a.name) else a.name,
                kinds[a.kwarg_only],
                default=a.default_value if a.has_default_value() else inspect.Parameter.empty,
            )
            for a in max(functional or schemas, key=len)
        ],
        __validate_parameters__=False,
    )
