"""Forward-mode differentiation with dual tensors, whose tangents operators propagate."""

from __future__ import annotations

from typing import NamedTuple

from lamella import _C, Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1


class _set_fwd_grad_enabled:  # noqa: N801
    """Switches propagation of tangents on or off: immediately, and until the end of a `with` block
    if used as one."""

    def __init__(self, mode: bool) -> None:
        self._before: bool = _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _C._set_fwd_grad_enabled(self._before)


def _is_fwd_grad_enabled() -> bool:
    before: bool = _C._set_fwd_grad_enabled(True)
    _C._set_fwd_grad_enabled(before)
    return before


class UnpackedDualTensor(NamedTuple):
    """The result of unpack_dual(); tangent is None for a tensor without one."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Opens a level, in which tensors may have tangents; returns its number."""
    global _current_level
    if _current_level >= 0:
        raise RuntimeError(
            "enter_dual_level: expected no other level to be open, as levels cannot be nested"
        )
    _current_level += 1
    _C._enter_dual_level()
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level: all tensors lose their tangents."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level or level < 0:
        raise RuntimeError(
            f"exit_dual_level: expected 'level' to be the one that is open, {_current_level}, "
            f"got {level}"
        )
    _C._exit_dual_level()
    _current_level -= 1


class dual_level:  # noqa: N801
    """Opens a level for a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` with the tangent `tangent`, of the same shape and dtype."""
    if (_current_level if level is None else level) < 0:
        raise RuntimeError("make_dual: expected a level to be open; use it inside of dual_level()")
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"make_dual: expected '{name}' to be floating-point or complex, got {value.dtype}"
            )
    made: Tensor = _C._make_dual(tensor, tangent)
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent or None."""
    if (_current_level if level is None else level) < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))
