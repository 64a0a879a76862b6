"""Transforms compute derivatives even under no_grad."""

import pytest

import lamella
from lamella.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

X, V = lamella.tensor([1.0, 2.0, 3.0]), lamella.ones(3)


def cubes(x):
    return (x**3).sum()


CASES = {
    "grad": (lambda: grad(cubes)(X), [3, 12, 27]),
    "jvp of grad": (lambda: jvp(grad(cubes), (X,), (V,))[1], [6, 12, 18]),
    "jvp of vjp": (lambda: jvp(lambda y: vjp(lambda x: x**3, y)[1](V)[0], (X,), (V,))[1],
     [6, 12, 18]),
    "vmap of jvp of grad": (lambda: vmap(lambda t: jvp(grad(cubes), (X,),
       (t,))[1])(V[None])[0], [6, 12, 18]),
    "hessian": (lambda: hessian(cubes)(X).diagonal(), [6, 12, 18]),
    "jacfwd of jacrev": (lambda: jacfwd(jacrev(cubes))(X).diagonal(), [6, 12, 18]),
    "linearize of grad": (lambda: linearize(grad(cubes), X)[1](V), [6, 12, 18]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    made, wanted = CASES[name]
    with lamella.no_grad():
        found = made()
    assert found.tolist() == wanted
    assert not found.requires_grad


def test_outputs_keep_no_graph_of_the_parameters():
    weight = V.clone().requires_grad_(True)
    with lamella.no_grad():
        value, tangent = jvp(lambda x: weight * x, (X,), (V,))
    assert not value.requires_grad and not tangent.requires_grad
    value, tangent = jvp(lambda x: weight * x, (X,), (V,))
    assert value.requires_grad and tangent.requires_grad


@pytest.mark.parametrize("name", CASES)
def test_case_below_excluded_keys(name):
    made, wanted = CASES[name]
    keys = lamella._C._dispatch_functionality_bits("Autograd")
    before = lamella._C._thread_keys()
    lamella._C._exclude_keys(keys, True)
    try:
        excluded = lamella._C._thread_keys()
        assert made().tolist() == wanted
        assert lamella._C._thread_keys() == excluded
    finally:
        lamella._C._exclude_keys(keys, False)
    assert lamella._C._thread_keys() == before
