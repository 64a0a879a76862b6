"""Operators of random schemas, through every door, against the sums that they stand for."""

import numpy as np
import pytest

import lamella


def close(found, expected):
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        np.testing.assert_allclose(np.asarray(x), y, rtol=2e-5, atol=1e-4)


def test_lamella(library, case):
    op = getattr(lamella.ops.random_cases, case.name)
    made = op(*case.arguments(lambda x: lamella.tensor(x)))
    close(
        [y.numpy() for y in (made if isinstance(made, (list, tuple)) else [made])], case.expected()
    )


def test_dlpack(library, case):
    op = getattr(lamella.bridge.dlpack(library).random_cases, case.name)
    close(op(*case.arguments(lambda x: x)), case.expected())


def test_torch(library, case):
    torch = pytest.importorskip("torch")
    op = getattr(lamella.bridge.torch(library).random_cases, case.name)
    leaves = []

    def leaf(x):
        leaves.append(torch.tensor(x, requires_grad=True))
        return leaves[-1]

    made = op(*case.arguments(leaf))
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    close([y.detach() for y in made], case.expected())
    grads = torch.autograd.grad(made[0].sum(), leaves)
    for weight, grad in zip(case.weights(), grads):
        np.testing.assert_allclose(grad, np.full(3, weight), rtol=1e-6)
    with torch.no_grad():
        close(op(*case.arguments(torch.tensor)), case.expected())


def test_jax(library, case):
    jax = pytest.importorskip("jax")
    op = getattr(lamella.bridge.jax(library).random_cases, case.name)
    close(op(*case.arguments(jax.numpy.asarray)), case.expected())

    def first(xs):
        left = iter(xs)
        made = op(*case.arguments(lambda _: next(left)))
        return (made[0] if isinstance(made, (list, tuple)) else made).sum()

    grads = jax.jit(jax.grad(first))([jax.numpy.asarray(x) for x in case.tensors])
    for weight, grad in zip(case.weights(), grads):
        np.testing.assert_allclose(grad, np.full(3, weight), rtol=1e-6)
