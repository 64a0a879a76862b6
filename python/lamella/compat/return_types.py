"""torch.return_types: what operators with several results give, which is a class for each."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import lamella

    found = None if name.startswith("_") else lamella._C.return_types.get(name)
    if found is None:
        from lamella.compat._absent import missing

        raise missing(f"return_types.{name}", ())
    return found
