"""How a check says that a backend lacks a part."""


class Missing(Exception):
    """Raised by a check for a part that the backend does not have."""
