"""Rows of the operator table under vmap, beside a loop over the examples.

A row is a function of tensors. `check` makes examples that differ, calls the function on each, and
on all at once under vmap in several ways: every tensor batched, each one alone, along another
dimension, and in two vmaps, one in the other. Results must be those of the loop, stacked.
"""

from __future__ import annotations

import contextlib
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
    """A function of tensors, `leaves`, and what it is called with besides."""

    def __init__(self, function, arguments):
        self.function = function
        self.arguments = arguments
        self.leaves = [leaf.detach() for leaf in leaves_of(arguments, lamella.Tensor)]

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


def check(row, name, values=True, thorough=True):
    """Raises AssertionError where vmap and loop differ, Refused where there is nothing to compare."""
    examples = row.examples()
    if not row.leaves:
        raise Refused("no tensors")
    if not row.results(*row.leaves):
        raise Refused("no tensors among the results")
    tolerance = 1e-4 if any(leaf.dtype == lamella.float32 for leaf in row.leaves) else 1e-6
    stacked = [lamella.stack(list(column)) for column in zip(*examples)]

    def one(what, function, leaves, expected):
        try:
            got = function(*leaves)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{name} {what}: {type(error).__name__}: {error}") from None
        agree(got, expected, f"{name} {what}", values, tolerance)

    one("all batched", vmapped(row.results), stacked, looped(row, examples))
    if not thorough:
        return
    if len(stacked) > 1:
        for at in range(min(len(stacked), 4)):
            in_dims = tuple(0 if i == at else None for i in range(len(stacked)))
            alone = [row.leaves[:at] + [x[at]] + row.leaves[at + 1 :] for x in examples]
            given = row.leaves[:at] + [stacked[at]] + row.leaves[at + 1 :]
            with contextlib.suppress(Refused):
                if all(row.takes(leaves) for leaves in alone):
                    one(
                        f"leaf {at} batched",
                        vmapped(row.results, in_dims),
                        given,
                        looped(row, alone),
                    )
    last = [x.movedim(0, -1) for x in stacked]
    one("batched in the last dimension", vmapped(row.results, -1), last, looped(row, examples))
    pairs = [lamella.stack([x, x.flip(0)]) for x in stacked]
    both = looped(row, examples)
    turned = looped(row, examples[::-1])
    expected = tuple(lamella.stack([x, y]) for x, y in zip(both, turned))
    one("nested", vmapped(vmapped(row.results)), pairs, expected)
