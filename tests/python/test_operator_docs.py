"""Operators' documentation: every operator has a text, and every example in it holds."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import re

import pytest

import lamella
from lamella import _C
from lamella._docs import operator_doc

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = sorted({name for name, _ in _C._operator_names() if name.startswith("aten::")})
# Internal operators and gradients may be called with what other operators give alone.
NEEDS_NO_EXAMPLE = re.compile(r"aten::(_|.*_backward)")
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)")


class _Close(doctest.OutputChecker):
    """Takes numbers that differ in their last digits or in the sign of zero, and any spaces: other
    processors round otherwise."""

    def check_output(self, want: str, got: str, options: int) -> bool:
        def split(text: str) -> tuple[str, list[float]]:
            bare = re.sub(r"\s+|(?<=[\d.])[+](?=[\d.]+j)", "", text)
            return NUMBER.sub("#", bare), [float(x) for x in NUMBER.findall(bare)]

        wanted, numbers = split(want)
        given, others = split(got)
        same = all(
            x == y or (x != x and y != y) or abs(x - y) <= 2e-3 * max(abs(x), 0.1)
            for x, y in zip(numbers, others)
        )
        return wanted == given and len(numbers) == len(others) and same


def _failures(name: str, text: str) -> str:
    test = doctest.DocTestParser().get_doctest(text, {"lamella": lamella}, name, None, None)
    lines: list[str] = []
    doctest.DocTestRunner(checker=_Close(), verbose=False).run(test, out=lines.append)
    return "".join(lines)


def test_every_operator_says_what_it_computes():
    assert len(NAMES) > 900
    assert [name for name in NAMES if not operator_doc(name)] == []


def test_every_collective_says_what_it_computes():
    # Their library needs MPI; its declarations do not.
    text = (ROOT / "lamella/distributed/dist.yaml").read_text()
    entries = re.split(r"^(?=- func: )", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert [entry for entry in entries if not re.search(r"\n  doc: \|\n    \S", entry)] == []


def test_every_public_operator_has_an_example():
    lacking = [
        name
        for name in NAMES
        if not NEEDS_NO_EXAMPLE.match(name) and ">>> " not in operator_doc(name)
    ]
    assert lacking == []


def test_every_example_holds():
    texts = {name: operator_doc(name) for name in NAMES}
    failed = {name: found for name, text in texts.items() if (found := _failures(name, text))}
    assert "".join(failed.values()) == ""


def test_a_wrong_example_is_found():
    assert "Expected" in _failures("f", ">>> lamella.add(1, 2)\ntensor(4)\n")
    assert "Expected" in _failures("f", ">>> lamella.ones(2)\ntensor([1., 1.1])\n")
    assert "Expected" in _failures("f", ">>> lamella.ones(2)\ntensor([1., 1., 1.])\n")
    assert "Expected" in _failures("f", ">>> lamella.tensor([1j])\ntensor([0.-1.j])\n")
    assert _failures("f", ">>> lamella.ones(2) - 1\ntensor([-0.0000, 0.])\n") == ""


def test_texts_end_lines_before_the_page_does():
    for name in NAMES:
        for line in operator_doc(name).partition(">>> ")[0].splitlines():
            assert len(line) <= 100, (name, line)


def test_help_has_the_schema_and_the_text():
    text = inspect.getdoc(lamella.softmax)
    assert text.startswith("aten::softmax.int(Tensor self, int dim, ")
    assert "\n\nThe softmax along `dim`: exp(self) / sum(exp(self))" in text
    for other in (lamella.Tensor.softmax, lamella.ops.aten.softmax, lamella.ops.aten.softmax.int):
        assert "The softmax along `dim`" in inspect.getdoc(other)
    assert "The product of two matrices" in inspect.getdoc(lamella.Tensor.mm)


def test_in_place_forms_have_the_text_of_their_operator():
    base = operator_doc("aten::add")
    assert operator_doc("aten::add_") == f"In place: `self` becomes the result of `add`.\n\n{base}"
    assert operator_doc("aten::zero_").startswith("A tensor of zeros")


def test_a_definition_says_it():
    lib = lamella.library.Library("docs_py", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor", doc="Gives x, as it is.\n\n    Twice.")
    assert operator_doc("docs_py::f") == "Gives x, as it is.\n\nTwice."
    assert inspect.getdoc(lamella.ops.docs_py.f) == (
        "docs_py::f(Tensor x) -> Tensor\n\nGives x, as it is.\n\nTwice."
    )
    lamella.library.define("docs_py::g.more", "(Tensor x) -> Tensor", lib=lib, doc="More.")
    assert operator_doc("docs_py::g") == "More."
    lib.define("h(Tensor x) -> Tensor")
    assert inspect.getdoc(lamella.ops.docs_py.h) == "docs_py::h(Tensor x) -> Tensor"
    lib.close()
    with pytest.raises(RuntimeError, match="docs_py::f"):
        operator_doc("docs_py::f")


def test_the_reference_has_a_page_for_each_operator(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import reference

    entries = reference.operator_entries()
    assert sorted(entries) == NAMES
    texts = {
        name: reference.operator_text(None, entries[name])
        for name in ("aten::abs", "aten::index", "aten::_softmax", "aten::linalg_det")
    }
    folder = tmp_path / "operators"
    reference.write_operator_pages(folder, texts)
    pages = {page.stem for page in folder.glob("*.html")}
    assert pages == {"abs", "index", "_softmax", "linalg_det"}
    page = (folder / "abs.html").read_text()
    for text in (
        "<p>The absolute value |self|",
        "&gt;&gt;&gt; lamella.abs(lamella.tensor([-1.5, 2.0]))\ntensor([1.5000, 2.0000])",
        "<code>abs(Tensor self) -&gt; Tensor</code>",
        "<li>dtypes: uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, ",
        "<li>gradient: <code>self: grad * self.sgn()</code>",
        "<li>batching: pointwise</li>",
        "<li>lowering: a rule of lamella/graph/lowering</li>",
    ):
        assert text in page
    assert "<li>lowering: by its parts</li>" in (folder / "linalg_det.html").read_text()
    index = (tmp_path / "operators.html").read_text()
    assert '<a href="operators/index.html">index</a>: The elements of <code>self</code>' in index


def test_a_custom_operator_says_what_its_function_does():
    @lamella.library.custom_op("docs_py::twice", mutates_args=())
    def twice(x: lamella.Tensor) -> lamella.Tensor:
        """x + x.

        Of any dtype.
        """
        return x + x

    assert operator_doc("docs_py::twice") == "x + x.\n\nOf any dtype."
    assert twice.__doc__.startswith("x + x.")
