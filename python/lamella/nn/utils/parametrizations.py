"""Parametrizations: weights of a given norm, of spectral norm 1, or with orthonormal columns."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from lamella.nn.modules.module import Module
from lamella.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor(function: str, module: Module, name: str) -> Tensor:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter or buffer '{name}'")
    return found


# ---- Length and direction (T. Salimans and D. Kingma, Weight normalization, 2016) ----


def norm_except_dim(weight: Tensor, dim: int | None) -> Tensor:
    """The norms of the slices along a dimension, or of the whole, in a shape that broadcasts."""
    if dim is None or dim == -1:
        return weight.norm()
    dims = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    return weight.norm(2, dims, keepdim=True) if dims else weight.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Makes a tensor the product of norms (original0) and directions (original1), along a
    dimension; dim None: of a single norm."""
    _tensor("weight_norm", module, name)
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


# ---- Spectral norm 1 (T. Miyato et al., Spectral normalization for generative adversarial
# networks, 2018) ----


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix [size of dim, product of the other sizes]."""
    return (weight if dim == 0 else weight.transpose(0, dim)).reshape(weight.size(dim), -1)


def output_dim(module: Module, dim: int | None) -> int:
    """The dimension of a weight that counts outputs."""
    if dim is not None:
        return dim
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"spectral_norm: expected 'dim' to be in [{-weight.dim()}, {weight.dim() - 1}], "
                f"got {dim}"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "spectral_norm: expected 'n_power_iterations' to be positive, got "
                f"{n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.shape
            u, v = (matrix.new_empty(n).normal_(0, 1) for n in (rows, columns))
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        """Moves the vectors towards the first singular vectors, by power iteration."""
        with lamella.no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # The vectors change in place at the next call, maybe before backward.
        u, v = self._u.clone(), self._v.clone()
        return weight / lamella.vdot(u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a tensor by its largest singular value as a matrix [size of dim, the rest], where
    `dim` counts outputs; power iterations in training approximate the value."""
    weight = _tensor("spectral_norm", module, name)
    made = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)


# ---- Orthonormal columns, or rows if there are fewer rows ----


class _Orthogonal(Module):
    """A trivialization (M. Lezcano-Casado, Trivializations for gradient-based optimization on
    manifolds, 2019): base times an orthogonal map of a free matrix. An assignment sets `base` and
    resets the free matrix."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        base = None
        if use_trivialization:
            tall = weight.detach() if weight.size(-2) >= weight.size(-1) else weight.detach().mT
            base = _complete(_orthonormal(tall)).clone()
        self.register_buffer("base", base)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        wide = rows < columns
        if wide:
            X, rows, columns = X.mT, columns, rows
        if self.orthogonal_map == "householder":
            Q = lamella.linalg.householder_product(X.tril(-1), _reflector_scales(X))
            Q = Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        else:
            A = X.tril()
            if rows != columns:
                A = F.pad(A, [0, rows - columns])
            A = A - A.mH
            if self.orthogonal_map == "matrix_exp":
                Q = lamella.linalg.matrix_exp(A)
            else:
                one = lamella.eye(rows, dtype=A.dtype, device=A.device)
                Q = lamella.linalg.solve(one - A / 2, one + A / 2)
            if rows != columns:
                Q = Q[..., :columns]
        if self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        wide = Q.size(-2) < Q.size(-1)
        tall = _orthonormal(Q.mT if wide else Q)
        if self.base is None:
            if self.orthogonal_map != "householder":
                raise NotImplementedError
            # The reflectors of a matrix with orthonormal columns, with the signs on the diagonal.
            A, tau = lamella.geqrf(tall)
            signs = A.diagonal(dim1=-2, dim2=-1).sgn()
            A = A.tril(-1)
            A.diagonal(dim1=-2, dim2=-1).copy_(lamella.where(tau == 0, -signs, signs))
            return A.mT if wide else A
        self.base.copy_(_complete(tall))
        start = lamella.zeros_like(tall)
        # The columns of base are those of Q, so that the map must be the identity: zero reflectors,
        # which flip the signs, need -1 on the diagonal. The other maps do not read the diagonal.
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start.mT if wide else start


def _reflector_scales(X: Tensor) -> Tensor:
    """2 / (1 + the sum of squares below the diagonal), for each column."""
    return 2.0 / (1.0 + X.tril(-1).square().sum(-2))


def _orthonormal(A: Tensor) -> Tensor:
    """A itself if its columns are orthonormal, else those of its QR decomposition, with the signs
    of the diagonal."""
    one = lamella.eye(A.size(-1), dtype=A.dtype, device=A.device)
    bound = 10.0 * A.size(-2) * float(lamella.finfo(A.dtype).eps)
    if bool(((A.mH @ A - one).abs() <= bound).all()):
        return A
    Q, R = lamella.linalg.qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _complete(Q: Tensor) -> Tensor:
    """A square orthogonal matrix that begins with the columns of Q."""
    rows, columns = Q.shape[-2:]
    if rows == columns:
        return Q
    rest = Q.new_empty((*Q.shape[:-2], rows, rows - columns)).normal_()
    rest = rest - Q @ (Q.mH @ rest)
    return lamella.cat([Q, _orthonormal(rest)], -1)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Makes the columns of a matrix orthonormal, or its rows if there are fewer rows.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; None takes the first for square
    matrices and complex ones, else the last.
    """
    weight = _tensor("orthogonal", module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"orthogonal: expected '{name}' to have at least 2 dimensions, got {weight.dim()}"
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            "orthogonal: expected 'orthogonal_map' to be matrix_exp, cayley or householder, got "
            f"{orthogonal_map!r}"
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("orthogonal: expected real numbers with the map householder")
    made: Any = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
