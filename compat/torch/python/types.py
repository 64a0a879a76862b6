"""torch.types: type aliases for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import lamella
from lamella import Tensor as Tensor
from lamella import UntypedStorage

Number = Union[int, float, bool]
Device = Union[lamella.device, str, int, None]
FileLike = Union[str, os.PathLike, Any]
Storage = UntypedStorage
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrTensorsOrGradEdge = Any
_dtype, _device, _layout, _size = lamella.dtype, lamella.device, lamella.layout, Sequence[int]
_bool, _int, _float, _complex = bool, int, float, complex
_Number = (int, float, bool)
