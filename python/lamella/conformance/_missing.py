"""Missing: the exception of a check for a part that the backend lacks."""


class Missing(Exception):
    """Raised by a check for a part that the backend does not have."""
