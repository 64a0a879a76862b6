"""Rarely used losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.distance import PairwiseDistance
from lamella.nn.modules.linear import Linear
from lamella.nn.modules.loss import NLLLoss, _Loss, _WeightedLoss
from lamella.nn.modules.module import Module

__all__ = [
    "CTCLoss",
    "LinearCrossEntropyLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss2d",
    "TripletMarginWithDistanceLoss",
]


class CTCLoss(_Loss):
    """Connectionist temporal classification: sequences with blanks between their labels."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """log_probs: [T, N, C] or [T, C]; targets: [N, S], or all one after the other; lengths:
        [N]."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class MultiLabelMarginLoss(_Loss):
    """MultiMarginLoss for several right classes, which a target lists before a -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """input, target: [N, C] or [C]; target: integers."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean of BCEWithLogitsLoss over the classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """input, target: [N, C]."""
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """max(0, margin - input[target] + input[i])^p, the mean over the other classes i."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: expected 'p' to be 1 or 2, got {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected 'weight' to have 1 dimension, got {weight.dim()}"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """input: [N, C] or [C]; target: [N] or [], integers."""
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a given distance function."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected 'margin' to be greater than 0, got "
                f"{margin}"
            )
        self.distance_function: Any = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """anchor, positive, negative: arguments of the distance function."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """A deprecated name of NLLLoss for images."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a linear layer: in_features to num_classes, or with out_features to
    num_classes for each element of that shape. PyTorch's `options` have no effect."""

    linear: Module

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.bias = bias
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        count = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, count, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """input: [N, in_features]; target: [N, *out_features], or with num_classes after N."""
        logits = self.linear(input).unflatten(-1, (self.num_classes, *self.out_features))
        return F.cross_entropy(
            logits,
            target,
            weight=self.weight,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.bias}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, "
            f"options={self.options}"
        )
