"""Times of the devices "cuda", for tools/gpu_check.sh, beside PyTorch's on the same card.

Each row is printed as soon as it is there. A row whose operators run on the CPU instead says so.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
import time

import lamella


def best(function, synchronize, repeats: int, rounds: int = 4) -> float:
    """Seconds of one call, of the fastest round."""
    function()
    synchronize()
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeats):
            function()
        synchronize()
        found.append((time.perf_counter() - begin) / repeats)
    return min(found)


def host_cost(function, synchronize) -> float:
    """Seconds until a call returns, while the device has nothing else to do."""
    found = []
    for _ in range(200):
        synchronize()
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return sorted(found)[len(found) // 2]


class Rows:
    """The measured rows, of one library; `scale` divides the sizes, for the stand-in."""

    def __init__(self, library, scale: int) -> None:
        self.library, self.scale = library, scale
        self.wait = library.cuda.synchronize
        self.elements = 10**8 // scale

    def speed(self, function, bytes_moved: float) -> float:
        """GB/s."""
        return bytes_moved * 1e-9 / best(function, self.wait, 10)

    def milliseconds(self, function, repeats: int = 10) -> float:
        return 1e3 * best(function, self.wait, repeats)

    def ones(self, *sizes: int, dtype="float32"):
        return self.library.ones(*sizes, dtype=getattr(self.library, dtype), device="cuda")

    def pointwise(self, name: str) -> float:
        library, n = self.library, self.elements
        x, y = self.ones(n), self.ones(n)
        calls = {
            "copy": (lambda: y.copy_(x), 8),
            "add": (lambda: library.add(x, y, out=y), 12),
            "mul": (lambda: x.mul_(1.0), 8),
            "fill": (lambda: y.fill_(1.0), 4),
            "cast": (lambda: x.to(library.bfloat16), 6),
            "exp": (lambda: library.exp(x, out=y), 8),
        }
        function, each = calls[name]
        return self.speed(function, each * n)

    def rows(self, name: str) -> float:
        columns = 4096
        x = self.library.randn(max(self.elements // columns, 1), columns, device="cuda")
        functional = self.library.nn.functional
        calls = {
            "sum": (lambda: x.sum(-1), 4),
            "softmax": (lambda: x.softmax(-1), 8),
            "layer norm": (lambda: functional.layer_norm(x, (columns,)), 8),
        }
        function, each = calls[name]
        return self.speed(function, each * x.numel())

    def sort(self) -> float:
        x = self.library.randn(self.elements // 4, device="cuda")
        return self.elements / 4e9 / best(lambda: x.sort(), self.wait, 2)

    def product(self) -> float:
        n = 8192 // (1 if self.scale == 1 else 64)
        a, b = self.ones(n, n, dtype="bfloat16"), self.ones(n, n, dtype="bfloat16")
        return 2e-12 * n**3 / best(lambda: a @ b, self.wait, 10)

    def batched(self) -> float:
        n = 512 // (1 if self.scale == 1 else 8)
        a, b = self.ones(64, n, n), self.ones(64, n, n)
        return 2e-12 * 64 * n**3 / best(lambda: self.library.bmm(a, b), self.wait, 10)

    def network(self, width: int, heads: int, layers: int, causal: bool):
        """Layers of attention and of a network of two linear ones, as a function of its input."""
        nn, functional = self.library.nn, self.library.nn.functional

        class Layer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x):
                batch, length, _ = x.shape
                split = self.qkv(self.first(x)).view(batch, length, 3, heads, width // heads)
                q, k, v = split.permute(2, 0, 3, 1, 4)
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
                return x + self.down(functional.gelu(self.up(self.second(x))))

        return nn.Sequential(*(Layer() for _ in range(layers))).to("cuda")

    def encoder(self) -> float:
        """MiniLM's shape, one sentence of 32 tokens, compiled."""
        model = self.network(384, 12, 6 if self.scale == 1 else 1, causal=False).eval()
        x = self.library.randn(1, 32, 384, device="cuda")
        compiled = self.library.compile(model, mode="reduce-overhead")
        with self.library.no_grad():
            return self.milliseconds(lambda: compiled(x), 20)

    def training(self) -> float:
        """nanoGPT's shape in bfloat16: 12 layers of 768, 8 rows of 1,024 tokens."""
        small = self.scale != 1
        library, vocabulary = self.library, 50304 // (200 if small else 1)
        nn, functional = library.nn, library.nn.functional
        width, heads, layers = (32, 2, 1) if small else (768, 12, 12)
        body = self.network(width, heads, layers, causal=True)
        table = nn.Embedding(vocabulary, width).to("cuda")
        head = nn.Linear(width, vocabulary, bias=False).to("cuda")
        parameters = [*body.parameters(), *table.parameters(), *head.parameters()]
        optimizer = library.optim.AdamW(parameters, lr=1e-4)
        tokens = library.randint(0, vocabulary, (2, 16) if small else (8, 1024), device="cuda")

        def step() -> None:
            optimizer.zero_grad()
            with library.autocast("cuda", dtype=library.bfloat16):
                logits = head(body(table(tokens)))
                loss = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()

        return self.milliseconds(step, 2)

    def all(self):
        """(name, function)."""
        for name in ("copy", "add", "mul", "fill", "cast", "exp"):
            yield f"{name}, {self.elements:,} float32, GB/s", lambda n=name: self.pointwise(n)
        for name in ("sum", "softmax", "layer norm"):
            yield f"{name} of rows of 4,096, GB/s", lambda n=name: self.rows(n)
        yield f"sort of {self.elements // 4:,} float32, 10⁹/s", self.sort
        yield "bfloat16 8192³, TFLOP/s", self.product
        yield "float32 64 × 512³, TFLOP/s", self.batched
        small = self.ones(16)
        yield (
            "add of 16 elements, host, µs",
            lambda: 1e6 * host_cost(lambda: small + small, self.wait),
        )
        yield (
            "empty (allocator hit), host, µs",
            lambda: 1e6 * host_cost(lambda: self.library.empty(16, device="cuda"), self.wait),
        )
        yield "encoder 1 × 32 compiled, ms", self.encoder
        yield "nanoGPT step, 8 × 1,024 bfloat16, ms", self.training


