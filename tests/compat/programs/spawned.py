"""Processes that spawn fresh interpreters, and a DataLoader's error messages."""

import warnings

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, StackDataset


class Squares(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 2:
            raise KeyError(i)
        return torch.full((2,), float(i * i))


class Short(IterableDataset):
    """Says that it has fewer examples than it gives."""

    def __iter__(self):
        return iter(range(6))

    def __len__(self):
        return 4


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return f"one {i}"

    def __getitems__(self, indices):
        return [f"many {i}" for i in indices]


def work(rank, queue, values):
    queue.put((values + rank).sum().item())


def kind(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


if __name__ == "__main__":
    loader = DataLoader(Squares(), num_workers=2, multiprocessing_context="spawn")
    batches = iter(loader)
    print(next(batches), next(batches))
    print(kind(lambda: next(batches)))  # the workers go on after an error
    print(next(batches), [b.tolist() for b in batches])

    queue = mp.get_context("spawn").Queue()
    mp.spawn(work, args=(queue, torch.ones(3)), nprocs=1)
    print(queue.get())

    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset"):
        print(name, kind(lambda name=name: setattr(loader, name, None)))
    print(kind(lambda: DataLoader(Squares(), multiprocessing_context="fork")))
    print(kind(lambda: DataLoader(Squares(), num_workers=1, multiprocessing_context="bad")))
    print(kind(lambda: DataLoader(Squares(), num_workers=1, multiprocessing_context=object())))

    loader = DataLoader(Short())
    print(len(loader))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(
            [b.tolist() for b in loader],
            [w.category.__name__ for w in caught if "len" in str(w.message)],
        )

    print(StackDataset(Rows(), range(4)).__getitems__([0, 2]))
    print(StackDataset(a=Rows(), b=range(4)).__getitems__([3]))
    print(list(DataLoader(StackDataset(Rows(), range(4)), batch_size=2)))
