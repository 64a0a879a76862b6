"""The array API's linear algebra."""

from __future__ import annotations

from typing import Any, NamedTuple

import lamella
from lamella import Tensor
from lamella.array_api._dtypes import common
from lamella.array_api._manipulation import broadcast_shapes, matrix_transpose  # noqa: F401
from lamella.array_api._reading import sum

_linalg = lamella.linalg

__all__ = (
    "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power "
    "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot "
    "vector_norm"
).split()


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, over leading axes that broadcast."""
    return lamella.matmul(*common(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums products over axes of both arrays."""
    a, b = common(x1, x2)
    return lamella.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products along an axis, with x1 conjugated."""
    if not -min(x1.ndim, x2.ndim) <= axis <= -1 and not x1.ndim == x2.ndim > axis >= 0:
        raise IndexError(f"vecdot: expected an axis that both have, got {axis}")
    x1, x2 = common(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError("vecdot: expected axes of the same size")
    rows, columns = (lamella.moveaxis(x, axis, -1) for x in (x1, x2))
    return (rows.conj()[..., None, :] @ columns[..., :, None])[..., 0, 0]


def cholesky(x: Tensor, /, *, upper: Any = False) -> Tensor:
    """The triangular factor of positive definite matrices."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements."""
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim):
        raise IndexError(f"cross: expected an axis that both have, got {axis}")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("cross: expected vectors of 3 elements")
    x1, x2 = lamella.broadcast_tensors(*common(x1, x2))
    return _linalg.cross(x1, x2, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices."""
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return lamella.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of matrices; complex."""
    return EigResult(*_linalg.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of matrices; complex."""
    return _linalg.eigvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*_linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of Hermitian matrices."""
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices."""
    return _linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: Any = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices."""
    return _linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th powers of matrices."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The ranks of matrices."""
    return _linalg.matrix_rank(x) if rtol is None else _linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    x1, x2 = common(x1, x2)
    return x1[:, None] * x2[None, :]


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverses of matrices."""
    return _linalg.pinv(x) if rtol is None else _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """The orthogonal and triangular factors of matrices."""
    return QRResult(*_linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs and the logarithms of determinants."""
    return SlogdetResult(*_linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ result == x2, where x2 is a vector or matrices."""
    x1, x2 = common(x1, x2)
    if x2.ndim == 1:
        return _linalg.solve(x1, x2[:, None].expand(x1.shape[:-1] + (1,)))[..., 0]
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return _linalg.solve(x1.expand(batch + x1.shape[-2:]), x2.expand(batch + x2.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: Any = True) -> SVDResult:
    """The singular values and vectors of matrices."""
    return SVDResult(*_linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices."""
    return _linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of diagonals."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Tensor:
    """Norms of vectors along axes, or of all elements."""
    if axis == ():
        return lamella.abs(x) if ord != 0 else (x != 0).to(lamella.abs(x).dtype)
    if axis is None:
        axis = tuple(range(x.ndim))
        if not axis:
            return vector_norm(x[None], axis=0, ord=ord)
    return _linalg.vector_norm(x, ord, axis, keepdims)
