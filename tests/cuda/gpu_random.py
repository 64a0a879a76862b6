"""Random numbers of "cuda" beside PyTorch's with the same seed, for tools/gpu_check.sh."""

from __future__ import annotations

import importlib.util
import sys

import lamella

COUNTS = (7, 1000, 300_001)
FUNCTIONS = {
    "rand": lambda library, n: library.rand(n, device="cuda"),
    "randn": lambda library, n: library.randn(n, device="cuda"),
    "randint": lambda library, n: library.randint(0, 1000, (n,), device="cuda"),
    "randperm": lambda library, n: library.randperm(n, device="cuda"),
    "bernoulli": lambda library, n: library.full((n,), 0.3, device="cuda").bernoulli(),
    "dropout": lambda library, n: library.nn.functional.dropout(library.ones(n, device="cuda")),
    "uniform_": lambda library, n: library.empty(n, device="cuda").uniform_(-2, 3),
    "normal_": lambda library, n: library.empty(n, device="cuda").normal_(1, 2),
    "exponential_": lambda library, n: library.empty(n, device="cuda").exponential_(),
}


def main() -> int:
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed")
        return 0
    import torch

    if not torch.cuda.is_available():
        print("PyTorch has no CUDA here")
        return 0
    other = []
    for name, function in FUNCTIONS.items():
        try:
            same = True
            for library in (lamella, torch):
                library.manual_seed(1234)
            for count in COUNTS:  # one after the other: the generators advance alike as well
                ours, theirs = (function(library, count).cpu() for library in (lamella, torch))
                same = same and ours.tolist() == theirs.tolist()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
            same = False
        print(f"{name}: {'the same' if same else 'other'} numbers", flush=True)
        other += [] if same else [name]
    print(f"{len(FUNCTIONS) - len(other)} of {len(FUNCTIONS)} the same; other: {' '.join(other)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
