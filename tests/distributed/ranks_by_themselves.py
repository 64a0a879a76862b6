"""A PyTorch program that starts its ranks itself. Usage: ranks_by_themselves.py PLACE HOW

PLACE: the init_method. HOW: train, or how rank 1 fails in the middle: raise, exit, kill.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Branches(nn.Module):
    """One of two layers after a shared one, and one layer that is never used."""

    def __init__(self):
        super().__init__()
        self.shared, self.norm = nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4)
        self.left, self.right, self.never = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x, left):
        x = torch.relu(self.norm(self.shared(x)))
        return self.left(x) if left else self.right(x)


def train(rank, size):
    torch.manual_seed(rank)
    net = DistributedDataParallel(Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(10 + rank)
    for step in range(4):
        out = net(torch.randn(6, 4), (rank + step) % 2 == 0 if step else True)
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        if rank == 0:
            norms = [None if p.grad is None else p.grad.norm().item() for p in net.parameters()]
            print(step, ["none" if norm is None else f"{norm:.4f}" for norm in norms])
    flat = torch.cat([p.detach().flatten() for p in net.parameters()])
    everybody = [torch.empty_like(flat) for _ in range(size)]
    dist.all_gather(everybody, flat)
    assert all(torch.equal(flat, other) for other in everybody)
    objects = [None] * size
    dist.gather_object({"rank": rank}, objects if rank == 0 else None)
    mine, received = [None], [None, None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(size)], 0)
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    else:
        dist.recv_object_list(received, 0)
    assert dist.new_subgroups(1)[0].size() == 1
    dist.monitored_barrier()
    if rank == 0:
        print(f"{flat.norm():.4f}", f"{net.module.norm.running_mean.norm():.4f}", objects, mine)
    assert mine == [f"for {rank}"] and (rank == 0 or received == [1, "two"])


def run(rank, size, place, how):
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=size)
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, size, "gloo")
    assert not any(name.startswith("PMIX") for name in os.environ)
    if how == "train":
        train(rank, size)
    elif rank == 1:
        if how == "raise":
            raise ValueError("rank 1 does not want to")
        os._exit(3) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    else:
        dist.all_reduce(torch.ones(2))
    dist.destroy_process_group()


if __name__ == "__main__":
    place, how = sys.argv[1:]
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), place, how)
        sys.exit()
    try:
        mp.spawn(run, (2, place, how), nprocs=2)
    except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
        print(type(error).__name__, error.error_index, str(error).strip().splitlines()[-1])
