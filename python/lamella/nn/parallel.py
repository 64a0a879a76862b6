"""Networks on many ranks: data parallel, with a copy on each rank, or split over the ranks.

Built on lamella.distributed. Every rank must run the same program, so that all ranks call the
same collectives in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import lamella
import lamella.distributed as dist
from lamella import Tensor
from lamella.nn import functional
from lamella.nn.modules import Module
from lamella.nn.modules.data_parallel import DataParallel
from lamella.nn.parameter import Parameter

if TYPE_CHECKING:
    from lamella.distributed import ProcessGroup
    from lamella.optim import Optimizer

__all__ = [
    "ColumnParallelLinear",
    "DataParallel",
    "DistributedDataParallel",
    "RowParallelLinear",
    "ShardedOptimizer",
]


class _Bucket:
    """Parameters whose gradients are views of one vector, which is reduced as one message. The only
    parameter of a bucket keeps its gradient where backward put it."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self.parameters = parameters
        self.views: dict[int, Tensor] = {}
        self.flat: Tensor | None = None
        if len(parameters) > 1:
            numel = sum(p.numel() for p in parameters)
            self.flat, at = lamella.zeros([numel], dtype=parameters[0].dtype), 0
            for p in parameters:
                self.views[id(p)] = self.flat[at : at + p.numel()].view(p.shape)
                at += p.numel()
        self.ready: set[int] = set()
        self.work: dist.Work | None = None

    def take(self, p: Tensor) -> None:
        """Marks the gradient of p as ready and moves it to its place in the vector."""
        self.ready.add(id(p))
        view = self.views.get(id(p))
        if p.grad is None:  # this rank's loss does not depend on p
            p.grad = lamella.zeros_like(p) if view is None else view.zero_()
        elif view is None:
            p.grad = p.grad.contiguous()
        elif p.grad is not view:
            view.copy_(p.grad)
            p.grad = view

    def vector(self) -> Tensor:
        """The vector to reduce."""
        grad = self.parameters[0].grad if self.flat is None else self.flat
        assert grad is not None
        return grad


