"""Every rank: training on many ranks against one process with all the data.

Usage: ranks_training.py FOLDER
"""

import copy
import sys

import lamella
import lamella.distributed as dist
from lamella import nn, optim
from lamella.distributed import checkpoint
from lamella.nn import functional as F
from lamella.nn.parallel import (
    ColumnParallelLinear,
    DistributedDataParallel,
    RowParallelLinear,
    ShardedOptimizer,
)

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


def network(seed=0):
    lamella.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 3)
    )


def batch(step, r):
    """The part of rank r."""
    lamella.manual_seed(100 * step + r)
    return lamella.randn(6, 8), lamella.randn(6, 3)


def one_process(steps, make, buckets=True):
    """Each rank's part in turn; the gradients added in the order of the ranks."""
    model = network()
    optimizer = make(model.parameters())
    for step in range(steps):
        grads = None
        for r in range(size):
            x, y = batch(step, r)
            mine = lamella.autograd.grad(F.mse_loss(model(x), y), list(model.parameters()))
            grads = list(mine) if grads is None else [a + b for a, b in zip(grads, mine)]
        for p, g in zip(model.parameters(), grads):
            p.grad = g / size
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def sgd(parameters):
    return optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return optim.Adam(parameters, lr=0.01)


def bits(parameters):
    return [p.detach().tolist() for p in parameters]


# Data parallel: buckets of every size, bits of one process where the order is fixed.
for cap in (25, 0.0005):
    model = DistributedDataParallel(network(seed=rank and 5), bucket_cap_mb=cap, deterministic=True)
    optimizer = sgd(model.parameters())
    for step in range(4):
        optimizer.zero_grad()
        x, y = batch(step, rank)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    assert bits(model.parameters()) == bits(one_process(4, sgd)), "data parallel"

# Gradients added up over two backward passes, then a parameter without a part in the loss.
model = DistributedDataParallel(network())
x, y = batch(0, rank)
with model.no_sync():
    F.mse_loss(model(x), y).backward()
F.mse_loss(model(x), y).backward()
twice = [p.grad.clone() for p in model.parameters()]
model = DistributedDataParallel(network())
F.mse_loss(model(x), y).backward()
for a, p in zip(twice, model.parameters()):
    assert lamella.allclose(a, 2 * p.grad, rtol=1e-5, atol=1e-7)
model = DistributedDataParallel(network())
model.module[2](lamella.ones(1, 16)).sum().backward()
model.finish()
assert model.module[0].weight.grad.abs().sum().item() == 0
assert model.module[2].bias.grad.tolist() == [1.0] * 12

# Sharded: Adam's state is spread, its results are those of one process.
model = network()
optimizer = ShardedOptimizer(model.parameters(), adam, deterministic=True)
for step in range(4):
    optimizer.zero_grad()
    x, y = batch(step, rank)
    F.mse_loss(model(x), y).backward()
    optimizer.step()
assert bits(model.parameters()) == bits(one_process(4, adam)), "sharded"
total = sum(p.numel() for p in model.parameters())
kept = sum(
    v.numel()
    for s in optimizer.optimizer.state.values()
    for v in s.values()
    if isinstance(v, lamella.Tensor)
)
assert kept <= 2 * (-(-total // size)) + 2, (kept, total)

# A pair of linear layers, spread.
if 16 % size == 0:
    whole = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5)).double()
    for p in whole.parameters():
        dist.broadcast(p)
    spread = nn.Sequential(ColumnParallelLinear(whole[0]), nn.Tanh(), RowParallelLinear(whole[2]))
    x = batch(0, 0)[0].double()
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    first, second = whole(a), spread(b)
    assert lamella.allclose(first, second, rtol=1e-12, atol=1e-12)
    (first * first).sum().backward()
    (second * second).sum().backward()
    assert lamella.allclose(a.grad, b.grad, rtol=1e-12, atol=1e-12)
    part = slice(16 // size * rank, 16 // size * (rank + 1))
    for got, expected in (
        (spread[0].weight, whole[0].weight.grad[part]),
        (spread[0].bias, whole[0].bias.grad[part]),
        (spread[2].weight, whole[2].weight.grad[:, part]),
        (spread[2].bias, whole[2].bias.grad),
    ):
        assert lamella.allclose(got.grad, expected, rtol=1e-12, atol=1e-12)

# Batch normalisation over all ranks is that of the joined batch.
images = [lamella.randn(3, 4, 5, generator=lamella.Generator().manual_seed(r)) for r in range(size)]
joined = lamella.cat(images).double().requires_grad_()
mine = images[rank].double().requires_grad_()
plain = nn.BatchNorm1d(4, dtype=lamella.float64)
synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
wanted, got = plain(joined), synced(mine)
part = slice(3 * rank, 3 * rank + 3)
assert lamella.allclose(got, wanted[part], rtol=1e-10, atol=1e-10)
wanted.pow(3).sum().backward()
got.pow(3).sum().backward()
assert lamella.allclose(mine.grad, joined.grad[part], rtol=1e-9, atol=1e-9)
if size > 1:
    for p in synced.parameters():
        dist.all_reduce(p.grad)
for got, wanted in zip(synced.parameters(), plain.parameters()):
    assert lamella.allclose(got.grad, wanted.grad, rtol=1e-9, atol=1e-9)
for name in ("running_mean", "running_var", "num_batches_tracked"):
    assert lamella.allclose(getattr(synced, name), getattr(plain, name))

# Checkpoints: written by all ranks, read by any.
tensors = {
    "a": lamella.arange(7.0),
    "b": lamella.ones(2, 3, dtype=lamella.bfloat16),
    "none": lamella.empty(0),
    "one": lamella.tensor(3),
}
for _ in range(2):
    checkpoint.save(tensors, sys.argv[1] + "/checkpoint")
read = checkpoint.load(sys.argv[1] + "/checkpoint")
for name, tensor in tensors.items():
    assert read[name].dtype == tensor.dtype and read[name].tolist() == tensor.tolist()
dist.barrier()
print("rank", rank, "done")
