"""Times whole eager models of Lamella and PyTorch: a part of `make bench kernels`.

An encoder of MiniLM's shape (six layers of width 384, twelve heads, 1,536 hidden units), and
training steps of a small language model, of ResNet-18 and of a small convolutional network. As for
kernels, each library has its own process on the same cores, and they run in turns.

Usage: models.py [--only REGEX] [--threads 1] [--build DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from kernels import ROOT, Worker, limits, namespace, say, serve_calls  # noqa: E402
from training import conv_net, digits, training_step  # noqa: E402

TOKENS = ((1, 32), (1, 128), (8, 128))


def encoder(m: Any, batch: int, tokens: int) -> Callable[[], Any]:
    """A forward pass; no gradients."""
    functional = m.nn.functional
    m.manual_seed(0)
    width, heads, inner = 384, 12, 1536

    def weights(*shape: int) -> Any:
        return m.randn(*shape) * 0.05

    layers = [
        {
            "qkv": [(weights(width, width), weights(width)) for _ in range(3)],
            "out": (weights(width, width), weights(width)),
            "up": (weights(inner, width), weights(inner)),
            "down": (weights(width, inner), weights(width)),
            "norms": [(m.ones(width), m.zeros(width)) for _ in range(2)],
        }
        for _ in range(6)
    ]
    x = m.randn(batch, tokens, width)

    def split(value: Any) -> Any:
        return value.view(batch, tokens, heads, width // heads).transpose(1, 2)

    def forward() -> Any:
        h = x
        with m.no_grad():
            for layer in layers:
                q, k, v = (split(functional.linear(h, w, b)) for w, b in layer["qkv"])
                seen = functional.scaled_dot_product_attention(q, k, v)
                seen = seen.transpose(1, 2).reshape(batch, tokens, width)
                (w1, b1), (w2, b2) = layer["norms"]
                h = functional.layer_norm(
                    h + functional.linear(seen, *layer["out"]), (width,), w1, b1
                )
                up = functional.gelu(functional.linear(h, *layer["up"]))
                h = functional.layer_norm(
                    h + functional.linear(up, *layer["down"]), (width,), w2, b2
                )
        return h

    return forward


def encoder_operations(batch: int, tokens: int) -> float:
    """Floating-point operations of the products of one forward pass."""
    width, inner = 384, 1536
    linear = 2 * batch * tokens * (4 * width * width + 2 * width * inner)
    return 6 * (linear + 4 * batch * tokens * tokens * width)


def language_model(m: Any) -> Callable[[], Any]:
    """A training step of nanoGPT's shape at its smallest: four layers, width 128, 64 tokens."""
    nn, functional = m.nn, m.nn.functional
    m.manual_seed(0)
    width, heads, tokens, batch, words = 128, 4, 64, 12, 65

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.norm1(x)).split(width, 2)
            q, k, v = (p.view(batch, tokens, heads, width // heads).transpose(1, 2) for p in parts)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).contiguous().view(batch, tokens, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.words(ids) + self.places(m.arange(tokens))
            return self.head(self.norm(self.blocks(x)))

    model = Model()
    optimizer = m.optim.AdamW(model.parameters(), lr=1e-3)
    ids = m.randint(0, words, (batch, tokens + 1))
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous().view(-1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).view(-1, words), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def resnet(m: Any) -> Callable[[], Any]:
    """A training step of ResNet-18 on two images of 64 x 64."""
    nn = m.nn
    m.manual_seed(0)

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            self.relu = nn.ReLU()
            self.short = None
            if stride != 1 or before != width:
                self.short = nn.Sequential(
                    nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)
                )

        def forward(self, x: Any) -> Any:
            y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
            return self.relu(y + (x if self.short is None else self.short(x)))

    layers: list[Any] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    before = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(before, width, stride), Block(width, width, 1)]
        before = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    net = nn.Sequential(*layers)
    return training_step(m, net, m.randn(2, 3, 64, 64), m.randint(0, 10, (2,)))


def small_conv_net(m: Any) -> Callable[[], Any]:
    import numpy

    m.manual_seed(0)
    images, classes = digits(numpy, 64)
    x = m.from_numpy(images).view(64, 1, 8, 8)
    return training_step(m, conv_net(m), x, m.from_numpy(classes))


def models() -> dict[str, Callable[[Any], Callable[[], Any]]]:
    table: dict[str, Callable[[Any], Callable[[], Any]]] = {
        f"encoder, {batch} x {tokens} tokens": lambda m, b=batch, t=tokens: encoder(m, b, t)  # type: ignore[misc]
        for batch, tokens in TOKENS
    }
    table["nanoGPT-shaped, training step"] = language_model
    table["ResNet-18, training step"] = resnet
    table["digits conv net, training step"] = small_conv_net
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    made = list(models().values())
    if options.serve:
        m = namespace(options.serve, options.threads)["m"]
        serve_calls(lambda number: made[number](m), quick=False)
        return
    cores = sorted(os.sched_getaffinity(0))[-options.threads :]
    workers = [
        Worker(kind, options.threads, cores, quick=False, program=__file__)
        for kind in ("lamella", "torch")
    ]
    peak = limits(options.build, options.threads, cores).get("float32 GF/s")
    print(f"{'model, ' + str(options.threads) + ' threads':<40}{'lamella us':>14}{'torch us':>14}")
    for number, name in enumerate(models()):
        if not re.search(options.only, name):
            continue
        ours, torch = (worker.ask(number) for worker in workers)
        line = f"{name:<40}{say(ours.get('us')):>14}{say(torch.get('us')):>14}"
        if "us" in ours and "us" in torch:
            line += f"{ours['us'] / torch['us']:>8.2f} x torch"
        if "us" in ours and number < len(TOKENS) and peak:
            speed = encoder_operations(*TOKENS[number]) / ours["us"] / 1e3
            line += f", {100 * speed / peak:.0f} % of the float32 peak"
        print(line, flush=True)
        for answer in (ours, torch):
            if "error" in answer:
                print("   ", answer["error"])


if __name__ == "__main__":
    main()
