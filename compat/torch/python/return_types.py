"""torch.return_types: the named-tuple classes of operators with several results."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import lamella
    from lamella.compat._absent import missing

    where, _, last = name.rpartition("_")
    home = getattr(lamella, where, lamella) if where in ("linalg", "special") else lamella
    function = None if name.startswith("__") else getattr(home, last if where else name, None)
    if where and function is None:
        function = getattr(lamella, name, None)
    # An operator's class is created when it first returns.
    vector, matrix = lamella.ones(1), lamella.eye(1)
    for arguments in ((vector, 0), (vector, 1, 0), (vector,), (matrix,), (matrix, matrix)):
        try:
            made = function(*arguments) if callable(function) else None
        except (RuntimeError, TypeError, IndexError):
            continue
        if isinstance(made, tuple) and type(made) is not tuple:
            globals()[name] = type(made)
            return type(made)
    raise missing(f"return_types.{name}", ())
