"""Functions that read state, and changes of it: rows of test_compile_reads.py. What they share."""

import pytest

from lamella import nn

WAYS = []


def way(make):
    """make() gives a function or module of one tensor, and a change of what it reads."""
    WAYS.append(pytest.param(make, id=make.__name__))
    return make


class Box:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Net(nn.Module):
    """A module that multiplies by what `read(self)` gives."""

    def __init__(self, read, **attributes):
        super().__init__()
        self.read = read
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x):
        return x * self.read(self)


TABLE = {"scale": 1.0, "deep": {"list": [1.0, {"x": 2.0}]}}


def multiply(x, by=1.0):
    return x * by
