#!/usr/bin/env python3
"""Writes the Python reference: pages of every public module, and beside its folder, in operators/,
one of every operator, with operators.html as their index.

A page has what the operator computes in words, from ops/docs/ or its declaration, and what the
schema, the tables of policies and derivatives, and calls of the operator on small tensors say: its
overloads, shapes, dtypes, errors, gradient, batching and lowering.

usage: reference.py FOLDER
       reference.py --check     fails if more public names than now lack a text
"""

import functools
import html
import inspect
import itertools
import pathlib
import re
import sys
import types
import warnings

import lamella
from lamella import _C
from lamella._docs import operator_doc

ROOT = pathlib.Path(__file__).resolve().parent.parent

# How many public names may lack a docstring, and how many operators may lack their dtypes, which
# are found by calls with small tensors or else documented. Both numbers may only decrease.
MAY_LACK = {"docstring": 0, "dtypes": 0}

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()

# The meaning of an operator's batching rule for shapes.
SHAPES = {
    "pointwise": "the tensors broadcast together, and the result has their common shape",
    "reduction": "dimensions in `dim` go, or stay with size 1 where `keepdim` is true; "
    "without `dim`, all of them go",
    "matrices": "the last two dimensions are matrices, those in front a batch",
    "leading": "the result has the shape of the first tensor",
    "loss": "a number, or with `reduction='none'` the shape of the first tensor",
    "sizes": "`size` is the shape of the result",
}


# The values that are tried for an argument without a default, by its type; for tensors, shapes.
TRIED = {
    "Tensor": [
        [2, 2],
        [2],
        [2, 2, 2],
        [2, 2, 2, 2],
        [2, 2, 2, 2, 2],
        [],
        [3],
        [3, 5],
        [2, 2, 2, 2, 3],
    ],  # fmt: skip
    "Scalar": [1],
    "float": [0.5],
    "int": [0, 1, 2, 4],
    "SymInt": [0, 1, 2],
    "bool": [False, True],
    "int[]": [[0], [2, 2], [1]],
    "SymInt[]": [[2, 2], [0], [1], [2], [1, 1], [2, 1], [1, 1, 1], [2, 2, 2, 2]],
    "ScalarType": [lamella.float32],
    "str": ["sum", "prod"],
}
# Tensors of indices, which need an index dtype.
PLACES = {
    "index": "int64",
    "indices": "int64",
    "offsets": "int64",
    "mask": "bool",
    "LU_pivots": "int32",
}
# Calls after which a search gives up.
MOST_CALLS = 3000


def choices(entry):
    """The name and the candidate values of each argument that a call needs; None if unknown."""
    needed = []
    for argument in entry["arguments"]:
        kind = argument["type"].split("(")[0]
        by_dtype = argument["name"] == "dtype" and not tensors_of(entry)
        if argument["default"] is not None and not by_dtype:
            continue
        element = "Tensor" if kind.startswith("Tensor") else kind.split("[")[0]
        tried = TRIED.get(element if element == "Tensor" or "[" not in kind else element + "[]")
        if by_dtype:
            tried = ["dtype"]
        elif kind.endswith("?"):
            tried = [None]
        if tried is None:
            return None
        needed.append((argument["name"], kind, tried))
    return needed


def tensors_of(entry):
    return [a for a in entry["arguments"] if a["type"].startswith("Tensor")]


def arguments_of(needed, chosen, dtype):
    """The arguments of a call, with tensors of a dtype."""
    named = {}
    for (name, kind, _), value in zip(needed, chosen):
        if value == "dtype":
            value = getattr(lamella, dtype)
        elif kind.startswith("Tensor") and value is not None:
            place = PLACES.get(name)
            made = lamella.ones if place != "int64" else lamella.zeros
            value = made(value, dtype=getattr(lamella, place or dtype))
            if value.ndim == 2 and place is None and dtype != "bool":
                value.diagonal().add_(1)  # a matrix that has an inverse
            value = [value] * 2 if "[" in kind else value
        named[name] = value
    return named


