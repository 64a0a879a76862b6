"""Functions of the module torch that are methods, or short combinations of operators, in
Lamella."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella import segment_reduce as _segment_reduce  # noqa: F401
from lamella._storage import UntypedStorage, rebuild_tensor


def typename(obj: Any) -> str:
    """The full name of an object's type."""
    return lamella.typename(obj).replace("lamella.", "torch.", 1)


def _method(name: str, method: str, doc: str) -> Any:
    def function(input: Tensor) -> Any:
        return getattr(input, method)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


is_conj = _method("is_conj", "is_conj", "Whether the tensor is a lazy conjugate.")
is_neg = _method("is_neg", "is_neg", "Whether the tensor is a lazy negative.")
is_inference = _method(
    "is_inference", "is_inference", "Whether the tensor was made in inference mode."
)
get_device = _method("get_device", "get_device", "The index of the device; -1 on the CPU.")
_is_all_true = _method("_is_all_true", "all", "Whether all elements of a mask are true.")
_is_any_true = _method("_is_any_true", "any", "Whether an element of a mask is true.")


def is_distributed(input: Tensor) -> bool:
    """False."""
    return False


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: expected one element, got {input.numel()}")
    return bool(input.item())


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are the same."""
    return input.shape == other.shape


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns, the highest first unless `increasing`."""
    if x.dim() != 1:
        raise RuntimeError(f"vander: expected 'x' to have 1 dimension, got {x.dim()}")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError(f"vander: expected 'N' not to be negative, got {count}")
    if x.dtype == lamella.bool:
        x = x.long()
    if count < 2:  # no column, or only x ** 0
        return lamella.ones(x.numel(), count, dtype=x.dtype, device=x.device)
    powers = lamella.linalg.vander(x, N=count)
    return powers if increasing else powers.flip(-1)


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor as a DLPack capsule."""
    return tensor.__dlpack__()


def from_file(
    filename: str, shared: bool | None = False, size: int = 0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """The first `size` elements of a file, memory-mapped; with `shared`, writes change the file."""
    dtype = lamella.get_default_dtype() if dtype is None else dtype
    if not size:
        return lamella.empty(0, dtype=dtype, **options)
    storage = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    made = rebuild_tensor(storage, dtype, 0, (size,), (1,))
    device, requires_grad = options.get("device"), options.get("requires_grad", False)
    return (made if device is None else made.to(device)).requires_grad_(requires_grad)


def _efficientzerotensor(*size: Any, **options: Any) -> Tensor:
    """Zeros in the memory of one element."""
    return lamella.ops.aten._efficientzerotensor(
        lamella.Size(*size) if size and not isinstance(size[0], int) else size, **options
    )


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one."""
    if dim == -1:
        return lamella.norm(v, pow)
    rest = [i for i in range(v.dim()) if i != dim % v.dim()]
    return lamella.linalg.vector_norm(v, pow, dim=rest, keepdim=True)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix product, of a sparse or dense matrix and a dense one."""
    return lamella.mm(input, mat2)


dsmm = hsmm = spmm


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The matrix product of a sparse matrix and a dense one, as a sparse matrix."""
    return lamella.mm(input, mat).to_sparse()


hspmm = smm


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), sparse, of sparse `input` and `mat1`."""
    return input.mul(beta).add(smm(mat1, mat2), alpha=alpha)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Matrix products of groups. `offs` has the end of each group: of rows of a matrix mat_a, of
    columns of a matrix mat_b, or of the inner dimension if both are matrices."""
    if bias is not None:
        raise RuntimeError("grouped_mm: expected 'bias' to be None")
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        made = lamella.bmm(mat_a, mat_b)
        return made if out_dtype is None else made.to(out_dtype)
    if offs is None:
        raise ValueError("grouped_mm: expected 'offs' where an operand is a matrix, got None")
    ends = offs.tolist()
    begins = [0, *ends[:-1]]
    if mat_a.dim() == 2 and mat_b.dim() == 3:
        parts = [mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(zip(begins, ends))]
        made = lamella.cat([*parts, mat_a.new_zeros(mat_a.size(0) - ends[-1], mat_b.size(-1))])
    elif mat_a.dim() == 3:
        parts = [mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(zip(begins, ends))]
        made = lamella.cat(
            [*parts, mat_b.new_zeros(mat_a.size(1), mat_b.size(1) - ends[-1])], dim=-1
        )
    else:
        made = lamella.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in zip(begins, ends)])
    return made if out_dtype is None else made.to(out_dtype)


