"""Settings of the module torch. Those that choose among kernels are stored and change nothing:
there is one kernel for each operator, and it gives the same bits each time."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C
from lamella.cuda import _library

has_lapack = True
has_mkl = False
has_openmp = False

_kept: dict[str, Any] = {
    "deterministic": False,
    "warn_only": False,
    "precision": "highest",
    "warn_always": False,
}

# There are no symbolic numbers: these are the types of plain numbers.
SymInt, SymFloat, SymBool = (
    type("SymInt", (), {}),
    type("SymFloat", (), {}),
    type("SymBool", (), {}),
)
sym_int, sym_float, sym_max, sym_min = int, float, max, min


def sym_not(a: Any) -> bool:
    """Logical not."""
    return not a


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Fills new memory and refuses operators whose result PyTorch does not determine. Kernels of
    the CPU always give the same bits, those of CUDA if asked to."""
    from lamella.compat import _deterministic

    for name, value in ("mode", mode), ("warn_only", warn_only):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms: expected '{name}' to be bool, got "
                + type(value).__name__
            )
    _kept["deterministic"], _kept["warn_only"] = mode, warn_only
    _deterministic.set_mode(mode, warn_only)
    lamella.cuda.use_deterministic_algorithms(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """The value given to use_deterministic_algorithms()."""
    return _kept["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The warn_only value given to use_deterministic_algorithms()."""
    return _kept["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    names = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"set_deterministic_debug_mode: expected default, warn or error, got {debug_mode!r}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """The value given to set_deterministic_debug_mode(), as a number."""
    return 0 if not _kept["deterministic"] else 1 if _kept["warn_only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Lets products of float32 on CUDA round their operands to TF32, unless it is highest; others
    always use float32."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: expected highest, high or medium, got {precision!r}"
        )
    allow_tf32(0, precision != "highest")
    _kept["precision"] = precision


def allow_tf32(of: int, allowed: bool) -> None:
    """Sets whether products (of = 0) or convolutions (1) of float32 on CUDA use TF32."""
    if of == 0 and allowed != (_kept["precision"] != "highest"):
        _kept["precision"] = "high" if allowed else "highest"
    if lamella.cuda.is_available():
        _library.call("allow_tf32", "allow_tf32", of, int(allowed))


def get_float32_matmul_precision() -> str:
    """The value given to set_float32_matmul_precision()."""
    return _kept["precision"]


def set_warn_always(b: bool) -> None:
    """Stores the value."""
    _kept["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """The value given to set_warn_always()."""
    return _kept["warn_always"]


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    before = _C._set_anomaly_enabled(True)
    _C._set_anomaly_enabled(before)
    return before


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode raises an error for a NaN in a backward."""
    before = _C._set_nan_check(True)
    _C._set_nan_check(before)
    return before


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turns anomaly mode on or off."""
    _C._set_anomaly_enabled(mode)
    _C._set_nan_check(check_nan)


def set_flush_denormal(mode: bool) -> bool:
    """False: the processor's mode is not changed."""
    return False


def get_num_interop_threads() -> int:
    """1: operators do not run concurrently."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Does nothing: operators do not run concurrently."""
    if num <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number, got {num}")


def compiled_with_cxx11_abi() -> bool:
    """True."""
    return True
