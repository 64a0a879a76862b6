"""Pytrees: flattening and rebuilding nested containers."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from lamella.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


def test_round_trip():
    tree = {
        "a": [1, (2, 3)],
        "b": Point(4, [5]),
        "c": OrderedDict(d=6),
        "e": deque([7], maxlen=2),
        "f": defaultdict(list, g=8),
        "h": None,
    }
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, 6, 7, 8, None]
    assert spec.num_leaves == 9
    made = pytree.tree_unflatten(leaves, spec)
    assert made == tree
    assert type(made["b"]) is Point
    assert type(made["c"]) is OrderedDict
    assert made["e"].maxlen == 2
    assert made["f"].default_factory is list


def test_against_torch():
    theirs = pytest.importorskip("torch.utils._pytree")
    for tree in (3, [], (), {}, [1, {"b": 2, "a": (3,)}], Point([1], 2), ([[[]]], {"x": {}})):
        leaves, spec = pytree.tree_flatten(tree)
        assert leaves == theirs.tree_flatten(tree)[0]
        assert spec.num_leaves == theirs.tree_structure(tree).num_leaves
        assert pytree.tree_unflatten(leaves, spec) == tree


def test_maps():
    assert pytree.tree_map(lambda a, b: a + b, [1, {"x": 2}], [10, {"x": 20}]) == [11, {"x": 22}]
    assert pytree.tree_map_only(int, lambda a: -a, (1, "a", [2])) == (-1, "a", [-2])
    assert pytree.tree_leaves([[1, 2], [3]], is_leaf=lambda t: t == [1, 2]) == [[1, 2], 3]
    with pytest.raises(ValueError, match="expected nests of one structure"):
        pytree.tree_map(lambda a, b: a, [1], (1,))
    with pytest.raises(ValueError) as error:
        pytree.tree_unflatten([1, 2], pytree.tree_structure([1]))
    assert str(error.value) == "tree_unflatten: expected 'leaves' to have 1 items, got 2"


def test_specs():
    assert pytree.tree_structure([1, (2,)]) == pytree.tree_structure([3, (4,)])
    assert pytree.tree_structure({"a": 1}) != pytree.tree_structure({"b": 1})
    assert pytree.tree_structure(Point(1, 2)) != pytree.tree_structure((1, 2))
    assert pytree.tree_structure(1).is_leaf()
    assert repr(pytree.tree_structure([1, {"a": 2}])) == (
        "TreeSpec(list, None, [*, TreeSpec(dict, ['a'], [*])])"
    )


def test_nodes_of_ones_own():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda items, _: Pair(*items))
    made = pytree.tree_map(lambda x: x * 2, [Pair(1, (2,))])
    assert (made[0].a, made[0].b) == (2, (4,))
    with pytest.raises(ValueError, match="is registered already"):
        pytree.register_pytree_node(Pair, None, None)
