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


def test_c_functions_of_dlpack(ops):
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0).reshape(2, 3).t()
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("before DLPack 1.3")
    made = ops.cube(x)
    assert type(made) is torch.Tensor and torch.equal(made, x**3)
    assert torch.equal(ops.midpoint(x, x + 1, 0.25), x + 0.25)
    assert torch.equal(ops.wave(x, None), 2 * x.sin()) and ops.fail is not None
    assert ops.same(x).data_ptr() != x.data_ptr() and torch.equal(ops.same(x), x)
    with pytest.raises(TypeError, match="fail: expected 'kind' to be kind, got type"):
        ops.fail(x, "type")
    with pytest.raises(RuntimeError, match=r"midpoint: expected 'b' to have the shape \[3, 2\]"):
        ops.midpoint(x, torch.ones(1))
    with pytest.raises(BufferError, match="negated lazily"):
        ops.cube(torch._neg_view(x))
    assert torch.equal(ops.midpoint(x, np.ones((3, 2), np.float32), 1.0), torch.ones(3, 2))
    # What they do not say is asked of the tensor.
    with pytest.raises((RuntimeError, BufferError), match="require"):
        ops.cube(x.clone().requires_grad_())
    z = torch.tensor([1 + 2j, 3j])
    with pytest.raises((RuntimeError, BufferError), match="conj"):
        ops.wave(z.conj(), by=1.0)
    assert torch.equal(ops.wave(z, by=1.0), z.sin())
    before = x.untyped_storage()._use_count() if hasattr(x.untyped_storage(), "_use_count") else 0
    for _ in range(100):
        ops.cube(x)
    if before:
        assert x.untyped_storage()._use_count() == before


def test_errors(ops):
    with pytest.raises(RuntimeError, match=r"midpoint: expected 'b' to have the shape \[4\], got"):
        ops.midpoint(np.ones(4), np.ones(3))
    with pytest.raises(TypeError, match="fail: expected 'kind' to be kind, got type"):
        ops.fail(np.ones(1), "type")
    with pytest.raises(OSError, match="nothing.so"):
        lamella.bridge.dlpack("/nothing.so")
