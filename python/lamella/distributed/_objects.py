"""Collectives of Python objects. Objects are pickled, so all ranks must be trusted."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.distributed._job import (
    ProcessGroup,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    named_rank_in,
    number_of,
    ops,
    rank_in,
)


def _bytes(obj: object) -> Tensor:
    return lamella.frombuffer(bytearray(pickle.dumps(obj)), dtype=lamella.uint8)


def _object(data: Tensor) -> Any:
    return pickle.loads(bytes(data.tolist()))


def _joined(objects: Sequence[object]) -> tuple[Tensor, list[int]]:
    parts = [_bytes(obj) for obj in objects]
    return lamella.cat(parts), [part.numel() for part in parts]


def _parted(joined: Tensor, sizes: Sequence[int]) -> list[Any]:
    return [_object(part) for part in joined.split(list(sizes))]


def all_gather_object(
    object_list: list[Any], obj: object, group: ProcessGroup | None = None
) -> None:
    """Fills object_list with the objects of all ranks."""
    number = number_of(group)
    data = _bytes(obj)
    sizes = ops().all_gather(lamella.tensor([data.numel()]), None, number).tolist()
    object_list[: len(sizes)] = _parted(ops().all_gather(data, sizes, number), sizes)


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Fills object_gather_list of rank dst, by default 0, with the objects of all ranks."""
    root = rank_in(group, "gather_object", "dst", dst, group_dst)
    if (get_rank(group) == root) != (object_gather_list is not None):
        raise ValueError(
            "gather_object: expected 'object_gather_list' on rank dst, and on no other"
        )
    number = number_of(group)
    data = _bytes(obj)
    sizes = ops().all_gather(lamella.tensor([data.numel()]), None, number).tolist()
    joined = ops().gather(data, root, sizes, number)
    if object_gather_list is not None:
        object_gather_list[: len(sizes)] = _parted(joined, sizes)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replaces the objects of all ranks by those of rank src, by default 0."""
    number, root = number_of(group), rank_in(group, "broadcast_object_list", "src", src, group_src)
    data = _bytes(list(object_list))
    size = ops().broadcast(lamella.tensor([data.numel()]), root, number).item()
    if get_rank(group) != root:
        data = lamella.empty([size], dtype=lamella.uint8)
    object_list[:] = _object(ops().broadcast(data, root, number))


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[object] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Sets the first item of the output list on rank i to the i-th object of rank src."""
    if not scatter_object_output_list:
        raise ValueError(
            "scatter_object_list: expected 'scatter_object_output_list' to have a place, got []"
        )
    number, root = number_of(group), rank_in(group, "scatter_object_list", "src", src, group_src)
    size = get_world_size(group)
    objects = list(scatter_object_input_list or ()) if get_rank(group) == root else []
    # All ranks learn of a wrong number of objects and raise, so that none waits forever.
    count = ops().broadcast(lamella.tensor([len(objects)]), root, number).item()
    if count != size:
        raise ValueError(f"scatter_object_list: expected {size} objects on rank src, got {count}")
    joined, sizes = _joined(objects) if objects else (lamella.empty([0], dtype=lamella.uint8), [0])
    all_sizes = ops().broadcast(lamella.tensor((sizes * size)[:size]), root, number).tolist()
    scatter_object_output_list[0] = _object(ops().scatter(joined, root, all_sizes, number))


def send_object_list(
    object_list: Sequence[object],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Sends objects to recv_object_list() of rank dst."""
    peer = named_rank_in(group, "send_object_list", "dst", dst, group_dst)
    data = _bytes(list(object_list))
    for tensor in (lamella.tensor([data.numel()]), data):
        ops().send(tensor, peer, 0, number_of(group))


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Replaces the items of the list by the objects that rank src sent; returns that rank."""
    peer = named_rank_in(group, "recv_object_list", "src", src, group_src)
    size = ops().recv(lamella.zeros([1], dtype=lamella.int64), peer, 0, number_of(group)).item()
    data = lamella.empty([size], dtype=lamella.uint8)
    object_list[:] = _object(ops().recv_(data, peer, 0, number_of(group)))
    return get_process_group_ranks(group)[peer]
