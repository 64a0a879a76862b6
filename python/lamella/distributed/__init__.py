"""lamella.distributed: collectives between the processes of a job, over MPI, with PyTorch's names.

`mpirun -n 4 python program.py` starts four ranks of a program; each calls init_process_group() and
then the same collectives in the same order. The functions here are PyTorch's: they write their
arguments and record no gradients. The operators below them, in lamella.ops.dist, have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import Tensor, _missing
from lamella.distributed import _job
from lamella.distributed._job import (
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    named_rank_in,
    new_group,
    new_subgroups,
    number_of,
    ops,
    rank_in,
)
from lamella.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)

__all__ = [
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_backend",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "isend",
    "monitored_barrier",
    "new_subgroups",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

# ---- Collectives ----


def _do(
    name: str,
    input: Tensor,
    output: Tensor,
    async_op: bool,
    after: Callable[[], None] | None = None,
    **more: Any,
) -> Work | None:
    """Starts a collective, and waits for it unless async_op."""
    work = Work(ops().start(name, input.detach(), output.detach(), **more), (input, output), after)
    if async_op:
        return work
    work.wait()
    return None


def all_reduce(
    tensor: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    *,
    deterministic: bool = False,
) -> Work | None:
    """Replaces the tensor of every rank by the reduction of the tensors of all ranks.

    deterministic: sums in the order of the ranks, for any number of machines.
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if async_op:
        return _do(
            "all_reduce",
            tensor,
            tensor,
            True,
            op=op,
            group=number_of(group),
            deterministic=deterministic,
        )
    # Arguments with default values are omitted, since parsing each costs time.
    if group is None and not deterministic:
        (_job.loaded or ops()).all_reduce_(tensor, op)
    else:
        ops().all_reduce_(tensor, op, number_of(group), deterministic)
    return None


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replaces the tensor of every rank by that of rank src, by default 0."""
    peer = rank_in(group, "broadcast", "src", src, group_src)
    if async_op:
        return _do("broadcast", tensor, tensor, True, peer=peer, group=number_of(group))
    ops().broadcast_(tensor.detach(), peer, number_of(group))
    return None


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replaces the tensor of rank dst by the reduction of all; the others keep their values."""
    if get_rank(group) == rank_in(group, "reduce", "dst", dst, group_dst):
        return all_reduce(tensor, op, group, async_op)
    return all_reduce(tensor.detach().clone(), op, group, async_op)


def _apart(input: Tensor, output: Tensor) -> Tensor:
    """The input, or a copy of it if it shares memory with the output."""
    a, b = input.untyped_storage().data_ptr(), output.untyped_storage().data_ptr()
    return input.detach().clone() if a == b else input


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    *,
    sizes: Sequence[int] | None = None,
) -> Work | None:
    """Concatenates the rows of all ranks. sizes: the number of rows of each rank, if they
    differ."""
    source = _apart(input_tensor, output_tensor)
    target = output_tensor
    if source.dim() == 0:
        source = source.reshape(1)
    elif sizes is None and target.dim() == source.dim() + 1:  # PyTorch's stacked form
        target = output_tensor.view(-1, *source.shape[1:])
    return _do("all_gather", source, target, async_op, group=number_of(group), rows=_rows(sizes))


