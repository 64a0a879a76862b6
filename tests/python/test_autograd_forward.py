"""Forward mode, and the functions of lamella.autograd.functional."""

import pytest

import lamella
from lamella.autograd import forward_ad, functional

F64 = lamella.float64


def tensor(*values):
    return lamella.tensor(values, dtype=F64)


def test_dual_tensors():
    x, t = tensor(1.0, 2.0), tensor(3.0, 4.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        primal, tangent = forward_ad.unpack_dual(dual)
        assert primal.tolist() == x.tolist() and tangent.tolist() == t.tolist()
        y = forward_ad.unpack_dual(dual * dual)
        assert y.primal.tolist() == [1.0, 4.0] and y.tangent.tolist() == [6.0, 16.0]
        plain = forward_ad.unpack_dual(x * tensor(2.0))
        assert plain.tangent is None
    assert forward_ad.unpack_dual(dual).tangent is None


def test_tangents_pass_through_no_grad():
    with forward_ad.dual_level(), lamella.no_grad():
        dual = forward_ad.make_dual(tensor(2.0), tensor(1.0))
        assert forward_ad.unpack_dual(dual * tensor(3.0)).tangent.tolist() == [3.0]


def test_forward_over_reverse():
    x = tensor(2.0).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tensor(1.0))
        (g,) = lamella.autograd.grad(dual * dual * dual, dual, create_graph=True)
        value, tangent = forward_ad.unpack_dual(g)
        assert value.tolist() == [12.0] and tangent.tolist() == [12.0]


def test_levels():
    with pytest.raises(RuntimeError, match="make_dual: expected a level to be open"):
        forward_ad.make_dual(tensor(1.0), tensor(1.0))
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="enter_dual_level: expected no other level"):
            forward_ad.enter_dual_level()
        with pytest.raises(ValueError, match="make_dual: expected 'tensor' to be floating-point"):
            forward_ad.make_dual(lamella.ones(1, dtype=lamella.int64), tensor(1.0))
        with pytest.raises(RuntimeError, match="make_dual: expected 'tangent' to have the shape"):
            forward_ad.make_dual(tensor(1.0), tensor(1.0, 2.0))
        dual = forward_ad.make_dual(tensor(1.0), tensor(1.0))
        with pytest.raises(RuntimeError, match="make_dual: expected 'tensor' to have no tangent"):
            forward_ad.make_dual(dual, tensor(1.0))
    with pytest.raises(RuntimeError, match="exit_dual_level: expected 'level' to be the one"):
        forward_ad.exit_dual_level()


# ---- functional ----


def cube(x):
    return x * x * x


def test_vjp_and_jvp():
    x, v = tensor(1.0, 2.0), tensor(1.0, 10.0)
    y, product = functional.vjp(cube, x, v)
    assert y.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    y, product = functional.jvp(cube, x, v)
    assert y.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    assert not product.requires_grad


def test_jacobian():
    x = tensor(1.0, 2.0)
    assert functional.jacobian(cube, x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    rows = functional.jacobian(lambda a, b: (a * b, a[0] + a[1]), (x, tensor(3.0, 4.0)))
    assert rows[0][0].tolist() == [[3.0, 0.0], [0.0, 4.0]]
    assert rows[1][0].tolist() == [1.0, 1.0] and rows[1][1].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="jacobian: expected the outputs to depend on all"):
        functional.jacobian(lambda a, b: a * tensor(1.0), (x, x), strict=True)


def test_hessian():
    x = tensor(1.0, 2.0)

    def function(x):
        y = cube(x)
        return (y[0] + y[1]) * x[0]

    rows = functional.hessian(function, x).tolist()
    assert rows == [[12.0, 12.0], [12.0, 12.0]]
    _, product = functional.vhp(function, x, tensor(1.0, 0.0))
    assert product.tolist() == [12.0, 12.0]
    _, product = functional.hvp(function, x, tensor(0.0, 1.0))
    assert product.tolist() == [12.0, 12.0]


def test_graphs_of_functional():
    x = tensor(2.0).requires_grad_()
    product = functional.vjp(cube, x, create_graph=True)[1]
    product.backward()
    assert x.grad.tolist() == [12.0]


def test_wrong_vectors():
    with pytest.raises(RuntimeError, match="vjp: expected 'v'"):
        functional.vjp(cube, tensor(1.0, 2.0))
    with pytest.raises(RuntimeError, match="jvp: expected 'v' to have the shapes of the inputs"):
        functional.jvp(cube, tensor(1.0, 2.0), tensor(1.0))
    with pytest.raises(TypeError, match="vjp: expected 'inputs' to be a Tensor"):
        functional.vjp(cube, 3.0)
