"""Normalisation, embedding, folding, sampling and interpolation of lamella.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.nn.functional_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = [
    "affine_grid",
    "batch_norm",
    "bilinear",
    "conv_tbc",
    "embedding",
    "embedding_bag",
    "fold",
    "grid_sample",
    "group_norm",
    "instance_norm",
    "interpolate",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


_nn = _C._functions("nn")
_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


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


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` that each bag of `input` selects. sparse:
    the gradient of `weight` is a sparse tensor of these rows."""
    if sparse:
        lamella.sparse  # noqa: B018  (loads the package, which has the gradient)
    for given, what in ((sparse, "sparse"), (scale_grad_by_freq, "scale_grad_by_freq")):
        if given and mode == "max":
            raise ValueError(f"embedding_bag: expected '{what}' to be False with mode max")
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: expected no 'offsets' with 2-dimensional 'input'")
        # With include_last_offset the last offset is the end of the last bag.
        end = input.numel() + (1 if include_last_offset else 0)
        offsets = lamella.arange(0, end, input.size(1), device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif offsets is None:
        raise ValueError("embedding_bag: expected 'offsets' with 1-dimensional 'input'")
    number = _word("embedding_bag", "mode", mode, {"sum": 0, "mean": 1, "max": 2})
    return lamella.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        number,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


# ---- Interpolation and sampling ----

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


def _word(function: str, name: str, value: str, words: dict[str, int]) -> int:
    number = words.get(value)
    if number is None:
        raise ValueError(f"{function}: expected '{name}' to be one of {[*words]}, got {value!r}")
    return number


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples `input` at the positions in `grid`, whose coordinates run from -1 to 1, x first."""
    return lamella.grid_sampler(
        input,
        grid,
        _word("grid_sample", "mode", mode, _INTERPOLATIONS),
        _word("grid_sample", "padding_mode", padding_mode, _PADDINGS),
        bool(align_corners),
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample of an affine map of images: theta is [N, 2, 3] for a `size` of
    [N, C, H, W], or [N, 3, 4] for [N, C, D, H, W]."""
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid: expected 'size' to have 4 or 5 entries, got {list(size)}"
        )
    if tuple(theta.shape) != (size[0], dims, dims + 1):
        raise ValueError(
            "affine_grid: expected 'theta' to be [N, 2, 3] with 4 sizes or [N, 3, 4] with 5, got "
            f"{list(theta.shape)} with {list(size)}"
        )
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: expected 'theta' to be floating, got {theta.dtype}")
    if min(size) <= 0:
        raise ValueError(f"affine_grid: expected 'size' to be positive, got {list(size)}")
    lines = []
    for n in size[:1:-1]:  # x first
        end = 0.0 if n == 1 else 1.0 if align_corners else (n - 1) / n
        lines.append(lamella.linspace(-end, end, n, dtype=theta.dtype, device=theta.device))
    shape = list(size[2:])
    places = [line.view(-1, *[1] * i).expand(shape) for i, line in enumerate(lines)]
    base = lamella.stack([*places, lamella.ones_like(places[0])], -1).view(-1, dims + 1)
    return (base @ theta.transpose(1, 2)).view(size[0], *shape, dims)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of [time, batch, channels] by a weight [width, in, out]."""
    return lamella.conv1d(
        input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad
    ).permute(2, 0, 1)