_grouped_mm = grouped_mm


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], operands: Any = ()
) -> Any:
    """Calls one of two functions with the operands, chosen by a bool or a one-element tensor."""
    return (true_fun if bool(pred) else false_fun)(*operands)


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolves an input (time, batch, channels) with a weight (width, in, out)."""
    made = lamella.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1)


def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiplies gradients by the inverse of a scale, in place. Sets found_inf to 1 if an element
    is infinite or NaN. Does not wait for a device."""
    if not self:
        return
    finite = lamella.stack([gradient.isfinite().all() for gradient in self]).all()
    found_inf.copy_(lamella.maximum(found_inf, finite.logical_not().to(found_inf.dtype)))
    for gradient in self:
        if gradient.dtype in (lamella.float16, lamella.bfloat16):  # may not have the inverse itself
            gradient.copy_(gradient.float().mul_(inv_scale))
        else:
            gradient.mul_(inv_scale)


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Updates a scale: smaller after a step with infinite or NaN gradients, larger after enough
    good steps, unless that is infinite. Does not wait for a device."""
    found = found_inf.ne(0).view(self.shape)
    counted = growth_tracker.add(1)
    grows = counted.eq(growth_interval).view(self.shape).logical_and(found.logical_not())
    grown = self.mul(scale_growth_factor)
    grown = lamella.where(grows.logical_and(grown.isfinite()), grown, self)
    self.copy_(lamella.where(found, self.mul(scale_backoff_factor), grown))
    ends = found.logical_or(grows).view(growth_tracker.shape)
    growth_tracker.copy_(counted.mul(ends.logical_not().to(counted.dtype)))
    return self


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape, as integers."""
    return lamella.tensor(self.shape, dtype=lamella.int64)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError unless the only element is not zero."""
    if input.numel() != 1:
        raise RuntimeError(f"_assert_async: expected one element, got {input.numel()}")
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """The start of each row (crow_indices) from sorted row indices; `size` is the number of
    rows."""
    kind = lamella.int32 if out_int32 else lamella.int64
    counts = lamella.bincount(input, minlength=size)
    return lamella.cat([counts.new_zeros(1), counts.cumsum(0)]).to(kind)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Row and column indices from the start of each row; `transpose` swaps them."""
    kind = lamella.int32 if out_int32 else lamella.int64
    rows = lamella.arange(crow_indices.numel() - 1, dtype=lamella.int64)
    rows = lamella.repeat_interleave(rows, crow_indices.diff())
    pair = [rows.to(kind), col_indices.to(kind)]
    return lamella.stack(pair[::-1] if transpose else pair)


def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads on inputs [batch, length, embed_dim]; a mask of type 1 hides keys
    [batch, length], and one of type 0 pairs of positions."""
    result, weights = lamella.nn.functional.multi_head_attention_forward(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        embed_dim,
        num_head,
        qkv_weight,
        qkv_bias,
        None,
        None,
        False,
        0.0,
        proj_weight,
        proj_bias,
        training=False,
        key_padding_mask=mask if mask_type == 1 else None,
        attn_mask=None if mask_type == 1 else mask,
        need_weights=need_weights,
        average_attn_weights=average_attn_weights,
    )
    return result.transpose(0, 1), weights


def _cast_Long(input: Tensor, non_blocking: bool = False) -> Tensor:
    """The tensor as int64."""
    return input.to(lamella.int64)


def _cast_Float(input: Tensor, non_blocking: bool = False) -> Tensor:
    """The tensor as float32."""
    return input.to(lamella.float32)


legacy_contiguous_format = lamella.contiguous_format


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """One of two numbers, by a condition."""
    return t if b else f


def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


def _removed(name: str, now: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}: PyTorch removed it; use {now}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"RuntimeError: use {now}."
    return refuse


solve = _removed("solve", "torch.linalg.solve")
lstsq = _removed("lstsq", "torch.linalg.lstsq")
eig = _removed("eig", "torch.linalg.eig")
symeig = _removed("symeig", "torch.linalg.eigh")
matrix_rank = _removed("matrix_rank", "torch.linalg.matrix_rank")


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest eigenvalues of symmetric matrices [..., m, m] and their
    eigenvectors [..., m, k]; with B, those of A x = B x e. They are computed from a full
    decomposition, so the arguments that control the iteration are ignored."""
    count = k if k is not None else 1 if X is None else X.size(-1)
    if not 0 < count <= A.size(-1):
        raise ValueError(f"lobpcg: expected 'k' in [1, {A.size(-1)}], got {count}")
    A = A.to_dense() if A.is_sparse else A
    A = (A + A.mT) / 2  # eigh reads one triangle alone
    if B is None:
        values, vectors = lamella.linalg.eigh(A)
    else:
        root = lamella.linalg.cholesky(B.to_dense() if B.is_sparse else B)
        solve = lamella.linalg.solve_triangular
        inner = solve(root, solve(root, A, upper=False).mT, upper=False)
        values, vectors = lamella.linalg.eigh(inner)
        vectors = solve(root.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
