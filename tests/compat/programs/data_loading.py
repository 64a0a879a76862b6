"""Order, seeds and batches of torch.utils.data, without workers and with two."""

import random
from collections import namedtuple

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from torch.utils.data.distributed import DistributedSampler

Pair = namedtuple("Pair", "a b")


class Rows(Dataset):
    def __len__(self):
        return 23

    def __getitem__(self, i):
        return {
            "tensor": torch.rand(3) + i,
            "number": i,
            "array": np.full(2, i, dtype=np.float32),
            "numpy": np.random.rand(),
            "text": str(i),
            "nest": (i, [float(i), Pair(i, True)]),
            "random": random.random(),
        }


class Count(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        for i in range(self.size):
            if info is None or i % info.num_workers == info.id:
                yield i

    def __len__(self):
        return self.size


class Failing(Rows):
    def __getitem__(self, i):
        if i == 7:
            raise ValueError(f"no row {i}")
        return i


class Seen(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return [i, info.id, info.num_workers, info.seed % 1000, len(info.dataset), started]


started = -1


def start(worker):
    global started
    started = 10 + worker


def show(batch):
    if isinstance(batch, torch.Tensor):
        return [str(batch.dtype).split(".")[1], batch.tolist()]
    if isinstance(batch, dict):
        return {key: show(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [type(batch).__name__, [show(value) for value in batch]]
    return batch


def by_number_of_workers(workers):
    torch.manual_seed(3)
    random.seed(0)
    np.random.seed(0)
    for batch in DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=workers):
        print(show(batch))
    print(torch.rand(1).item())
    for options in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}):
        loader = DataLoader(Count(10), num_workers=workers, **options)
        print(len(loader), [show(batch) for batch in loader])
    for batch in DataLoader(Rows(), batch_size=None, num_workers=workers):
        print(show(batch)["number"], show(batch)["array"])
    try:
        list(DataLoader(Failing(), batch_size=4, num_workers=workers))
    except ValueError as error:
        print("ValueError", "no row 7" in str(error), "getitem" in str(error) or not workers)
    loader = DataLoader(
        Rows(),
        batch_size=5,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        generator=torch.Generator().manual_seed(1),
        collate_fn=lambda rows: [row["number"] for row in rows],
    )
    for epoch in range(3):
        if epoch == 1:
            print(next(iter(loader)))
        print(list(loader))


by_number_of_workers(0)
by_number_of_workers(2)

torch.manual_seed(5)
for batch in DataLoader(Seen(), num_workers=2, worker_init_fn=start, prefetch_factor=1):
    print(show(batch))

parts = random_split(range(11), [0.5, 0.3, 0.2], generator=torch.Generator().manual_seed(4))
print([list(part) for part in parts], [len(part) for part in random_split(range(5), [3, 2])])
for sampler in (
    RandomSampler(range(10), replacement=True, num_samples=40),
    RandomSampler(range(10), num_samples=27),
    WeightedRandomSampler([0.1, 0.3, 0.6], 9),
    WeightedRandomSampler([0.1, 0.3, 0.6], 3, replacement=False),
    SubsetRandomSampler([3, 5, 9]),
    SequentialSampler(range(4)),
    BatchSampler(RandomSampler(range(9)), 2, True),
    DistributedSampler(range(10), 3, 1, seed=2),
    DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True),
):
    print(type(sampler).__name__, len(sampler), list(sampler), list(sampler))
joined = ConcatDataset([range(3), range(4)])
print(len(joined), joined[5], joined[-1], len(TensorDataset(torch.ones(3, 2), torch.zeros(3))))
print(list(ChainDataset([Count(2), Count(3)])), StackDataset(a=range(3), b=range(3))[1])
print(show(torch.utils.data.default_collate([{"a": [1, 2.5]}, {"a": [3, 4.5]}])))
print(torch.utils.data.default_collate([("x", {"y": "z"}), ("u", {"y": "v"})]))


class Lacking(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return {}["name"]


try:
    next(iter(DataLoader(Lacking(), num_workers=1)))
except KeyError as error:
    print("KeyError", "worker process 0" in str(error), "\n" in str(error))
pairs = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.arange(3))
print([show(batch) for batch in DataLoader(pairs, batch_size=2, pin_memory=False)])
