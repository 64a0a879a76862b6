"""A softmax over very many classes (E. Grave et al., Efficient softmax approximation for GPUs,
2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.container import ModuleList, Sequential
from lamella.nn.modules.linear import Linear
from lamella.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """Log probabilities of the targets, and the negative of their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes in the order of their frequency, split into a head and clusters.

    The head has the first cutoffs[0] classes and an entry for each cluster; the cluster i projects
    to in_features / div_value^(i + 1) features.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        rising = cutoffs == sorted(set(map(int, cutoffs)))
        if not cutoffs or not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: expected 'cutoffs' to be different whole numbers that "
                f"rise, from 1 to {n_classes - 1}, got {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **where),
                    Linear(width, high - low, bias=False, **where),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new values."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """input_: [N, in_features] or [in_features]; target_: [N] or []."""
        single = target_.dim() == 0
        rows = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if rows.dim() != 2 or target.dim() != 1 or rows.size(0) != target.size(0):
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: expected 'input_' [N, in_features] and 'target_' [N], "
                f"or both without N, got {list(input_.shape)} and {list(target_.shape)}"
            )
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: expected 'target_' to be in "
                f"[0, {self.n_classes - 1}], got values from {int(target.min().item())} to "
                f"{int(target.max().item())}"
            )
        in_head = target.clone()
        found = []  # rows of each cluster, and their log probabilities in it
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            places = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if places.numel() == 0:
                continue
            in_head[places] = self.shortlist_size + i
            scores = F.log_softmax(self.tail[i](rows.index_select(0, places)), 1)
            inner = (target.index_select(0, places) - low).unsqueeze(1)
            found.append((places, scores.gather(1, inner).squeeze(1)))
        head = F.log_softmax(self.head(rows), 1)
        output = head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        for places, scores in found:
            output = output.index_add(0, places, scores)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """[N, n_classes] of input [N, in_features]."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inside = F.log_softmax(cluster(input), 1)
            parts.append(inside + head[:, self.shortlist_size + i].unsqueeze(1))
        return lamella.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row of input [N, in_features]."""
        return self.log_prob(input).argmax(1)
