from collections.abc import Sequence
from typing import Any

from lamella import Tensor
from lamella import dtype as _dtype
from lamella._nn import *  # noqa: F403

# Functions that the package has under the same name.
def __getattr__(name: str) -> Any: ...
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor: ...
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None
) -> Tensor: ...
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor: ...
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor: ...
def relu(input: Tensor, inplace: bool = False) -> Tensor: ...
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor: ...
