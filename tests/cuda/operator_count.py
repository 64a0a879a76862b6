"""Counts the operators that have kernels of the device, and those that run there by the fallback.

`python tests/cuda/operator_count.py` prints which run by the fallback, and the numbers.
"""

from __future__ import annotations

import lamella
from lamella import _C


def declarations() -> tuple[list[str], list[str]]:
    """The operators that have a kernel for the CPU of their own: those that have one for the
    device, and those that run there by the fallback. In-place and out= forms of another operator
    share its kernel, and count with it."""
    lamella.empty(0, device="cuda")
    have: dict[bool, set[str]] = {True: set(), False: set()}
    names = [
        one if isinstance(one, tuple) else (*one.split("."), "")[:2] for one in _C._operator_names()
    ]
    every = {name for name, _ in names}
    for name, overload in names:
        form = name.endswith("_") and name.rstrip("_") in every
        if not name.startswith("aten::") or form or "out" in overload.split("_"):
            continue
        entry = _C._operator_entry(name, overload)
        keys = {kernel["key"] for kernel in entry["kernels"]}
        if "CPU" in keys:
            have["CUDA" in keys].add(f"{name}.{overload}" if overload else name)
    return sorted(have[True]), sorted(have[False])


def said() -> str:
    device, fallback = declarations()
    return f"{len(device)} of {len(device) + len(fallback)} operators have kernels of the device"


if __name__ == "__main__":
    print("by fallback:", " ".join(declarations()[1]))
    print(said())
