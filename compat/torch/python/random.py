"""torch.random."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import lamella
from lamella import default_generator as default_generator
from lamella import get_rng_state as get_rng_state
from lamella import initial_seed as initial_seed
from lamella import manual_seed as manual_seed
from lamella import seed as seed
from lamella import set_rng_state as set_rng_state


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, *args: Any, **kwargs: Any
) -> Iterator[None]:
    """A context that restores the state of the random number generators."""
    if not enabled:
        yield
        return
    state = lamella.get_rng_state()
    try:
        yield
    finally:
        lamella.set_rng_state(state)
