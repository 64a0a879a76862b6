"""Rows of the operator table under vmap, against a loop over the examples.

A row is a function of tensors. `check` creates different examples, calls the function on each, and
on all at once under vmap in several ways: all tensors batched, each one alone, along another
dimension, and in two nested vmaps. Results must equal the stacked results of the loop.
"""

from __future__ import annotations

import warnings

import torch
from op_db_mirror import to_torch

import lamella

BATCH = 3


class Refused(Exception):
    """vmap has no answer, and says so: results differ in shape, or are no tensors."""


def vmapped(function, in_dims=0, randomness="different"):
    return lamella.vmap(function, in_dims=in_dims, randomness=randomness)


def leaves_of(value, kind):
    """Tensors of nested lists, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves_of(item, kind)]
    return []


def rebuilt(value, leaves):
    """The same structure with other tensors; `leaves` is an iterator."""
    if isinstance(value, lamella.Tensor):
        return next(leaves)
    if isinstance(value, dict):
        return {key: rebuilt(item, leaves) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(rebuilt(part, leaves) for part in (value.start, value.stop, value.step)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, leaves) for item in value))
    if isinstance(value, (list, tuple)) and not isinstance(value, lamella.Size):
        return type(value)(rebuilt(item, leaves) for item in value)
    return value


class Row:
    """A function of tensors, `leaves`, and its further arguments."""

    def __init__(self, function, arguments):
        self.function = function
        self.arguments = arguments
        given = leaves_of(arguments, lamella.Tensor)
        self.leaves = [leaf.detach() for leaf in given]
        self.wanted = [i for i, leaf in enumerate(given) if leaf.requires_grad]

    def __call__(self, *leaves):
        args, kwargs = rebuilt(self.arguments, iter(leaves))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=".*no batching rule")
            return self.function(*args, **kwargs)

    def results(self, *leaves):
        """Tensors among the results. The rest is no business of vmap's."""
        return tuple(leaves_of(self(*leaves), lamella.Tensor))

    def examples(self):
        """Lists of leaves, one for each example, that differ where the function allows it."""
        made = [self.leaves]
        for k in range(1, BATCH):
            other = [varied(leaf, k) for leaf in self.leaves]
            made.append(other if self.takes(other) else self.leaves)
        return made

    def takes(self, leaves):
        try:
            results = self.results(*leaves)
        except Exception:
            return False
        known = self.results(*self.leaves)
        return [(r.shape, r.dtype) for r in results] == [(r.shape, r.dtype) for r in known]


def varied(leaf, k):
    """Values of the same kind: in range where they are indices, positive where they were."""
    if leaf.dtype.is_floating_point or leaf.dtype.is_complex:
        return (leaf * (1 - 0.11 * k)).to(leaf.dtype)
    if leaf.dim() == 0 or leaf.numel() < 2:
        return leaf
    return leaf.flatten().roll(k).reshape(leaf.shape)


def agree(got, expected, what, values=True, tolerance=1e-5):
    if len(got) != len(expected):
        raise AssertionError(f"{what}: expected {len(expected)} results, got {len(got)}")
    for i, (mine, theirs) in enumerate(zip(got, expected)):
        if tuple(mine.shape) != tuple(theirs.shape):
            raise AssertionError(
                f"{what}: result {i}: expected shape {tuple(theirs.shape)}, got {tuple(mine.shape)}"
            )
        if mine.dtype != theirs.dtype:
            raise AssertionError(f"{what}: result {i}: expected {theirs.dtype}, got {mine.dtype}")
        if not values:
            continue
        try:
            torch.testing.assert_close(
                to_torch(mine), to_torch(theirs), rtol=tolerance, atol=tolerance, equal_nan=True
            )
        except AssertionError as error:
            text = " ".join(str(error).split())
            raise AssertionError(f"{what}: result {i}: {text[:300]}") from None


def looped(row, examples):
    """Results of the examples, stacked. Raises Refused where they cannot be."""
    each = [row.results(*leaves) for leaves in examples]
    shapes = {tuple((tuple(r.shape), str(r.dtype)) for r in results) for results in each}
    if len(shapes) != 1:
        raise Refused("results differ in shape")
    return tuple(lamella.stack([r.detach() for r in column]) for column in zip(*each))


def is_random(row, stacked):
    """Whether vmap asks how random numbers are meant."""
    try:
        vmapped(row.results, randomness="error")(*stacked)
    except RuntimeError as error:
        return "'randomness'" in str(error)
    return False


