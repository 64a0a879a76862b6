"""Flattens trees of lists, tuples, dictionaries and named tuples, and rebuilds them.

leaves, spec = tree_flatten({"a": [x, y], "b": z})
tree_unflatten(leaves, spec)
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lamella._C import Size

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "register_pytree_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]


class _Kind(NamedTuple):
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


_kinds: dict[Any, _Kind] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
) -> None:
    """Makes objects of exactly this class nodes of trees: flatten_fn returns (children, context),
    from which unflatten_fn rebuilds the object."""
    if cls in _kinds:
        raise ValueError(f"register_pytree_node: {cls.__qualname__} is registered already")
    _kinds[cls] = _Kind(flatten_fn, unflatten_fn)


def _flatten_dict(node: dict[Any, Any]) -> tuple[list[Any], Any]:
    return list(node.values()), list(node)


register_pytree_node(list, lambda node: (node, None), lambda items, _: list(items))
register_pytree_node(tuple, lambda node: (list(node), None), lambda items, _: tuple(items))
register_pytree_node(Size, lambda node: (list(node), None), lambda items, _: tuple(items))
register_pytree_node(dict, _flatten_dict, lambda items, keys: dict(zip(keys, items)))
register_pytree_node(OrderedDict, _flatten_dict, lambda items, keys: OrderedDict(zip(keys, items)))
register_pytree_node(
    defaultdict,
    lambda node: (list(node.values()), (node.default_factory, list(node))),
    lambda items, context: defaultdict(context[0], zip(context[1], items)),
)
register_pytree_node(
    deque, lambda node: (list(node), node.maxlen), lambda items, length: deque(items, length)
)
# Named tuples, and the struct sequences of operators with several results, whose constructor takes
# one sequence. They are recognized by their attributes; the context is the class.
_named = _Kind(
    lambda node: (list(node), type(node)),
    lambda items, cls: cls(*items) if hasattr(cls, "_fields") else cls(items),
)


def _kind_of(tree: Any) -> tuple[Any, _Kind | None]:
    cls = type(tree)
    kind = _kinds.get(cls)
    if (
        kind is None
        and issubclass(cls, tuple)
        and (hasattr(cls, "_fields") or hasattr(cls, "n_sequence_fields"))
    ):
        return NamedTuple, _named
    return cls, kind


class TreeSpec:
    """The structure of a tree: its type, the context that rebuilds it, and its children's specs."""

    __slots__ = ("children_specs", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_leaves: int = sum(child.num_leaves for child in children_specs) if type else 1

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    @property
    def num_children(self) -> int:
        """The number of children."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of nodes and leaves, including this one."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the leaves of this spec; ValueError if the structure does not
        match."""
        found = _up_to(self, tree)
        if found is None:
            raise ValueError(
                f"flatten_up_to: expected a nest of {self}, got {tree_structure(tree)}"
            )
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", str(self.type))
        return f"TreeSpec({name}, {self.context}, {self.children_specs})"


def LeafSpec() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF


_LEAF = TreeSpec(None, None, [])


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the spec that tree_unflatten needs."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    cls, kind = _kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = kind.flatten_fn(tree)
    return TreeSpec(cls, context, [_flatten(child, leaves, is_leaf) for child in children])


def _up_to(spec: TreeSpec, tree: Any) -> list[Any] | None:
    """The subtrees of `tree` at the leaves of `spec`; None if the structure does not match."""
    if spec.type is None:
        return [tree]
    cls, kind = _kind_of(tree)
    if kind is None or cls is not spec.type:
        return None
    children, context = kind.flatten_fn(tree)
    if context != spec.context:
        if not isinstance(tree, dict) or set(tree) != set(spec.context):
            return None
        children = [tree[key] for key in spec.context]
    found: list[Any] = []
    for child_spec, child in zip(spec.children_specs, children):
        part = _up_to(child_spec, child)
        if part is None:
            return None
        found += part
    return found if len(spec.children_specs) == len(list(children)) else None


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree with this spec and these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected 'leaves' to have {treespec.num_leaves} items, "
            f"got {len(leaves)}"
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    kind = _named if spec.type is NamedTuple else _kinds[spec.type]
    return kind.unflatten_fn(
        [_unflatten(leaves, child) for child in spec.children_specs], spec.context
    )


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The tree with func(leaf, ...) for each leaf. `rests` are trees of the same structure, which
    may have subtrees at the leaves of `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        parts = _up_to(spec, rest)
        if parts is None:
            got = tree_structure(rest, is_leaf)
            raise ValueError(f"tree_map: expected nests of one structure, got {spec}, {got}")
        others.append(parts)
    return _unflatten(iter([func(*row) for row in zip(leaves, *others)]), spec)


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Calls func on each leaf and returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The tree with func(leaf) for the leaves of these types."""

    def apply(leaf: Any) -> Any:
        return func(leaf) if isinstance(leaf, type_or_types) else leaf

    return tree_map(apply, tree, is_leaf=is_leaf)
