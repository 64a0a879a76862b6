"""Helpers of the Python tests."""

import itertools

import pytest

import lamella

_numbers = itertools.count()


class Recorder:
    """Operators that record their arguments."""

    def __init__(self):
        self.ns = f"recorded{next(_numbers)}"
        self.library = lamella.library.Library(self.ns, "DEF")
        self.calls = []

    def define(self, schema):
        """Defines an operator without results; returns its packet."""
        name = schema.partition("(")[0]
        self.library.define(f"{schema} -> ()")

        def kernel(*args, **kwargs):
            self.calls.append((name, args, kwargs))

        self.library.impl(name, kernel, "CompositeImplicitAutograd")
        return getattr(getattr(lamella.ops, self.ns), name.partition(".")[0])

    @property
    def last(self):
        name, args, kwargs = self.calls[-1]
        return args if not kwargs else (*args, kwargs)

    @property
    def overload(self):
        return self.calls[-1][0].partition(".")[2]


@pytest.fixture
def recorder():
    made = Recorder()
    yield made
    made.library.close()
