"""Functions of lamella.nn.functional over operators of liblamella_more.so: sampling of images, the
reverse of max pooling, pooling over random windows, bags of embeddings, and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.nn.functional_layers import _shorten
from lamella.nn.functional_losses import _number, cross_entropy

__all__ = [
    "affine_grid",
    "conv_tbc",
    "ctc_loss",
    "embedding_bag",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "grid_sample",
    "linear_cross_entropy",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "multi_margin_loss",
    "multilabel_margin_loss",
]

_nn = _C._functions("nn")
_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


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


# ---- Pooling ----


def _lp_pool(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool, count: int
) -> Tensor:
    pool = (lamella.avg_pool1d, _nn["avg_pool2d"], _nn["avg_pool3d"])[count - 1]
    kernel = _all(kernel_size, count)
    mean = pool(input.pow(norm_type), kernel, _all(stride, count, kernel), 0, ceil_mode)
    # relu() passes no gradient at 0, where the gradient of the root is not finite.
    size = mean.sign() * lamella.relu(mean.abs())
    return (size * math.prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)


def _all(value: int | Sequence[int] | None, count: int, default: Any = None) -> list[int]:
    value = default if value is None else value
    return [value] * count if isinstance(value, int) else [int(v) for v in value]


def _unpool(
    name: str,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Sequence[int] | None,
    count: int,
) -> Tensor:
    kernel = _all(kernel_size, count)
    step = _all(stride, count, kernel)
    pad = _all(padding, count)
    least = [(input.size(d - count) - 1) * step[d] - 2 * pad[d] + kernel[d] for d in range(count)]
    size = least if output_size is None else [int(n) for n in output_size][-count:]
    for n, middle, s in zip(size, least, step):
        if output_size is not None and not middle - s < n < middle + s:
            raise ValueError(f"{name}: expected 'output_size' near {least}, got {size}")
    if count == 1:
        given = [t.unsqueeze(-1) for t in (input, indices)]
        return _nn["max_unpool2d"](*given, [*size, 1]).squeeze(-1)
    if count == 2:
        return _nn["max_unpool2d"](input, indices, size)
    return _nn["max_unpool3d"](input, indices, size, step, pad)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool1d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool2d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool3d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)


def _fractional(
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
    count: int,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{count}d"
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: expected either 'output_size' or 'output_ratio'")
    if output_size is None:
        ratios = [output_ratio] * count if isinstance(output_ratio, float) else output_ratio
        output_size = [int(input.size(d - count) * r) for d, r in enumerate(ratios)]
    if samples is None:
        lines = [1, *input.shape[:1]] if input.dim() == count + 1 else [*input.shape[:2]]
        samples = lamella.rand([*lines, count], dtype=input.dtype, device=input.device)
    operator = _nn[name]
    return tuple(operator(input, _all(kernel_size, count), _all(output_size, count), samples))


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest element of each of randomly placed windows, and its index."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of each of randomly placed windows."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest element of each of randomly placed windows, and its index."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of each of randomly placed windows."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return both if return_indices else both[0]


# ---- Bags of embeddings ----


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


# ---- Losses ----


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: the negative log-likelihood of `targets`, between
    which there may be blanks."""
    # The lengths are both tensors or both lists.
    operator: Any = lamella.ctc_loss
    made: Tensor = operator(
        log_probs, targets, input_lengths, target_lengths, blank, _number(reduction), zero_infinity
    )
    return made


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - input[target] + input[i])^p, the mean over the other classes i."""
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: expected 'p' to be 1 or 2, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(
            f"multi_margin_loss: expected 'weight' to have one dimension, got {list(weight.shape)}"
        )
    number = _number(reduction, size_average, reduce)
    return _nn["multi_margin_loss"](input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """multi_margin_loss for several right classes, listed in `target` before a negative number."""
    number = _number(reduction, size_average, reduce)
    return _nn["multilabel_margin_loss"](input, target, number)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy of a linear layer. PyTorch's `options` have no effect."""
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"linear_cross_entropy: expected 'input' to have 1 or 2 dimensions, got "
            f"{list(input.shape)}"
        )
    return cross_entropy(
        lamella.nn.functional.linear(input, linear_weight, linear_bias),
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