class DistributedDataParallel(Module):
    """The same network on every rank, each with its own part of a batch.

    Backward leaves the mean of all ranks' gradients in each parameter's grad. Gradients are reduced
    in buckets of about bucket_cap_mb MB, the last layers' first, while backward goes on with the
    layers before them. All ranks start with rank 0's parameters and buffers.

    broadcast_buffers: rank 0's buffers, such as a batch norm's statistics, are broadcast before
    each forward pass in training whose gradients are reduced. find_unused_parameters: a parameter
    that a rank's output does not depend on counts with a gradient of 0; the gradient of one that no
    rank's output depends on stays unchanged. deterministic: the ranks' gradients are added in the
    order of the ranks, with the same bits as in one process. device_ids, output_device, dim,
    check_reduction, gradient_as_bucket_view, static_graph and init_sync are PyTorch's and have no
    effect.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        init_sync: bool = True,
        deterministic: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self._group, self._deterministic = process_group, deterministic
        # Parameters that this rank's output does not depend on, parameters that no rank's output
        # depends on, and the gradients that the latter had.
        self._unused: set[int] = set()
        self._unused_anywhere: set[int] = set()
        self._kept: list[tuple[Parameter, Tensor | None]] = []
        bucket_cap_mb = 1 if bucket_cap_mb is None else bucket_cap_mb
        self._synchronizes = True
        self._buckets: list[_Bucket] = []
        self._next = 0  # the first bucket whose reduction has not started
        self._root = dist.get_process_group_ranks(process_group)[0]
        for value in [*module.parameters(), *module.buffers()]:
            dist.broadcast(value, self._root, process_group)
        # Backward reaches the last parameters first.
        current: list[Parameter] = []
        size = 0.0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):
            bytes_of = p.numel() * p.element_size()
            if current and (size + bytes_of > bucket_cap_mb * 2**20 or p.dtype != current[0].dtype):
                self._buckets.append(_Bucket(current))
                current, size = [], 0.0
            current.append(p)
            size += bytes_of
        if current:
            self._buckets.append(_Bucket(current))
        for bucket in self._buckets:
            for p in bucket.parameters:
                p.register_post_accumulate_grad_hook(self._hook(bucket))

    def _hook(self, bucket: _Bucket) -> Callable[[Tensor], None]:
        def ready(p: Tensor) -> None:
            if not self._synchronizes:
                return
            bucket.take(p)
            self._begin(complete=False)
            if self._next == len(self._buckets):
                self.finish()

        return ready

    def _begin(self, complete: bool) -> None:
        """Starts the reductions of buckets that are ready, in the same order on all ranks."""
        while self._next < len(self._buckets):
            bucket = self._buckets[self._next]
            if len(bucket.ready) < len(bucket.parameters) and not complete:
                return
            for p in bucket.parameters:
                if id(p) in self._unused_anywhere:
                    self._kept.append((p, p.grad))
                if id(p) in self._unused_anywhere or id(p) not in bucket.ready:
                    p.grad = None
                if p.grad is None or id(p) in self._unused:
                    bucket.take(p)
            self._next += 1
            # The last bucket has no backward left to overlap with, and blocking reductions are
            # faster.
            bucket.work = dist.all_reduce(
                bucket.vector(),
                dist.ReduceOp.AVG,
                self._group,
                async_op=self._next < len(self._buckets),
                deterministic=self._deterministic,
            )

    def finish(self) -> None:
        """Waits for the gradients. Backward calls this, unless the loss does not depend on some
        parameter: then all ranks must call it before the optimiser's step."""
        self._begin(complete=True)
        for bucket in self._buckets:
            if bucket.work is not None:
                bucket.work.wait()
                bucket.work = None
            bucket.ready.clear()
        self._next = 0
        for p, grad in self._kept:
            p.grad = grad
        self._kept = []

    def no_sync(self) -> AbstractContextManager[None]:
        """A context in which backward accumulates gradients on each rank without reducing them."""
        import contextlib

        @contextlib.contextmanager
        def quiet() -> Iterator[None]:
            earlier, self._synchronizes = self._synchronizes, False
            try:
                yield
            finally:
                self._synchronizes = earlier

        return quiet()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        reduces = self._synchronizes and lamella.is_grad_enabled()
        if reduces and self.training and self.broadcast_buffers:
            for value in self.module.buffers():
                dist.broadcast(value, self._root, self._group)
        output = self.module(*args, **kwargs)
        if reduces and self.find_unused_parameters:
            self._count_unused(output)
        return output

    def _count_unused(self, output: Any) -> None:
        """Marks the parameters that the output does not depend on as ready."""
        used = _leaves_of(output)
        parameters = [(bucket, p) for bucket in self._buckets for p in bucket.parameters]
        here = [id(p) in used for _, p in parameters]
        anywhere = lamella.tensor(here)
        dist.all_reduce(anywhere, dist.ReduceOp.MAX, self._group)
        self._unused, self._unused_anywhere = set(), set()
        for (bucket, p), is_here, is_anywhere in zip(parameters, here, anywhere.tolist()):
            if not is_here:
                self._unused.add(id(p))
                bucket.ready.add(id(p))
            if not is_anywhere:
                self._unused_anywhere.add(id(p))


def _leaves_of(output: Any) -> set[int]:
    """The identities of the leaves that the tensors of a nest are computed from."""
    from lamella.utils._pytree import tree_leaves

    tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
    found = {id(tensor) for tensor in tensors if tensor.grad_fn is None}
    nodes, seen = [tensor.grad_fn for tensor in tensors], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (variable := getattr(node, "variable", None)) is not None:
            found.add(id(variable))
        nodes += [before for before, _ in node.next_functions]
    return found


