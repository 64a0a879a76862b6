"""SciPy and scikit-learn compute on tensors as on NumPy arrays; skipped without them."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, warnings
library = sys.argv[1]
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore")
import numpy as np
import lamella
import lamella.array_api as xp
import array_api_peers as peers
if library == "sklearn":
    import sklearn
    sklearn.set_config(array_api_dispatch=True)
count = 0
for name, function in peers.rows(library).items():
    if "fft" in name or "hilbert" in name:
        if not hasattr(lamella.fft, "fft"):
            continue
    got, want = peers.parts(function(xp)), peers.parts(function(np))
    assert len(got) == len(want), name
    for x, y in zip(got, want):
        # Metrics are Python's numbers for every library.
        assert isinstance(x, lamella.Tensor) or isinstance(x, (int, float)), (name, type(x))
        assert isinstance(x, lamella.Tensor) or library == "sklearn", (name, type(x))
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-7, atol=1e-9, err_msg=name)
    count += 1
print(count)
"""


@pytest.mark.parametrize(("library", "at_least"), [("scipy", 34), ("sklearn", 26)])
def test_peers(library, at_least):
    pytest.importorskip(library)
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", PROGRAM, library, os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= at_least


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    import lamella

    x = lamella.arange(6.0).reshape(2, 3)
    xp = compat.array_namespace(x, x)
    assert xp is lamella.array_api and xp.__array_api_version__ == "2025.12"
    assert compat.size(x) == 6 and compat.device(x) == x.device
    assert compat.to_device(x, "cpu").tolist() == x.tolist()


def test_array_api_extra():
    extra = pytest.importorskip("array_api_extra")
    import lamella

    x = lamella.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 3.0]])
    assert extra.nunique(x).tolist() == 5
    assert extra.cov(x).shape == (2, 2)
    assert extra.pad(x, 1).shape == (4, 5)
    assert extra.kron(x, x).shape == (4, 9)
    assert extra.atleast_nd(lamella.tensor(1.0), ndim=2).shape == (1, 1)
    assert extra.one_hot(lamella.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert extra.at(x)[0, :].set(7.0)[0].tolist() == [7.0] * 3
