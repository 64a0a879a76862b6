"""torch.utils._pytree: lamella.utils._pytree, with paths to leaves and names of PyTorch's."""

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
    """The place of a child in a list or tuple."""

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
    """The name of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


def _keys(node: Any, count: int) -> list[Any]:
    """A key for each child of a node."""
    if isinstance(node, dict):
        return [MappingKey(key) for key in node]
    if hasattr(node, "_fields"):
        return [GetAttrKey(name) for name in node._fields]
    named = _keyed.get(type(node))
    if named is not None:
        return [key for key, _ in named(node)[0]]
    return [SequenceKey(i) for i in range(count)]


# What gives (key, child) pairs of nodes of classes that were registered with it.
_keyed: dict[type, Callable[[Any], Any]] = {}
# What takes nodes apart and builds them, by class.
SUPPORTED_NODES = own._kinds


def _get_node_type(tree: Any) -> Any:
    """The type under which SUPPORTED_NODES has a node."""
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
    """Makes objects of exactly this class nodes: flatten_fn gives (children, context)."""
    own.register_pytree_node(cls, flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        _keyed[cls] = flatten_with_keys_fn


def _register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, *serialization: Any, **options: Any
) -> None:
    """register_pytree_node(), where the class is not registered yet."""
    if cls not in own._kinds:
        own.register_pytree_node(cls, flatten_fn, unflatten_fn)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes objects of a data class nodes, with their fields as children."""
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
    """The leaves, each with the keys that lead to it."""
    found: list[Any] = []
    _with_paths(tree, (), is_leaf, found)
    return found


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with their paths, and the spec that tree_unflatten needs."""
    return tree_leaves_with_path(tree, is_leaf), own.tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The nest with func(path, leaf, ...) for each leaf."""
    paths = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    left = iter(paths)
    return own.tree_map(lambda *leaves: func(next(left), *leaves), tree, *rests, is_leaf=is_leaf)


def keystr(kp: KeyPath) -> str:
    """A path as the text that leads from the nest to the leaf."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves, one after the other."""
    return iter(own.tree_leaves(tree, is_leaf))


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether it holds of all leaves."""
    return all(map(pred, own.tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether it holds of a leaf."""
    return any(map(pred, own.tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether it holds of all leaves of these types."""
    leaves = own.tree_leaves(tree, is_leaf)
    return all(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether it holds of a leaf of these types."""
    leaves = own.tree_leaves(tree, is_leaf)
    return any(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_map_only_(
    type_or_types: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func(leaf) for the leaves of these types; the nest itself."""
    for leaf in own.tree_leaves(tree, is_leaf):
        if isinstance(leaf, type_or_types):
            func(leaf)
    return tree


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether it is a class of the named results of operators, or of CPython's like it."""
    return is_namedtuple_class(cls) is False and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: Any) -> bool:
    """Whether it is of such a class."""
    return is_structseq_class(type(obj))


is_structseq = is_structseq_instance


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple or a class of them."""
    return is_namedtuple_class(obj) or is_namedtuple_instance(obj)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether an object is no nest."""
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
