"""Python functions that wrap operators of the same name with PyTorch's signatures."""

from __future__ import annotations

from lamella import Tensor, _operators

# Type checkers recognize this name; importing it from typing would slow `import lamella` down.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import lamella


def _tensors(tensors: tuple[Any, ...]) -> list[Tensor]:
    """The tensors of f(a, b) or f([a, b])."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        return list(tensors[0])
    return list(tensors)


def _at_least(name: str) -> Callable[..., Any]:
    operator = _operators[name]

    def function(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
        if len(tensors) == 1:
            given = tensors[0]
            return operator(given) if isinstance(given, Tensor) else tuple(operator(list(given)))
        return tuple(operator(list(tensors)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Tensors of at least {name[-2]} dimensions: one, or a tuple of several."
    return function


atleast_1d = _at_least("atleast_1d")
atleast_2d = _at_least("atleast_2d")
atleast_3d = _at_least("atleast_3d")


def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """A block-diagonal matrix of the given matrices."""
    return _operators["block_diag"](_tensors(tensors))


def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """The Cartesian product of one-dimensional tensors, one combination in each row."""
    return _operators["cartesian_prod"](_tensors(tensors))


def chain_matmul(*matrices: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the cheapest order."""
    made: Tensor = _operators["chain_matmul"](_tensors(matrices), out=out)
    return made


def norm(
    input: Tensor,
    p: lamella._Scalar | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: lamella.dtype | None = None,
) -> Tensor:
    """The norm of order `p` of all elements or along `dim`; "nuc" is the sum of a matrix's singular
    values, and "fro" the same as 2."""
    from lamella import linalg

    if p == "nuc":
        if dim is None:
            dim = range(input.dim())
        dims = [dim] if isinstance(dim, int) else list(dim)
        return linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: expected 'p' to be a number, 'fro' or 'nuc', got {p!r}")
    order = 2 if p is None or isinstance(p, str) else p
    return linalg.vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


def _picked(
    found: tuple[Tensor, Tensor, Tensor], return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    values, inverse, counts = found
    picked = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return picked if len(picked) > 1 else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct values of a tensor, or its distinct slices along `dim`, sorted.

    return_inverse: also the index among them for each entry of the input. return_counts: also how
    often each one occurs."""
    if dim is None:
        found = _operators["_unique2"](input, sorted, return_inverse, return_counts)
    else:
        found = _operators["unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _picked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Like `unique`, but removes only repetitions of the value directly before."""
    found = _operators["unique_consecutive"](input, return_inverse, return_counts, dim)
    return _picked(found, return_inverse, return_counts)


def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Tensor | Sequence[int | Sequence[int]] = 2,
    out: Tensor | None = None,
) -> Tensor:
    """Sums products over dimensions: the last `dims` of `a` and the first `dims` of `b`, or those
    that two lists name."""
    given: int | Sequence[int | Sequence[int]]
    given = dims.tolist() if isinstance(dims, Tensor) else dims
    if isinstance(given, int):
        if given < 0:
            raise RuntimeError(f"tensordot: expected 'dims' of at least 0, got {given}")
        of_a, of_b = list(range(-given, 0)), list(range(given))
    else:
        of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in given)
    if out is None:
        return _operators["tensordot"](a, b, of_a, of_b)
    return _operators["tensordot"](a, b, of_a, of_b, out=out)


_MODES = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm distances between all pairs of rows of `x1` and `x2`, which may be batched."""
    if compute_mode not in _MODES:
        raise ValueError(
            f"cdist: expected 'compute_mode' to be one of {', '.join(_MODES)}, got {compute_mode!r}"
        )
    return _operators["cdist"](x1, x2, p, _MODES[compute_mode])


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of that shape of flat indices: one tensor for each dimension."""
    import lamella

    if indices.is_complex() or indices.is_floating_point() or indices.dtype == lamella.bool:
        raise TypeError(f"unravel_index: expected 'indices' to be integers, got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else [int(size) for size in shape]
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: expected 'shape' without negative sizes, got {sizes}")
    indices = indices.to(lamella.int64)
    found = []
    behind = 1
    for size in reversed(sizes):
        found.append(indices.div(behind, rounding_mode="floor").remainder(max(size, 1)))
        behind *= size
    return tuple(reversed(found))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The LU decomposition, both factors in one matrix, with its pivots."""
    import lamella

    factors, pivots, infos = lamella.linalg.lu_factor_ex(A, pivot=pivot)
    return (factors, pivots, infos) if get_infos else (factors, pivots)


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximates the largest `q` singular values of A - M, and their vectors.

    The range of A is found by random vectors and power iterations (N. Halko, P. Martinsson and
    J. Tropp, Finding structure with randomness, 2011, algorithms 4.4 and 5.1).
    """
    import lamella

    matrix = A if M is None else A - M.broadcast_to(A.shape)
    wide = matrix.shape[-2] < matrix.shape[-1]
    if wide:
        matrix = matrix.mH
    start = lamella.randn(matrix.shape[-1], 6 if q is None else q, dtype=A.dtype, device=A.device)
    basis = lamella.linalg.qr(matrix @ start)[0]
    for _ in range(niter or 0):
        basis = lamella.linalg.qr(matrix.mH @ basis)[0]
        basis = lamella.linalg.qr(matrix @ basis)[0]
    U, S, Vh = lamella.linalg.svd(basis.mH @ matrix, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximates the first `q` principal components of the rows of A."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: expected 'q' to be in [0, {min(m, n)}], got {q}")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter=niter)
