# Types of lamella.linalg.
from lamella._linalg import *  # noqa: F403

class LinAlgError(RuntimeError):
    """A numerical failure of a linear-algebra operator."""
