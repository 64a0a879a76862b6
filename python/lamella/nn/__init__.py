"""Operators for neural networks, in lamella.nn.functional."""

from lamella.nn import functional  # noqa: F401
