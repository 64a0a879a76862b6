"""liblamella_bridge.so, and the texts by which derived calls are named."""

import math
import os
import pathlib
import subprocess
import sys

import pytest

from lamella import _paths
from lamella.bridge import _transform
from lamella.bridge._transform import Chain, Named, Place


def test_no_symbol_of_a_framework():
    library = os.path.join(_paths.library_paths()[0], "liblamella_bridge.so")
    names = subprocess.check_output(["nm", "-D", "--undefined-only", library], text=True)
    assert "lamella_call_boxed" in names and "lamella::" not in names
    assert not [
        n for n in names.split() if n.startswith("Py") or "torch" in n or "xla" in n.lower()
    ]


def test_chains_are_text():
    values = (
        1,
        -2.5,
        -0.0,
        math.inf,
        -math.inf,
        1 - 2j,
        complex(-0.0, 3),
        None,
        True,
        "it's",
        (1, ()),
    )
    chain = Chain("ns::op.x", (Place((0, -1), True), Named("dtype", "float32"), *values), ())
    chain = chain.then("vjp", (0,), (1, 2)).then("vmap", (True, False))
    assert _transform.parse(chain.text()) == chain
    assert repr(_transform.parse(chain.text())) == repr(chain)
    nan = _transform.parse(Chain("a::b", (math.nan,), ()).text()).template[0]
    assert math.isnan(nan)


@pytest.mark.parametrize(
    "text", ["'a' + 'b'", "__import__('os')", "Chain.__class__", "[1]", "Chain(1, 2, 3)"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="bridge: expected the text of a chain"):
        _transform.parse(text)


def test_the_table_of_the_documentation(library):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    here = pathlib.Path(__file__).resolve().parent
    command = [sys.executable, str(here / "matrix.py"), str(library)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in (here.parents[1] / "docs/bridge.md").read_text()
