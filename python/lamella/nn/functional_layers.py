"""Pooling, normalisation, folding and interpolation of lamella.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import lamella
from lamella import _C, Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "batch_norm",
    "bilinear",
    "embedding",
    "fold",
    "group_norm",
    "instance_norm",
    "interpolate",
    "layer_norm",
    "local_response_norm",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "normalize",
    "rms_norm",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

if TYPE_CHECKING:
    from typing import Literal, overload

    class _MaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            *,
            return_indices: Literal[True],
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> Any: ...

    class _MaxPoolWithIndices(Protocol):
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> tuple[Tensor, Tensor]: ...


_nn = _C._functions("nn")


# ---- Pooling ----


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, int) else value


def _max_pool(
    name: str, with_indices: Callable[..., Any], values_alone: Callable[..., Tensor]
) -> tuple[_MaxPoolWithIndices, _MaxPool]:
    """The function that returns values and indices, and the one that returns indices only with
    `return_indices`."""

    def both(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The largest element of each window and its index, whatever `return_indices` is."""
        stride = [] if stride is None else stride
        return tuple(with_indices(input, kernel_size, stride, padding, dilation, ceil_mode))

    def pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window, with `return_indices` also its index."""
        if return_indices:
            return both(input, kernel_size, stride, padding, dilation, ceil_mode)
        stride = [] if stride is None else stride
        return values_alone(input, kernel_size, stride, padding, dilation, ceil_mode)

    both.__name__ = both.__qualname__ = f"{name}_with_indices"
    pool.__name__ = pool.__qualname__ = name
    return both, pool


max_pool1d_with_indices, max_pool1d = _max_pool(
    "max_pool1d", lamella.max_pool1d_with_indices, lamella.max_pool1d
)
max_pool2d_with_indices, max_pool2d = _max_pool(
    "max_pool2d", _nn["max_pool2d_with_indices"], lamella.max_pool2d
)
max_pool3d_with_indices, max_pool3d = _max_pool(
    "max_pool3d", _nn["max_pool3d_with_indices"], lamella.max_pool3d
)


def _adaptive_sizes(
    op: str, input: Tensor, output_size: int | Sequence[int | None] | None, count: int
) -> list[int]:
    """The output sizes: a single number applies to all dimensions, None keeps the input's size."""
    sizes: Sequence[int | None]
    if output_size is None or isinstance(output_size, int):
        sizes = [output_size] * count
    else:
        sizes = output_size
        if input.dim() <= len(sizes):
            raise ValueError(
                f"{op}: expected 'input' to have more than {len(sizes)} dimensions, "
                f"got {list(input.shape)}"
            )
    own = input.shape[-count:]
    return [own[i] if size is None else size for i, size in enumerate(sizes)]


