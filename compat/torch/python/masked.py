"""torch.masked: reductions and normalizations over the elements whose mask is True.

Masked-out elements are replaced by the identity of the operation: 0 in sums, infinity in minima.
MaskedTensor is absent: a tensor and its mask are two tensors here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional

_Dims = Any  # None, an int or a sequence of ints


def _filled(op: str, input: Tensor, mask: Tensor | None, fill: Any, dtype: Any = None) -> Tensor:
    """The input with `fill` where the mask, which must broadcast to it, is False."""
    input = input if dtype is None else input.to(dtype)
    if mask is None:
        return input
    if mask.dim() > input.dim():
        raise IndexError(
            f"{op}: expected 'mask' to have at most {input.dim()} dimensions, got {mask.dim()}"
        )
    return input.masked_fill(mask.logical_not(), fill)


def _all_dims(input: Tensor, dim: _Dims) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(input.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _counted(input: Tensor, dtype: Any) -> Any:
    """The result dtype of sums and products: int64 for integers."""
    if dtype is not None:
        return dtype
    whole = not (input.is_floating_point() or input.is_complex())
    return lamella.int64 if whole else input.dtype


def _floating(op: str, input: Tensor, dtype: Any) -> Any:
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        raise ValueError(f"{op}: expected floating-point numbers or a 'dtype', got {input.dtype}")
    return dtype


def _least(dtype: Any) -> Any:
    return -math.inf if dtype.is_floating_point else lamella.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    return math.inf if dtype.is_floating_point else lamella.iinfo(dtype).max


def _reduction(
    name: str, text: str, fill: Callable[[Any], Any], dtype_of: Callable[..., Any] = lambda _, t: t
) -> Callable[..., Tensor]:
    """A reduction over dimensions, all of them by default, in which masked-out elements
    count as `fill` of the dtype. dtype_of: the dtype of the sums of a tensor."""

    def reduced(
        input: Tensor,
        dim: _Dims = None,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        one = name.startswith("arg")
        to = None if one else dtype_of(input, dtype)
        filled = _filled(name, input, mask, fill((None if one else dtype) or input.dtype), to)
        if one:
            return getattr(filled, name)(dim, keepdim).to(dtype or input.dtype)
        dims = _all_dims(input, dim)
        if name != "prod":
            return getattr(filled, name)(dims, keepdim)
        for d in sorted((d % max(input.dim(), 1) for d in dims), reverse=True):
            filled = filled.prod(d, keepdim)
        return filled

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = text
    return reduced


sum = _reduction("sum", "Sums; 0 if all elements are masked out.", lambda _: 0, _counted)
prod = _reduction("prod", "Products; 1 if all elements are masked out.", lambda _: 1, _counted)
amax = _reduction(
    "amax", "Maxima; the dtype's smallest value if all elements are masked out.", _least
)
amin = _reduction(
    "amin", "Minima; the dtype's largest value if all elements are masked out.", _most
)
argmax = _reduction("argmax", "Indices of the maxima, as numbers of the input's dtype.", _least)
argmin = _reduction("argmin", "Indices of the minima, as numbers of the input's dtype.", _most)
logsumexp = _reduction(
    "logsumexp",
    "log(sum(exp(input))); -infinity if all elements are masked out.",
    lambda _: -math.inf,
)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Cumulative sums."""
    return _filled("cumsum", input, mask, 0, _counted(input, dtype)).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Cumulative products."""
    return _filled("cumprod", input, mask, 1, _counted(input, dtype)).cumprod(dim)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    there = lamella.ones(input.shape, dtype=lamella.int64, device=input.device)
    return sum(there, dims, keepdim=keepdim, mask=mask)


def mean(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Means over dimensions, all of them by default; NaN if all elements are masked out."""
    dtype = _floating("mean", input, dtype)
    dims = _all_dims(input, dim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dims, keepdim, mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Lower medians along a dimension; NaN if all elements are masked out. ValueError if the input
    of a call with a mask contains NaN."""
    dtype = _floating("median", input, dtype)
    filled = _filled("median", input, mask, math.nan, dtype)
    if mask is not None and bool(input.isnan().any()):
        raise ValueError("median: expected no NaN in 'input', got one")
    return filled.nanmedian(dim, keepdim)[0]


def var(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Variances over dimensions. correction: subtracted from the count; 1 by default, 0 for
    unbiased=False."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("var: expected either 'unbiased' or 'correction', got both")
    less = correction if correction is not None else int(unbiased is not False)
    if dtype is None:
        real = input.is_floating_point() or input.is_complex()
        dtype = input.dtype if real else lamella.float32
    input, dims = input.to(dtype), _all_dims(input, dim)
    away = input - mean(input, dims, keepdim=True, mask=mask)
    squares = (away * away.conj()).real if away.is_complex() else away * away
    total = sum(squares, dims, keepdim=keepdim, mask=mask)
    return total / (_count(input, dims, keepdim, mask) - less).clamp_min(0)


def std(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square roots of var()."""
    options: Any = {"correction": correction, "keepdim": keepdim, "dtype": dtype, "mask": mask}
    return var(input, dim, unbiased, **options).sqrt()


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: _Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Vector norms over dimensions, all of them by default."""
    filled = _filled("norm", input, mask, 0 if ord >= 0 else math.inf, dtype)
    return lamella.linalg.vector_norm(filled, ord, _all_dims(input, dim), keepdim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Divides by the norm along a dimension, which is clamped to at least `eps`."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask, 0, dtype) / length.clamp_min(eps)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), with a mask for each of the two."""
    one = _filled("logaddexp", input, input_mask, -math.inf, dtype)
    return lamella.logaddexp(one, _filled("logaddexp", other, other_mask, -math.inf, dtype))


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax() along a dimension; masked-out elements are 0, or NaN if all are masked out."""
    return functional.softmax(_filled("softmax", input, mask, -math.inf, dtype), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of softmax()."""
    return functional.log_softmax(_filled("log_softmax", input, mask, -math.inf, dtype), dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax() of -input."""
    return functional.softmin(_filled("softmin", input, mask, math.inf, dtype), dim)


def is_masked_tensor(obj: Any, /) -> bool:
    """False: a tensor and its mask are two tensors."""
    return False
