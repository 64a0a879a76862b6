"""Functions and tensors for the tests of lamella.autograd.Function."""

import lamella
from lamella.autograd import Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * n(2.0)


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def run(y, **options):
    y.backward(lamella.ones_like(y), **options)


def n(value):
    return lamella.tensor(value, dtype=lamella.float64)


def leaf(*values):
    return lamella.tensor(values, dtype=lamella.float64, requires_grad=True)
