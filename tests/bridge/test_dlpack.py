"""lamella.bridge.dlpack: operators of a library on arrays of any kind."""

import numpy as np
import pytest

import lamella


def test_numpy(ops):
    a, b = np.arange(4.0), np.ones(4)
    made = ops.midpoint(a, b, 0.25)
    assert type(made) is np.ndarray and made.tolist() == (a + 0.25 * (b - a)).tolist()
    assert ops.midpoint(a.astype(np.float32), b.astype(np.float32)).dtype == np.float32
    out = np.empty(4)
    assert ops.midpoint(a, b, 0.25, out=out) is out and out.tolist() == made.tolist()
    first, cosine, n = ops.pair(a, 2)
    assert n == 3 and first.tolist() == [0, 2, 4, 6]
    np.testing.assert_allclose(cosine, np.cos(a))
    assert [x.tolist() for x in ops.parts(a, [1, 2], "first")] == [[0], [0, 1]]
    assert ops.scaled(a, 2j).tolist() == [0, 2j, 4j, 6j]


def test_memory(ops):
    a = np.arange(4.0)
    assert not np.shares_memory(ops.same(a), a)
    assert np.shares_memory(ops.row(a.reshape(2, 2), 1), a)
    assert ops.raise_by_(a, 1.0) is a and a.tolist() == [1, 2, 3, 4]


def test_other_kinds(ops):
    torch = pytest.importorskip("torch")
    x = torch.arange(3.0)
    assert torch.equal(ops.cube(x), x**3)
    assert ops.raise_by_(x, 1.0) is x and x.tolist() == [1, 2, 3]
    assert type(ops.cube(lamella.ones(2))) is lamella.Tensor
    jax = pytest.importorskip("jax")
    assert isinstance(ops.cube(jax.numpy.ones(2)), jax.Array)


def test_errors(ops):
    with pytest.raises(RuntimeError, match=r"midpoint: expected 'b' to have the shape \[4\], got"):
        ops.midpoint(np.ones(4), np.ones(3))
    with pytest.raises(TypeError, match="fail: expected 'kind' to be kind, got type"):
        ops.fail(np.ones(1), "type")
    with pytest.raises(OSError, match="nothing.so"):
        lamella.bridge.dlpack("/nothing.so")