def _adaptive(
    op: str, input: Tensor, output_size: int | Sequence[int | None] | None, count: int
) -> Any:
    return _nn[op](input, _adaptive_sizes(op, input, output_size, count))


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return lamella.adaptive_avg_pool1d(input, _listed(output_size))


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return _adaptive("adaptive_avg_pool2d", input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return _adaptive("adaptive_avg_pool3d", input, output_size, 3)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    values, indices = lamella.adaptive_max_pool1d(input, _listed(output_size))
    return values, indices


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    return tuple(_adaptive("adaptive_max_pool2d", input, output_size, 2))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    return tuple(_adaptive("adaptive_max_pool3d", input, output_size, 3))


def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool1d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool2d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool3d_with_indices(input, output_size)
    return both if return_indices else both[0]


# ---- Normalisation ----


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over the batch, or by running statistics outside of training."""
    if training:
        per_channel = input.size(0)
        for size in input.shape[2:]:
            per_channel *= size
        if per_channel == 1:
            raise ValueError(
                "batch_norm: expected more than 1 value for each channel in training, got "
                f"an input of shape {list(input.shape)}"
            )
    return lamella.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm: expected more than one element in each channel of 'input', got "
            f"{list(input.shape)}"
        )
    return lamella.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions, `normalized_shape`."""
    return lamella.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each group of channels of each sample."""
    if input.dim() > 1 and math.prod(input.shape) == num_groups:
        raise ValueError(
            "group_norm: expected more than one element in a group of 'input', got "
            f"{list(input.shape)} and {num_groups} groups"
        )
    return lamella.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divides by the root of the mean square over the last dimensions."""
    return lamella.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by a power of the mean square over `size` neighbouring channels."""
    if input.dim() < 3:
        raise ValueError(
            "local_response_norm: expected 'input' to have at least 3 dimensions, got "
            f"{input.dim()}"
        )
    if input.numel() == 0:
        return input
    square = (input * input).flatten(2).unsqueeze(1)
    square = _nn["pad"](square, [0, 0, size // 2, (size - 1) // 2])
    mean = _nn["avg_pool2d"](square, [size, 1], [1, 1]).squeeze(1).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divides by the p-norm along `dim`."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return lamella.div(input, length) if out is None else lamella.div(input, length, out=out)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1^T weight[o] input2 + bias[o] for each output feature o."""
    product = lamella.einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias


# ---- Windows as columns ----


def _pair(value: Any) -> Any:
    return [value, value] if isinstance(value, int) else value


def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Each window of the image as a column."""
    return _nn["im2col"](input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Columns summed up where unfold took them from."""
    return _nn["col2im"](
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


# ---- Tables ----


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that `input` selects down to a norm of at most `max_norm`, in place."""
    with lamella.no_grad():
        rows = lamella.unique(input)
        used = weight[rows]
        norms = used.norm(norm_type, 1, keepdim=True)
        weight[rows] = lamella.where(norms > max_norm, used * (max_norm / (norms + 1e-7)), used)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` chosen by the indices in `input`. sparse: the gradient of `weight` is a
    sparse tensor of these rows."""
    if sparse:
        lamella.sparse  # noqa: B018  (loads the package, which has the gradient)
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    return lamella.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


# ---- Interpolation ----

_RESAMPLE = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("trilinear", 3): "upsample_trilinear3d",
}
_ANTIALIASED = ("bilinear", "bicubic", "lanczos")  # only for 2 spatial dimensions
_AREA: dict[int, Callable[..., Tensor]] = {
    1: adaptive_avg_pool1d,
    2: adaptive_avg_pool2d,
    3: adaptive_avg_pool3d,
}


def _one_each(value: Any, count: int) -> list[Any]:
    """The entries of a list or tuple, or one value repeated `count` times."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes the dimensions after the channels, to `size` or by `scale_factor`. With `antialias`
    images are filtered before they shrink; mode "lanczos" needs it."""
    spatial = input.dim() - 2
    linear = mode in ("linear", "bilinear", "trilinear", "bicubic", "lanczos")
    if align_corners is not None and not linear:
        raise ValueError(f"interpolate: expected no 'align_corners' with mode {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: expected either 'size' or 'scale_factor'")
    if antialias and (mode not in _ANTIALIASED or spatial != 2):
        raise ValueError(
            f"interpolate: expected an image and a mode of {[*_ANTIALIASED]} with 'antialias', "
            f"got {spatial} dimensions and {mode!r}"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("interpolate: expected 'antialias' with mode 'lanczos'")
    if size is not None and recompute_scale_factor:
        raise ValueError("interpolate: expected no 'recompute_scale_factor' with 'size'")
    sizes: list[int] | None = None
    scales: list[float] | None = None
    if size is not None:
        sizes = _one_each(size, spatial)
        if len(sizes) != spatial:
            raise ValueError(
                f"interpolate: expected 'size' to have {spatial} entries, got {len(sizes)}"
            )
    else:
        scales = [float(s) for s in _one_each(scale_factor, spatial)]
        if len(scales) != spatial:
            raise ValueError(
                f"interpolate: expected 'scale_factor' to have {spatial} entries, got {len(scales)}"
            )
    if scales is not None and (recompute_scale_factor or mode == "area"):
        sizes = [int(input.size(i + 2) * s) for i, s in enumerate(scales)]
        scales = None
    if mode == "area":
        return _AREA[spatial](input, sizes)
    name = f"_upsample_{mode}2d_aa" if antialias else _RESAMPLE.get((mode, spatial))
    if name is None:
        raise NotImplementedError(
            f"interpolate: expected a mode for {spatial} dimensions, got {mode!r}"
        )
    if linear:
        return _nn[name](input, sizes, bool(align_corners), scales)
    return _nn[name](input, sizes, scales)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate under its former name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """interpolate with mode "nearest"."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """interpolate with mode "bilinear" and aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)
