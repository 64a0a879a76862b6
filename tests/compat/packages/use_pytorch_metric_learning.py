# packages: pytorch-metric-learning==2.9.0
"""Losses of distances, with miners."""

import torch
from pytorch_metric_learning import losses, miners

torch.manual_seed(0)
labels = torch.randint(4, (16,))
for loss in (
    losses.TripletMarginLoss(),
    losses.ContrastiveLoss(),
    losses.NTXentLoss(),
    losses.MultiSimilarityLoss(),
    losses.SupConLoss(),
    losses.CircleLoss(),
    losses.LiftedStructureLoss(),
    losses.ArcFaceLoss(4, 8),
    losses.CosFaceLoss(4, 8),
):
    torch.manual_seed(1)
    x = torch.randn(16, 8, requires_grad=True)
    pairs = miners.MultiSimilarityMiner()(x, labels)
    value = loss(x, labels, pairs)
    value.backward()
    print(type(loss).__name__, value.item(), x.grad.norm().item())
