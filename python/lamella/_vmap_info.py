"""What a batching rule written in Python is told."""

from typing import NamedTuple


class VmapInfo(NamedTuple):
    """What a rule for vmap is told of the vmap."""

    batch_size: int
    randomness: str