class ShardedOptimizer:
    """An optimiser whose state is split over the ranks: each keeps a part of all parameters' state.

    make(parameters) returns the optimiser, as in ShardedOptimizer(model.parameters(), lambda p:
    lamella.optim.Adam(p, lr=1e-3)). It must be elementwise, as SGD and Adam are. step() averages
    the ranks' gradients, of which each rank gets its part, and gathers the new values. `reduced`:
    the gradients are averages already, such as those of DistributedDataParallel.
    """

    def __init__(
        self,
        params: Iterable[Parameter],
        make: Callable[[list[Parameter]], Optimizer],
        *,
        process_group: ProcessGroup | None = None,
        deterministic: bool = False,
        reduced: bool = False,
    ) -> None:
        self.params = list(params)
        if len({p.dtype for p in self.params}) > 1:
            raise ValueError("ShardedOptimizer: expected parameters of one dtype")
        self._group, self._deterministic, self._reduced = process_group, deterministic, reduced
        self._rank, ranks = dist.get_rank(process_group), dist.get_world_size(process_group)
        self._numel = sum(p.numel() for p in self.params)
        # Every part has the same size; the padding of the last ones is never read.
        self._part = -(-self._numel // ranks)
        self._flat = lamella.zeros([self._part * ranks], dtype=self.params[0].dtype)
        # The parameters become views of one vector, so that gathering it updates them all.
        for p, view in zip(self.params, self._views(self._flat)):
            view.copy_(p.detach())
            p.data = view
        begin = self._rank * self._part
        self._mine = Parameter(self._flat[begin : begin + self._part].clone())
        self.optimizer: Optimizer = make([self._mine])

    def _views(self, flat: Tensor) -> Iterator[Tensor]:
        at = 0
        for p in self.params:
            yield flat[at : at + p.numel()].view(p.shape)
            at += p.numel()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients to None, or fills them with zeros."""
        for p in self.params:
            p.grad = None if set_to_none or p.grad is None else p.grad.zero_()

    def step(self) -> None:
        """One step of all parameters."""
        with lamella.no_grad():
            grads = [lamella.zeros_like(p) if p.grad is None else p.grad for p in self.params]
            missing = self._flat.numel() - self._numel
            joined = lamella.cat(
                [g.reshape(-1) for g in grads] + [lamella.zeros([missing], dtype=self._flat.dtype)]
            )
            begin = self._rank * self._part
            if self._reduced:
                grad = joined[begin : begin + self._part].clone()
            else:
                grad = lamella.empty_like(self._mine)
                dist.reduce_scatter_tensor(
                    grad, joined, dist.ReduceOp.AVG, self._group, deterministic=self._deterministic
                )
            del joined, grads
            self._mine.grad = grad
            self.optimizer.step()
            self._mine.grad = None
            dist.all_gather_into_tensor(self._flat, self._mine.detach(), self._group)


class _CopyToRanks(lamella.autograd.Function):
    """The identity of a value that is the same on every rank; backward sums the gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: int) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return lamella.ops.dist.all_reduce(grad, "sum", ctx.group), None


class _SumOfRanks(lamella.autograd.Function):
    """The sum of the ranks' values; backward is the identity, as all ranks use the sum alike."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: int) -> Tensor:
        return lamella.ops.dist.all_reduce(x, "sum", group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def _part_of(size: int, group: ProcessGroup | None) -> slice:
    """This rank's part of a dimension."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if size % ranks != 0:
        raise ValueError(f"expected the features, {size}, to be a multiple of the {ranks} ranks")
    return slice(rank * (size // ranks), (rank + 1) * (size // ranks))


class ColumnParallelLinear(Module):
    """A linear layer with a part of the outputs on each rank. All ranks pass the same input.

    The layers after it work on the parts, up to a RowParallelLinear, which combines them.
    """

    def __init__(self, linear: Module, process_group: ProcessGroup | None = None) -> None:
        super().__init__()
        part = _part_of(linear.weight.shape[0], process_group)
        self._group = 0 if process_group is None else process_group.number
        self.weight = Parameter(linear.weight.detach()[part].clone())
        self.bias = None if linear.bias is None else Parameter(linear.bias.detach()[part].clone())

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(_CopyToRanks.apply(input, self._group), self.weight, self.bias)


class RowParallelLinear(Module):
    """A linear layer with a part of the inputs on each rank; all ranks get the same result."""

    def __init__(self, linear: Module, process_group: ProcessGroup | None = None) -> None:
        super().__init__()
        part = _part_of(linear.weight.shape[1], process_group)
        self._group = 0 if process_group is None else process_group.number
        self.weight = Parameter(linear.weight.detach()[:, part].clone())
        self.bias = None if linear.bias is None else Parameter(linear.bias.detach().clone())

    def forward(self, input: Tensor) -> Tensor:
        total = _SumOfRanks.apply(functional.linear(input, self.weight), self._group)
        return total if self.bias is None else total + self.bias
