"""no_dispatch: a context without dispatch handlers written in Python."""

from lamella.utils._python_dispatch import _disable_handlers as no_dispatch

__all__ = ["no_dispatch"]
