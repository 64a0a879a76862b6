"""Trains two small networks to read handwritten digits, with the example's own operator."""

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

import data
import operators
import picture
from tqdm import tqdm

import lamella
from lamella import nn, optim

GOAL = 0.97


class Squareplus(nn.Module):
    """The example's own operator as a layer."""

    def __init__(self, b=1.0):
        super().__init__()
        self.b = b

    def forward(self, input):
        return lamella.ops.digits.squareplus(input, self.b)


def mlp():
    return nn.Sequential(nn.Linear(64, 128), Squareplus(), nn.Dropout(0.2), nn.Linear(128, 10))


def convolutional():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        Squareplus(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        Squareplus(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def accuracy(net, images, labels):
    net.eval()
    with lamella.no_grad():
        found = net(images).argmax(1)
    net.train()
    return (found == labels).to(lamella.float32).mean().item()


def train(name, net, sets, epochs, batch=64, is_compiled=False):
    """Returns the loss of each step, the accuracy on the test set, and the median time of a
    step."""
    (images, labels), test = sets
    optimizer = optim.AdamW(net.parameters(), lr=3e-3)
    steps = epochs * (len(labels) // batch)
    # The learning rate is an input of a compiled step; a change of other options compiles again.
    schedule = optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=steps, cycle_momentum=False
    )
    loss_of = nn.CrossEntropyLoss()

    def step(images, labels):
        optimizer.zero_grad()
        loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    if is_compiled:
        step = lamella.compile(step)
    losses, times = [], []
    start = time.perf_counter()
    with tqdm(total=steps, desc=name, unit=" steps") as progress:
        for _ in range(epochs):
            order = lamella.randperm(len(labels))
            for first in range(0, len(labels) - batch + 1, batch):
                chosen = order[first : first + batch]
                begin = time.perf_counter()
                loss = step(images[chosen], labels[chosen])
                times.append(time.perf_counter() - begin)
                schedule.step()
                losses.append(loss.item())
                progress.update()
            progress.set_postfix(loss=f"{losses[-1]:.4f}")
    seconds = time.perf_counter() - start
    found = accuracy(net, *test)
    parameters = sum(p.numel() for p in net.parameters())
    print(
        f"{name}: {parameters} parameters, {steps} steps in {seconds:.2f} s "
        f"({seconds / steps * 1e6:.0f} µs a step), test accuracy {found:.1%}",
        flush=True,
    )
    if is_compiled:
        print(step.explanation())
    return losses, found, statistics.median(times) * 1e6


def load_sets():
    images, labels = data.arrays()
    images = lamella.from_numpy(images).to(lamella.float32) / 16
    labels = lamella.from_numpy(labels).to(lamella.int64)
    cut = len(labels) - data.TEST
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build", type=pathlib.Path, help="the folder to build in")
    parser.add_argument("--cpp", action="store_true", help="run the C++ program afterwards")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="train each network once more from the same start, compiled, and say what it gained",
    )
    parser.add_argument("--ranks", type=int, help="train the MLP on so many ranks under mpirun")
    options = parser.parse_args()

    folder = operators.build(options.build)
    if options.ranks:
        import parallel

        return parallel.start(options.ranks, folder, options.epochs, options.seed)
    operators.load(folder)
    # Small networks gain little from more threads, and lose much on a busy machine.
    lamella.set_num_threads(1)
    lamella.manual_seed(options.seed)
    sets = load_sets()
    curves, reached = {}, []
    for name, net in (("MLP", mlp()), ("convolutional net", convolutional())):
        lamella.manual_seed(options.seed)
        start = {key: tensor.clone() for key, tensor in net.state_dict().items()}
        curves[name], found, before = train(name, net, sets, options.epochs)
        reached.append(found)
        if options.compile:
            lamella.manual_seed(options.seed)
            net.load_state_dict(start)
            plain, name = name, f"{name}, compiled"
            curves[name], found, after = train(name, net, sets, options.epochs, is_compiled=True)
            reached.append(found)
            print(
                f"Compiled: {after:.0f} µs for a step of the {plain} that took {before:.0f} µs, "
                f"{before / after:.2f} times as fast."
            )
        # The weights survive a round trip through a file.
        path = folder / f"{name.split()[0].lower()}.safetensors"
        lamella.save_file(net.state_dict(), path)
        net.load_state_dict(lamella.load_file(path))
        assert accuracy(net, *sets[1]) == found
    picture.save(folder / "loss.svg", "Training on handwritten digits", curves)
    print(f"Loss curves: {folder / 'loss.svg'}")
    if options.cpp:
        data.write(folder / "digits.bin")
        command = [folder / "train_digits", folder / "digits.bin", folder / "loss_cpp.svg"]
        done = subprocess.run(command, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0 if min(reached) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
