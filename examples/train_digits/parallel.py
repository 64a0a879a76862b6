"""Trains the multilayer perceptron on several ranks, each with its part of every batch.

main.py --ranks N starts this file under mpirun. At the end, rank 0 trains the same network alone,
one part of each batch after the other: the weights are equal to the last bit.
"""

import os
import pathlib
import subprocess
import sys
import time

import main as digits
import operators

import lamella
import lamella.distributed as dist
from lamella import nn, optim
from lamella.nn.parallel import DistributedDataParallel

BATCH = 64


def start(ranks, folder, epochs, seed):
    """Runs this file on `ranks` ranks."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    return subprocess.call(
        [*command, sys.executable, __file__, str(folder), str(epochs), str(seed)]
    )


def train(ranks, gradients, net, sets, epochs, seed):
    """Trains net with the gradients that gradients(step, parts) leaves in it; parts are the
    ranks'."""
    (images, labels), _ = sets
    optimizer = optim.AdamW(net.parameters(), lr=3e-3)
    generator = lamella.Generator().manual_seed(seed)
    step = 0
    for _ in range(epochs):
        order = lamella.randperm(len(labels), generator=generator)
        for first in range(0, len(labels) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH].chunk(ranks)
            optimizer.zero_grad()
            gradients(step, [(images[part], labels[part]) for part in chosen])
            optimizer.step()
            step += 1
    return step


def main():
    folder, epochs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("mpi")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    operators.load(pathlib.Path(folder))
    lamella.set_num_threads(1)
    sets = digits.load_sets()
    loss_of = nn.CrossEntropyLoss()

    def network():
        lamella.manual_seed(seed)
        return digits.mlp()

    def loss(model, step, part, number):
        lamella.manual_seed(seed + step * ranks + number)  # for dropout
        images, labels = part
        return loss_of(model(images), labels)

    net = network()
    parallel = DistributedDataParallel(net, deterministic=True)
    start_time = time.perf_counter()
    steps = train(
        ranks,
        lambda step, parts: loss(parallel, step, parts[rank], rank).backward(),
        net,
        sets,
        epochs,
        seed,
    )
    seconds = time.perf_counter() - start_time
    found = digits.accuracy(net, *sets[1])
    if rank == 0:
        alone = network()

        def one_after_the_other(step, parts):
            sums = None
            for number, part in enumerate(parts):
                value = loss(alone, step, part, number)
                grads = lamella.autograd.grad(value, list(alone.parameters()))
                sums = [a + b for a, b in zip(sums, grads)] if sums else list(grads)
            for p, total in zip(alone.parameters(), sums):
                p.grad = total / ranks

        train(ranks, one_after_the_other, alone, sets, epochs, seed)
        same = all(lamella.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
        print(
            f"MLP on {ranks} ranks: {steps} steps in {seconds:.2f} s, test accuracy {found:.1%}; "
            f"weights of one process: {'the same bits' if same else 'others'}",
            flush=True,
        )
        if not same or found < digits.GOAL:
            raise SystemExit(1)
    dist.barrier()


if __name__ == "__main__":
    main()
