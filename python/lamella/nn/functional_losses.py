"""Losses of lamella.nn.functional. `reduction` is "none", "mean" or "sum"; the old flags
`size_average` and `reduce` are taken as PyTorch takes them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import _C, Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

# The operators declared for this module; the functions below have some of their names.
_nn = _C._functions("nn")
_cross_entropy = _nn["cross_entropy_loss"]
_nll_loss = _nn["nll_loss_nd"]
_mse_loss = _nn["mse_loss"]
_l1_loss = _nn["l1_loss"]
_smooth_l1_loss = _nn["smooth_l1_loss"]
_huber_loss = _nn["huber_loss"]
_soft_margin_loss = _nn["soft_margin_loss"]
_binary_cross_entropy = _nn["binary_cross_entropy"]
_log_sigmoid = _nn["log_sigmoid"]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _number(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return 0
        return 1 if size_average is None or size_average else 2
    number = _REDUCTIONS.get(reduction)
    if number is None:
        raise ValueError(f"expected 'reduction' to be 'none', 'mean' or 'sum', got {reduction!r}")
    return number


def _reduced(values: Tensor, reduction: str) -> Tensor:
    number = _number(reduction)
    return values.mean() if number == 1 else values.sum() if number == 2 else values


def _check_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: expected 'target' to be of shape {list(input.shape)}, got "
            f"{list(target.shape)}"
        )


def _warn_of_shapes(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: 'target' of shape {list(target.shape)} is broadcast with 'input' of shape "
            f"{list(input.shape)}; the loss is likely not what was meant",
            stacklevel=3,
        )


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of classes, or of class probabilities, under softmax."""
    number = _number(reduction, size_average, reduce)
    return _cross_entropy(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of each sample's entry for its class."""
    number = _number(reduction, size_average, reduce)
    return _nll_loss(input, target, weight, number, ignore_index)


def _weighted(values: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Multiplies by `weight` and reduces; "mean" gives the weighted mean."""
    if weight is None:
        return _reduced(values, reduction)
    values = values * weight
    if reduction == "mean":
        return values.sum() / weight.expand_as(values).sum()
    return _reduced(values, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) squared."""
    _warn_of_shapes("mse_loss", input, target)
    if weight is not None:
        return _weighted(_mse_loss(input, target, 0), weight, reduction)
    return _mse_loss(input, target, _number(reduction, size_average, reduce))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|."""
    _warn_of_shapes("l1_loss", input, target)
    if weight is not None:
        return _weighted(_l1_loss(input, target, 0), weight, reduction)
    return _l1_loss(input, target, _number(reduction, size_average, reduce))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic up to a difference of `beta`, linear beyond."""
    _warn_of_shapes("smooth_l1_loss", input, target)
    number = _number(reduction, size_average, reduce)
    if beta == 0.0:
        return _l1_loss(input, target, number)
    return _smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """`delta` times smooth_l1_loss."""
    _warn_of_shapes("huber_loss", input, target)
    if weight is not None:
        return _weighted(_huber_loss(input, target, 0, delta), weight, reduction)
    return _huber_loss(input, target, _number(reduction), delta)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    return _soft_margin_loss(input, target, _number(reduction, size_average, reduce))


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of targets in [0, 1] under probabilities."""
    _check_shape("binary_cross_entropy", input, target)
    number = _number(reduction, size_average, reduce)
    return _binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input)."""
    _check_shape("binary_cross_entropy_with_logits", input, target)
    number = _number(reduction, size_average, reduce)
    return lamella.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input); "batchmean" divides the sum by the number of samples."""
    if reduction == "batchmean":
        total = lamella.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() else total
    number = _number(reduction, size_average, reduce)
    return lamella.kl_div(input, target, number, log_target=log_target)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    number = _number(reduction, size_average, reduce)
    return lamella.hinge_embedding_loss(input, target, margin, number)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    number = _number(reduction, size_average, reduce)
    return lamella.cosine_embedding_loss(input1, input2, target, margin, number)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)). All have equally many dimensions."""
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss: expected 'input1', 'input2' and 'target' to have equally many "
            f"dimensions, got {list(input1.shape)}, {list(input2.shape)} and {list(target.shape)}"
        )
    number = _number(reduction, size_average, reduce)
    return lamella.margin_ranking_loss(input1, input2, target, margin, number)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts, whose rate is exp(input) or input."""
    number = _number(reduction, size_average, reduce)
    return lamella.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of targets with mean `input` and variance `var`."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: expected 'var' not to be negative, got {var}")
        var = lamella.full_like(input, var)
    elif bool((var < 0).any()):
        raise ValueError("gaussian_nll_loss: expected 'var' to have no negative entry")
    if var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif not (tuple(input.shape[:-1]) == tuple(var.shape[:-1]) and var.size(-1) == 1):
            raise ValueError(
                f"gaussian_nll_loss: expected 'var' to be of shape {list(input.shape)}, or without "
                f"its last dimension, or of 1 there, got {list(var.shape)}"
            )
    var = var + (var.detach().clamp_min(eps) - var.detach())
    values = 0.5 * (lamella.log(var) + (input - target) ** 2 / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return _reduced(values, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with the p-norm as d."""
    number = _number(reduction, size_average, reduce)
    return lamella.triplet_margin_loss(
        anchor, positive, negative, margin, float(p), eps, swap, number
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with a given distance function."""
    if margin <= 0:
        raise ValueError(
            "triplet_margin_with_distance_loss: expected 'margin' to be greater than 0, "
            f"got {margin}"
        )
    distance = lamella.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = lamella.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of binary_cross_entropy_with_logits over the classes."""
    certain = target * _log_sigmoid(input) + (1 - target) * _log_sigmoid(-input)
    values = -certain if weight is None else -certain * weight
    number = _number(reduction, size_average, reduce)
    values = values.sum(-1) / input.size(-1)
    return values.mean() if number == 1 else values.sum() if number == 2 else values


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
    classes = linear_weight.shape[:-1]
    if len(classes) > 1:
        if input.dim() == 1:
            raise RuntimeError(
                "linear_cross_entropy: expected 'input' to have 2 dimensions beside "
                f"'linear_weight' with {linear_weight.dim()}, got {list(input.shape)}"
            )
        linear_weight = linear_weight.flatten(0, -2)
        linear_bias = None if linear_bias is None else linear_bias.flatten()
    logits = lamella.nn.functional.linear(input, linear_weight, linear_bias)
    return cross_entropy(
        logits.reshape(*input.shape[:-1], *classes),
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