class Check:
    """The ways to run a row under vmap. Each raises AssertionError where it is not the loop, and
    Refused where vmap says that it has no answer."""

    def __init__(self, row, name, values=True):
        self.row, self.name = row, name
        self.examples = row.examples()
        self.stacked = [lamella.stack(list(column)) for column in zip(*self.examples)]
        self.values = values and not is_random(row, self.stacked)
        wide = all(leaf.dtype != lamella.float32 for leaf in row.leaves)
        self.tolerance = 1e-6 if wide else 1e-4

    def one(self, what, function, leaves, expected):
        what = f"{self.name} {what}"
        try:
            got = function(*leaves)
        except RuntimeError as error:
            if "under vmap" in str(error):
                raise Refused(str(error)) from None
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from None
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from None
        agree(got, expected, what, self.values, self.tolerance)

    def all_batched(self, row=None):
        row = row or self.row
        self.one("all batched", vmapped(row.results), self.stacked, looped(row, self.examples))

    def each_alone(self):
        leaves, stacked = self.row.leaves, self.stacked
        for at in range(min(len(stacked), 4) if len(stacked) > 1 else 0):
            in_dims = tuple(0 if i == at else None for i in range(len(stacked)))
            alone = [[*leaves[:at], x[at], *leaves[at + 1 :]] for x in self.examples]
            if not all(self.row.takes(one) for one in alone):
                continue
            given = [*leaves[:at], stacked[at], *leaves[at + 1 :]]
            function = vmapped(self.row.results, in_dims)
            self.one(f"leaf {at} batched", function, given, looped(self.row, alone))

    def last_dimension(self):
        last = [x.movedim(0, -1) for x in self.stacked]
        function = vmapped(self.row.results, -1)
        self.one("in_dims -1", function, last, looped(self.row, self.examples))

    def nested(self):
        pairs = [lamella.stack([x, x.flip(0)]) for x in self.stacked]
        there, back = looped(self.row, self.examples), looped(self.row, self.examples[::-1])
        expected = tuple(lamella.stack([x, y]) for x, y in zip(there, back))
        self.one("nested", vmapped(vmapped(self.row.results)), pairs, expected)

    def inplace(self, function):
        """The same with a function that writes its first argument, of which it gets a copy."""

        def copied(first, *args, **kwargs):
            return function(first.clone(), *args, **kwargs)

        (first, *rest), kwargs = self.row.arguments
        row = Row(lambda args, **kw: copied(*args, **kw), [[[first, *rest]], kwargs])
        if row.takes(row.leaves):
            self.all_batched(row)

    def out(self):
        """Written into tensors that are given."""
        shapes = [(tuple(r.shape), r.dtype) for r in self.row.results(*self.row.leaves)]

        def into(*args, **kwargs):
            like = leaves_of([args, kwargs], lamella.Tensor)[0]
            given = tuple(like.new_empty(shape, dtype=dtype) for shape, dtype in shapes)
            self.row.function(*args, **kwargs, out=given if len(given) > 1 else given[0])
            return given

        row = Row(into, self.row.arguments)
        if row.takes(row.leaves):
            self.all_batched(row)

    def gradients(self):
        """Gradients of each example, by a backward under vmap."""
        leaves, wanted = self.row.leaves, self.row.wanted

        def gradient(*given):
            inputs = [given[i].detach().requires_grad_() for i in wanted]
            every = list(given)
            for i, leaf in zip(wanted, inputs):
                every[i] = leaf
            outputs = [r for r in self.row.results(*every) if r.requires_grad]
            found = lamella.autograd.grad(
                outputs, inputs, [weights(r) for r in outputs], allow_unused=True
            )
            return tuple(g for g in found if g is not None)

        row = Row(lambda args: gradient(*args), [[leaves], {}])
        row.results = lambda *given: gradient(*given)
        if wanted and works(gradient, leaves):
            self.all_batched(row)

    def cotangents(self):
        """vmap over the incoming gradients of one plain graph, as jacrev does."""
        leaves, wanted = list(self.row.leaves), self.row.wanted
        inputs = [leaves[i].detach().requires_grad_() for i in wanted]
        for i, leaf in zip(wanted, inputs):
            leaves[i] = leaf
        outputs = [r for r in self.row.results(*leaves) if r.requires_grad]
        if not wanted or not outputs:
            return

        def gradient(*incoming):
            found = lamella.autograd.grad(
                outputs, inputs, incoming, retain_graph=True, allow_unused=True
            )
            return tuple(g for g in found if g is not None)

        row = Row(lambda args: gradient(*args), [[[weights(r) for r in outputs]], {}])
        row.results = gradient
        check = Check.__new__(Check)
        check.row, check.name, check.values = row, f"{self.name} cotangents", self.values
        check.tolerance = self.tolerance
        check.examples = [[w * (1 - 0.3 * k) for w in row.leaves] for k in range(BATCH)]
        check.stacked = [lamella.stack(list(column)) for column in zip(*check.examples)]
        if works(gradient, row.leaves):
            check.all_batched()


def works(gradient, leaves):
    """Whether there are gradients, without vmap."""
    try:
        return bool(gradient(*leaves))
    except (RuntimeError, NotImplementedError):
        return False


def weights(result):
    """Other numbers for each element, the same for all examples."""
    count = result.numel()
    numbers = lamella.arange(count, dtype=lamella.float64).mul(0.37).sin().add(1.5)
    return numbers.reshape(result.shape).to(result.dtype)