def on_the_cpu(rows: Rows, name: str) -> str:
    """The operators of a row that run on the CPU, found with small sizes."""
    lamella.cuda.reset_fallbacks()
    dict(rows.all())[name]()
    # Inputs are made once.
    inputs = ("aten::rand", "aten::uniform", "aten::normal", "aten::ones")
    return " ".join(one for one in lamella.cuda.fallbacks() if not one.startswith(inputs))


def value(function) -> float | str:
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:80]


# On the stand-in of tests there is a CPU behind the device.
STANDS_IN = "stand-in" in lamella.cuda.get_device_name()
HEAD = "| what | Lamella | PyTorch | ratio of times |\n|---|---|---|---|"


def row(name: str, mine: float | str, other: float | str) -> str:
    """A row of a table: both values, and the ratio of times."""
    ratio = ""
    if isinstance(mine, float) and isinstance(other, float) and other == other:
        ratio = f"{(other / mine if '/s' in name else mine / other):.2f}"
    cells = [f"{one:.3g}" if isinstance(one, float) else str(one) for one in (mine, other)]
    return f"| {name} | {cells[0]} | {cells[1].replace('nan', '')} | {ratio} |"


def pytorch_with_cuda():
    """PyTorch, if it runs on the same card."""
    if importlib.util.find_spec("torch") is None or STANDS_IN:
        return None
    import torch

    return torch if torch.cuda.is_available() else None


def main() -> int:
    # Sizes for the search of fallbacks, whose names have no sizes.
    tiny, ours = Rows(lamella, 10**5), Rows(lamella, 10**4 if STANDS_IN else 1)
    torch = pytorch_with_cuda()
    theirs = {} if torch is None else dict(Rows(torch, 1).all())
    print(HEAD, flush=True)
    count = 0
    for (name, function), (small, _) in zip(ours.all(), tiny.all()):
        try:
            absent = on_the_cpu(tiny, small)
        except Exception as error:
            absent = f"{type(error).__name__}: {error}".splitlines()[0][:80]
        mine = f"on the CPU: {absent}" if absent and not STANDS_IN else value(function)
        other = value(theirs[name]) if name in theirs else math.nan
        print(row(name, mine, other), flush=True)
        count += isinstance(mine, float)
    version = ctypes.c_int()
    from lamella.cuda import _library

    _library.call("driver_version", "driver_version", ctypes.byref(version))
    print(f"driver {version.value}, {count} rows in timings.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
