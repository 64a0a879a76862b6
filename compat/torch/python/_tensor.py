"""torch._tensor."""

from lamella import Tensor as Tensor
