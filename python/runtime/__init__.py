"""Lamella's runtime: operators of libraries in other frameworks, by lamella.bridge, for every
version of Python. The package `lamella` has all of Lamella, and takes this one's place."""

import typing as _typing

__version__ = "@VERSION@"


def __getattr__(name: str) -> _typing.Any:
    if name == "bridge":
        import lamella.bridge

        return lamella.bridge
    raise AttributeError(
        f"module 'lamella' has no attribute '{name}': it is lamella-runtime, which has "
        "lamella.bridge alone; `pip install lamella` brings all of Lamella"
    )