def probe(entry):
    """Calls an overload in each dtype: the dtypes that it took, an example of shapes, an error."""
    overload = getattr(getattr(lamella.ops.aten, entry["name"][6:]), entry["overload"] or "default")
    needed = choices(entry)
    if needed is None:
        return [], None, None
    # First tries the values that give all tensors the same shape.
    each = [tried for _, _, tried in needed]
    alike = sorted(
        itertools.islice(itertools.product(*each), 4 * MOST_CALLS),
        key=lambda chosen: len(
            {str(c) for c, (_, kind, _) in zip(chosen, needed) if kind.startswith("Tensor")}
        ),
    )
    error = None
    for dtype, chosen in itertools.product(("float32", "int64", "complex64"), alike[:MOST_CALLS]):
        try:
            overload(**arguments_of(needed, chosen, dtype))
            break
        except Exception as raised:  # noqa: B902: any exception is reported as callers see it
            error = error or f"{type(raised).__name__}: {str(raised).splitlines()[0]}"
    taken, example = [], None
    for dtype in DTYPES:
        try:
            made = overload(**arguments_of(needed, chosen, dtype))
        except Exception as raised:  # noqa: B902
            error = error or f"{type(raised).__name__}: {str(raised).splitlines()[0]}"
            continue
        taken.append(dtype)
        if isinstance(made, lamella.Tensor):
            given = [
                f"`{name}` of shape {value}" if kind.startswith("Tensor") else f"`{name}` {value}"
                for (name, kind, _), value in zip(needed, chosen)
                if value is not None and value != "dtype"
            ]
            verb = "give" if len(given) > 1 else "gives"
            example = f"{', '.join(given)} {verb} {list(made.shape)}" if given else None
    return taken, example, error


def facts(entry):
    """Lines of markdown about one overload."""
    yield f"`{entry['schema']}`\n"
    policies = entry["policies"] or {}
    batching = policies.get("batching")
    if batching in SHAPES:
        yield f"- shapes: {SHAPES[batching]}"
    taken, example, error = probe(entry)
    if taken:
        yield "- dtypes: " + ", ".join(taken)
    if example is not None:
        yield f"- example: {example}"
    if error:
        yield f"- an error: `{error}`"
    derivative = entry["derivative"]
    if derivative and derivative["differentiable"]:
        yield "- gradient: " + "; ".join(f"`{formula}`" for formula in formulas(derivative))
    elif any(kernel["key"] == "CompositeImplicitAutograd" for kernel in entry["kernels"]):
        yield "- gradient: by its parts"
    else:
        yield "- gradient: none"
    yield f"- batching: {batching or 'in a loop over the examples'}"
    if policies.get("autocast"):
        yield f"- autocast: {policies['autocast']}"
    yield f"- lowering: {lowering(entry)}"
    yield ""


@functools.cache
def declarations(name):
    """The lines of a file of derivatives, by its name."""
    return next(ROOT.glob(f"*/**/{name}")).read_text(encoding="utf-8").splitlines()


def formulas(derivative):
    """The formulas of a derivative, as its file of declarations has them, each in one line."""
    lines = itertools.islice(declarations(derivative["file"]), derivative["line"], None)
    found = []
    for line in itertools.takewhile(lambda line: line.startswith("  "), lines):
        if line.lstrip().startswith("#"):
            continue
        if line.startswith("   ") and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    return found


@functools.cache
def lowered():
    from lamella import _hlo

    return frozenset(_hlo._lowered_operators())


def lowering(entry):
    """The HLO instruction that an operator becomes in a program."""
    opcode = (entry["policies"] or {}).get("hlo")
    if entry["name"].partition("::")[2] in lowered() or entry["name"] in lowered():
        return "a rule of lamella/graph/lowering"
    if opcode:
        return f"the opcode `{opcode}`"
    if any(kernel["key"] == "CompositeImplicitAutograd" for kernel in entry["kernels"]):
        return "by its parts"
    return "a custom call to its kernel"


def operator_text(packet, entries):
    """The text of one name: its documentation, the facts of its functional overloads, and one line
    for each other overload."""
    doc = operator_doc(entries[0]["name"]) if entries else ""
    text, _, example = doc.partition(">>> ")
    lines, others = [text.rstrip() + "\n"], []
    if example:
        lines.append(f"```python\n>>> {example}\n```\n")
    for entry in entries:
        if any(argument["write"] for argument in entry["arguments"]):
            others.append(entry["schema"])
        else:
            lines += facts(entry)
    lines += [f"`{schema}`\n" for schema in others]
    return "\n".join(lines) or packet.__doc__


PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>
body{{max-width:50em;margin:2em auto;font-family:sans-serif}}
pre{{background:#eee;padding:.5em}}
</style>
{body}"""


def as_html(markdown):
    """Converts the markup of these texts: code between ` and after ```, lists, paragraphs."""
    blocks = []
    for paragraph in re.split(r"\n\n+(?=[^\n])", markdown.strip()):
        if code := re.fullmatch(r"```\w*\n(.*)\n```\n?", paragraph, flags=re.DOTALL):
            blocks.append(f"<pre>{html.escape(code[1])}</pre>")
            continue
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(paragraph, quote=False))
        if text.startswith("- "):
            items = "\n".join(f"<li>{item}</li>" for item in text[2:].strip().split("\n- "))
            blocks.append(f"<ul>\n{items}\n</ul>")
        else:
            blocks.append(f"<p>{text.strip()}</p>")
    return "\n".join(blocks)


def write_operator_pages(folder, texts):
    """A page for each operator in the folder, and an index of them beside it: `index` is one."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, text in sorted(texts.items()):
        own = name.partition("::")[2]
        body = f"<h1>{html.escape(name)}</h1>\n{as_html(text)}"
        (folder / f"{own}.html").write_text(PAGE.format(title=own, body=body), encoding="utf-8")
        first = as_html(operator_doc(name).partition(". ")[0].partition("\n\n")[0])[3:-4]
        rows.append(f'<li><a href="{folder.name}/{own}.html">{own}</a>: {first}</li>')
    body = f"<h1>{len(rows)} operators</h1>\n<ul>\n" + "\n".join(rows) + "\n</ul>"
    page = PAGE.format(title="Operators", body=body)
    folder.with_suffix(".html").write_text(page, encoding="utf-8")


def operator_entries():
    """All overloads of Lamella's own operators, by name."""
    entries = {}
    for name, overload in sorted(_C._operator_names()):
        if name.startswith("aten::"):
            entries.setdefault(name, []).append(_C._operator_entry(name, overload))
    return entries


def public_modules():
    """Every public module of the package (no part of its name begins with an underscore)."""
    todo, seen = [lamella], {}
    while todo:
        module = todo.pop()
        if module.__name__ in seen:
            continue
        seen[module.__name__] = module
        for value in vars(module).values():
            if isinstance(value, types.ModuleType) and value.__name__.startswith("lamella."):
                if "._" not in value.__name__:
                    todo.append(value)
    return seen


def public_names(module):
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name, None)
        if callable(value) and not isinstance(value, types.ModuleType):
            yield name, value


def document(modules):
    """Replaces each operator by a documented function; returns the names that lack texts."""
    entries = operator_entries()
    lacking = {"docstring": set(), "dtypes": set()}
    texts, stubs = {}, []
    for module in modules.values():
        for name, value in public_names(module):
            if not inspect.getdoc(value):
                lacking["docstring"].add(f"{module.__name__}.{name}")
            if type(value).__name__ != "Function":
                continue
            full = value._operator_name
            if full not in texts:
                texts[full] = operator_text(value, entries.get(full, []))
                said = "- dtypes:" in texts[full] or "dtype" in (operator_doc(full))
                if not said and not full.endswith("_"):
                    lacking["dtypes"].add(full)

            def stub(*args, **kwargs):
                pass

            stub.__name__ = stub.__qualname__ = name
            stub.__module__, stub.__doc__ = module.__name__, texts[full]
            stubs.append((module, name, stub))
    for name in dir(lamella.Tensor):
        if not name.startswith("_") and not getattr(lamella.Tensor, name).__doc__:
            lacking["docstring"].add(f"lamella.Tensor.{name}")
    # Must come after the last call of an operator: from here on they are only documentation.
    for module, name, stub in stubs:
        setattr(module, name, stub)
    return lacking


def main(argument):
    if argument != "--check":
        write_operator_pages(
            pathlib.Path(argument).parent / "operators",
            {name: operator_text(None, found) for name, found in operator_entries().items()},
        )
    lacking = document(public_modules())
    failed = False
    for what, names in lacking.items():
        more = len(names) > MAY_LACK[what]
        failed |= more
        print(f"{len(names)} names lack a text about {what}" + (": " if names else ""), end="")
        print(", ".join(sorted(names)[: 1000 if more else 3]) + ("" if more else " ..."))
    if argument != "--check":
        import pdoc

        # Stub modules that exist only for type checkers cannot be imported.
        warnings.filterwarnings("ignore", message="Error parsing type")
        pdoc.render.configure(docformat="markdown", show_source=False)
        pdoc.pdoc("lamella", "!lamella.conformance", output_directory=pathlib.Path(argument))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
