"""Times of the devices "cuda", for tools/gpu_check.sh, beside PyTorch's on the same card."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import time

import lamella


def best(function, synchronize, repeats: int, rounds: int = 5) -> float:
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


def rows(library, elements: int):
    x = library.ones(elements, device="cuda")
    y = library.ones(elements, device="cuda")
    small = library.ones(16, device="cuda")
    wait, repeats = library.cuda.synchronize, 20
    gigabytes = elements * 4e-9
    copied = 2 * gigabytes / best(lambda: y.copy_(x), wait, repeats)
    yield "copy, GB/s", copied
    for name, function, moved in (
        ("add, GB/s", lambda: library.add(x, y, out=y), 3),
        ("mul by a number, GB/s", lambda: x.mul_(1.0), 2),
        ("fill, GB/s", lambda: y.fill_(1.0), 1),
        ("cast to bfloat16, GB/s", lambda: x.to(library.bfloat16), 1.5),
        ("exp, GB/s", lambda: library.exp(x, out=y), 2),
    ):
        yield name, moved * gigabytes / best(function, wait, repeats if "exp" not in name else 1)
    yield "add of 16 elements, host, µs", 1e6 * host_cost(lambda: small + small, wait)
    yield "empty, host, µs", 1e6 * host_cost(lambda: library.empty(16, device="cuda"), wait)


def main() -> int:
    free, _ = lamella.cuda.mem_get_info()
    # On the stand-in of tests there is a CPU behind the device.
    stands_in = "stand-in" in lamella.cuda.get_device_name()
    elements = 10**5 if stands_in else min(10**8, free // 16)
    ours = dict(rows(lamella, elements))
    theirs: dict[str, float] = {}
    if importlib.util.find_spec("torch") is not None and not stands_in:
        import torch

        if torch.cuda.is_available():
            theirs = dict(rows(torch, elements))
    print(f"| {elements:,} float32 elements | Lamella | PyTorch |\n|---|---|---|")
    for name, value in ours.items():
        other = f"{theirs[name]:.2f}" if name in theirs else ""
        print(f"| {name} | {value:.2f} | {other} |")
    version = ctypes.c_int()
    from lamella.cuda import _library

    _library.call("driver_version", "driver_version", ctypes.byref(version))
    print(f"driver {version.value}, {len(ours)} rows in timings.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
