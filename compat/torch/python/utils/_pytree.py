"""torch.utils._pytree: lamella.utils._pytree, with paths to leaves and PyTorch's names."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from lamella.compat._fallback import names_of
from lamella.utils import _pytree as own
from lamella.utils._pytree import TreeSpec

PyTree = Any
Context = Any
KeyPath = tuple[Any, ...]
PyTreeSpec = TreeSpec

__getattr__, __dir__ = names_of("utils._pytree")


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The index of a child in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The attribute name of a child."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


def _keys(node: Any, count: int) -> list[Any]:
    """The key of each child of a node."""
    if isinstance(node, dict):
        return [MappingKey(key) for key in node]
    if hasattr(node, "_fields"):
        return [GetAttrKey(name) for name in node._fields]
    named = _keyed.get(type(node))
    if named is not None:
        return [key for key, _ in named(node)[0]]
    return [SequenceKey(i) for i in range(count)]


# For each class registered with one, a function that returns a node's (key, child) pairs.
_keyed: dict[type, Callable[[Any], Any]] = {}
# The functions that flatten and rebuild nodes, by class.
SUPPORTED_NODES = own._kinds


def _get_node_type(tree: Any) -> Any:
    """The key in SUPPORTED_NODES for a node."""
    kind = own._kind_of(tree)[0]
    return namedtuple if kind is own.NamedTuple else kind


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], Any],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
    **serialization: Any,
) -> None:
    """Registers a class (without its subclasses) as a node type: flatten_fn returns (children,
    context)."""
    own.register_pytree_node(cls, flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        _keyed[cls] = flatten_with_keys_fn


def _register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, *serialization: Any, **options: Any
) -> None:
    """register_pytree_node(), unless the class is already registered."""
    if cls not in own._kinds:
        own.register_pytree_node(cls, flatten_fn, unflatten_fn)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Registers a data class as a node type, with its fields as children."""
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init]
    names = [name for name in names if name not in (drop_field_names or ())]

    def flatten(node: Any) -> tuple[list[Any], Any]:
        return [getattr(node, name) for name in names], None

    def with_keys(node: Any) -> tuple[list[Any], Any]:
        return [(GetAttrKey(name), getattr(node, name)) for name in names], None

    register_pytree_node(
        cls,
        flatten,
        lambda children, _: cls(**dict(zip(names, children))),
        flatten_with_keys_fn=with_keys,
    )


def _with_paths(
    tree: Any, path: KeyPath, is_leaf: Callable[[Any], bool] | None, found: list[Any]
) -> None:
    _, kind = own._kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        found.append((path, tree))
        return
    children = list(kind.flatten_fn(tree)[0])
    for key, child in zip(_keys(tree, len(children)), children):
        _with_paths(child, (*path, key), is_leaf, found)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with its path of keys."""
    found: list[Any] = []
    _with_paths(tree, (), is_leaf, found)
    return found


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with their paths, and the spec for tree_unflatten."""
    return tree_leaves_with_path(tree, is_leaf), own.tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The nest with each leaf replaced by func(path, leaf, ...)."""
    paths = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    left = iter(paths)
    return own.tree_map(lambda *leaves: func(next(left), *leaves), tree, *rests, is_leaf=is_leaf)


def keystr(kp: KeyPath) -> str:
    """A path as Python text, such as [0].name."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The object at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Iterates over the leaves."""
    return iter(own.tree_leaves(tree, is_leaf))


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """True if pred(leaf) is true for all leaves."""
    return all(map(pred, own.tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """True if pred(leaf) is true for a leaf."""
    return any(map(pred, own.tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """True if pred(leaf) is true for all leaves of these types."""
    leaves = own.tree_leaves(tree, is_leaf)
    return all(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """True if pred(leaf) is true for a leaf of these types."""
    leaves = own.tree_leaves(tree, is_leaf)
    return any(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_map_only_(
    type_or_types: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func(leaf) for the leaves of these types; returns the nest unchanged."""
    for leaf in own.tree_leaves(tree, is_leaf):
        if isinstance(leaf, type_or_types):
            func(leaf)
    return tree


def is_namedtuple_class(cls: Any) -> bool:
    """True for a named-tuple class."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """True for a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: Any) -> bool:
    """True for the result class of an operator, or for a CPython class of that kind."""
    return is_namedtuple_class(cls) is False and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: Any) -> bool:
    """True for an instance of such a class."""
    return is_structseq_class(type(obj))


is_structseq = is_structseq_instance


def is_namedtuple(obj: Any) -> bool:
    """True for a named tuple or a named-tuple class."""
    return is_namedtuple_class(obj) or is_namedtuple_instance(obj)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if the object is a leaf."""
    return own._kind_of(tree)[1] is None or (is_leaf is not None and is_leaf(tree))


def _flatten_mapping(node: Any) -> tuple[list[Any], Any]:
    return list(node.values()), list(node.keys())


def _dict_flatten_with_keys(node: Any) -> tuple[list[Any], Any]:
    """(key, child) pairs of a dictionary, and its keys."""
    return [(MappingKey(key), value) for key, value in node.items()], list(node.keys())


_dict_flatten = _flatten_mapping


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    """The dictionary with these values and keys."""
    return dict(zip(context, values))


def _list_flatten(node: Any) -> tuple[list[Any], Any]:
    """The entries of a list."""
    return node, None


def _list_flatten_with_keys(node: Any) -> tuple[list[Any], Any]:
    """(key, child) pairs of a list."""
    return [(SequenceKey(i), value) for i, value in enumerate(node)], None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    """The list with these entries."""
    return list(values)


BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of the arguments of a call."""
    return list(own.tree_leaves((args, kwargs)))
