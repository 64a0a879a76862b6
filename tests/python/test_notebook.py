"""What notebooks show: the _repr_html_ methods give whole, escaped HTML."""

import html
import html.parser
import re

import pytest

import lamella
from lamella import nn


class Balanced(html.parser.HTMLParser):
    """Fails where an element is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_large_tensors():
    assert lamella.ones(3)._repr_html_() is None
    x = lamella.arange(2000.0)
    x[0] = float("nan")
    text = x._repr_html_()
    Balanced(text)
    cells = re.findall("<t[hd]>(.*?)</t[hd]>", text)
    assert cells == [
        "shape", "dtype", "memory", "not finite", "min", "mean", "max",
        "(2000,)", "float32", "8,000 bytes", "1", "1", "1000", "1999",
    ]  # fmt: skip
    assert text.endswith(f"<pre>{html.escape(repr(x))}</pre>")
    for dtype in (lamella.bool, lamella.complex64, lamella.int64, lamella.bfloat16):
        Balanced(lamella.zeros(2000, dtype=dtype)._repr_html_())
    Balanced(lamella.full((2000,), float("inf"), requires_grad=True)._repr_html_())


def test_modules():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<b>"

    net = nn.Sequential(nn.Linear(2, 3), Odd())
    net[0].bias.requires_grad_(False)
    text = net._repr_html_()
    Balanced(text)
    assert "<code>Sequential()</code>, 9 parameters" in text
    assert "<code>Odd(&lt;b&gt;)</code>, 0 parameters" in text
    assert "<tr><td>weight</td><td>(3, 2)</td><td>float32</td><td>yes</td></tr>" in text
    assert "<tr><td>bias</td><td>(3,)</td><td>float32</td><td>no</td></tr>" in text


def test_profiles():
    profile = lamella.profiler.profile()
    assert profile._repr_html_() is None
    with profile:
        lamella.ones(3) + 1
    text = profile._repr_html_()
    Balanced(text)
    assert re.search(r"<td>aten::add[^<]*</td><td>1</td>", text)


def test_graphs_and_programs():
    hlo = pytest.importorskip("lamella.hlo")
    graph = lamella.trace(lambda x: x + 1, lamella.ones(2))
    module = hlo.from_trace(graph)
    for shown, page in ((graph, graph.to_html()), (module, module.to_html())):
        found = re.fullmatch('<iframe srcdoc="([^"]*)" [^<]*></iframe>', shown._repr_html_())
        assert html.unescape(found[1]) == page
    assert hlo.compile(module)._repr_html_().startswith("<iframe srcdoc=")
