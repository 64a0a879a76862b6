"""torch.utils.data._utils.collate: combines examples into batches."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import lamella
from lamella import Tensor

_Rules = dict[Any, Callable[..., Any]]


def _is_array(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ in ("ndarray", "memmap")


def _is_number_of_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    """A sequence of another one's type; a list if that type cannot be built from the entries."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*parts)
    if type(like) in (list, tuple):
        return type(like)(parts) if type(like) is list else parts
    try:
        return type(like)(parts)
    except TypeError:  # a range, or a type with another constructor
        return parts


def _mapped(like: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    try:
        if isinstance(like, MutableMapping):
            made = copy.copy(like)
            made.update(entries)
            return made
        return type(like)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries


def default_convert(data: Any) -> Any:
    """Converts NumPy arrays to tensors, also inside nests; other values stay as they are."""
    if isinstance(data, Tensor):
        return data
    if _is_array(data) or _is_number_of_numpy(data):
        return lamella.as_tensor(data) if data.dtype.kind not in "SUO" else data
    if isinstance(data, Mapping):
        return _mapped(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and not hasattr(data, "_fields"):
        return [default_convert(entry) for entry in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(entry) for entry in data])
    return data


def collate(batch: Any, *, collate_fn_map: _Rules | None = None) -> Any:
    """Combines examples of the same structure into a batch.

    Tensors and arrays are stacked, numbers become a tensor, texts a list; dictionaries and
    sequences are combined entry by entry. collate_fn_map: functions for further types, called with
    the examples and collate_fn_map=.
    """
    first = batch[0]
    for kind, rule in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return rule(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Tensor):
        return lamella.stack(list(batch), 0)
    if _is_array(first):
        if first.dtype.kind in "SUO":
            raise TypeError(f"default_collate: expected arrays of numbers, got {first.dtype}")
        return lamella.stack([lamella.as_tensor(array) for array in batch], 0)
    if _is_number_of_numpy(first) and first.dtype.kind not in "SUO":
        return lamella.stack([lamella.as_tensor(number) for number in batch], 0)
    if isinstance(first, float):
        return lamella.tensor(batch, dtype=lamella.float64)
    if isinstance(first, int):
        return lamella.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch

    def again(examples: Any) -> Any:
        return collate(examples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _mapped(first, {key: again([example[key] for example in batch]) for key in first})
    if isinstance(first, Sequence):
        sizes = {len(example) for example in batch}
        if len(sizes) > 1:
            raise RuntimeError(
                "default_collate: expected examples of the same length, got lengths of "
                + ", ".join(map(str, sorted(sizes)))
            )
        return _rebuilt(first, [again(entries) for entries in zip(*batch)])
    raise TypeError(
        "default_collate: expected tensors, NumPy arrays, numbers, text, dictionaries or "
        f"sequences, got {type(first).__name__}"
    )


default_collate_fn_map: _Rules = {}

# Kinds of NumPy dtypes that cannot become tensors.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Tensor:
    """Stacks the tensors along a new first dimension."""
    return lamella.stack(list(batch), 0)


def default_collate(batch: Any) -> Any:
    """collate() with default_collate_fn_map, which programs may extend."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
