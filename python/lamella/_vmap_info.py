"""VmapInfo: the first argument of batching rules written in Python."""

from typing import NamedTuple


class VmapInfo(NamedTuple):
    """The batch size and the randomness ("error", "different" or "same") of the running vmap."""

    batch_size: int
    randomness: str
