"""The arguments of Module.to()."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor


def to_arguments(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
    """(device, dtype, non_blocking) of the arguments of to()."""
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    non_blocking = bool(kwargs.pop("non_blocking", False))
    tensor = kwargs.pop("tensor", None)
    if kwargs:
        raise TypeError(f"to: got an unexpected keyword argument '{next(iter(kwargs))}'")
    for arg in args:
        if isinstance(arg, Tensor):
            tensor = arg
        elif isinstance(arg, lamella.dtype):
            dtype = arg
        elif isinstance(arg, bool):
            non_blocking = arg
        elif isinstance(arg, (str, int, lamella.device)):
            device = arg
        elif arg is not None:
            raise TypeError(
                "to: expected a device, a dtype or a tensor, got an argument of type "
                f"{type(arg).__name__}"
            )
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"to: expected 'dtype' to be floating or complex, got {dtype}")
    return device, dtype, non_blocking