def _rows(sizes: Sequence[int] | None) -> list[int] | None:
    return None if sizes is None else list(sizes)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    *,
    sizes: Sequence[int] | None = None,
    deterministic: bool = False,
) -> Work | None:
    """Reduces the inputs of all ranks, and gives each rank its rows of the result."""
    return _do(
        "reduce_scatter",
        _apart(input, output),
        output,
        async_op,
        op=op,
        group=number_of(group),
        rows=_rows(sizes),
        deterministic=deterministic,
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Splits the rows of each rank into parts, and sends one part to each rank."""
    members = get_world_size(group)
    send, receive = _rows(input_split_sizes or None), _rows(output_split_sizes or None)
    if send is None and receive is not None:
        send = [input.shape[0] // members] * members
    if receive is None and send is not None:
        receive = [output.shape[0] // members] * members
    return _do(
        "all_to_all",
        _apart(input, output),
        output,
        async_op,
        group=number_of(group),
        rows=receive,
        send_rows=send,
    )


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors, concatenated."""
    return lamella.cat([t.detach().reshape(-1) for t in tensors])


def _spread(joined: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copies concatenated elements to the tensors."""
    at = 0
    for tensor in tensors:
        tensor.detach().copy_(joined[at : at + tensor.numel()].reshape(tensor.shape))
        at += tensor.numel()


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Fills tensor_list with the tensors of all ranks, which may differ in size."""
    sizes = [t.numel() for t in tensor_list]
    joined = lamella.empty([sum(sizes)], dtype=tensor.dtype, device=tensor.device)
    return _do(
        "all_gather",
        tensor.detach().reshape(-1),
        joined,
        async_op,
        lambda: _spread(joined, tensor_list),
        group=number_of(group),
        rows=sizes,
    )


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Rank i gets the reduction of the i-th tensors of all ranks."""
    result = lamella.empty([output.numel()], dtype=output.dtype, device=output.device)
    return _do(
        "reduce_scatter",
        _joined(input_list),
        result,
        async_op,
        lambda: _spread(result, [output]),
        op=op,
        group=number_of(group),
        rows=[t.numel() for t in input_list],
    )


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Rank i gets the i-th tensor of every rank."""
    sizes = [t.numel() for t in output_tensor_list]
    first = input_tensor_list[0]
    joined = lamella.empty([sum(sizes)], dtype=first.dtype, device=first.device)
    return _do(
        "all_to_all",
        _joined(input_tensor_list),
        joined,
        async_op,
        lambda: _spread(joined, output_tensor_list),
        group=number_of(group),
        rows=sizes,
        send_rows=[t.numel() for t in input_tensor_list],
    )


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills gather_list of rank dst with the tensors of all ranks, which have one shape."""
    root = rank_in(group, "gather", "dst", dst, group_dst)
    here = get_rank(group) == root
    if here != bool(gather_list):
        raise ValueError("gather: expected 'gather_list' on rank dst, and on no other")
    count = tensor.numel() * get_world_size(group) if here else 0
    joined = lamella.empty([count], dtype=tensor.dtype, device=tensor.device)
    return _do(
        "gather",
        tensor.detach().reshape(-1),
        joined,
        async_op,
        lambda: _spread(joined, gather_list or ()),
        peer=root,
        group=number_of(group),
    )


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Rank i gets the i-th tensor of rank src; all have one shape."""
    root = rank_in(group, "scatter", "src", src, group_src)
    here = get_rank(group) == root
    if here != bool(scatter_list):
        raise ValueError("scatter: expected 'scatter_list' on rank src, and on no other")
    sizes = [tensor.numel()] * get_world_size(group)
    result = lamella.empty([tensor.numel()], dtype=tensor.dtype, device=tensor.device)
    joined = _joined(scatter_list) if scatter_list else result[:0]
    return _do(
        "scatter",
        joined,
        result,
        async_op,
        lambda: _spread(result, [tensor]),
        peer=root,
        group=number_of(group),
        rows=sizes,
    )


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to rank dst; returns when the tensor may be changed."""
    peer = named_rank_in(group, "send", "dst", dst, group_dst)
    ops().send(tensor.detach(), peer, tag, number_of(group))


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives into the tensor and returns the rank that sent it."""
    peer = named_rank_in(group, "recv", "src", src, group_src)
    ops().recv_(tensor.detach(), peer, tag, number_of(group))
    return get_process_group_ranks(group)[peer]


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Starts a send()."""
    peer = named_rank_in(group, "isend", "dst", dst, group_dst)
    work = _do("send", tensor, tensor, True, peer=peer, tag=tag, group=number_of(group))
    assert work is not None
    return work


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Starts a recv()."""
    peer = named_rank_in(group, "irecv", "src", src, group_src)
    work = _do("recv", tensor, tensor, True, peer=peer, tag=tag, group=number_of(group))
    assert work is not None
    return work


class P2POp:
    """One isend or irecv of batch_isend_irecv."""

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: Tensor,
        peer: int,
        group: ProcessGroup | None = None,
        tag: int = 0,
    ) -> None:
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts all operations of the list."""
    return [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    """Waits until all ranks have called it. device_ids is ignored."""
    if async_op:
        nothing = lamella.empty([0])
        return _do("barrier", nothing, nothing, True, group=number_of(group))
    ops().barrier(number_of(group))
    return None


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """barrier(); the arguments `timeout` and `wait_all_ranks` are ignored. If a rank has ended, the
    error names it."""
    barrier(group)


_missing.suggest(__name__)
