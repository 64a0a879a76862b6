# packages: torchmetrics==1.9.0, lightning-utilities==0.15.3
"""Metrics as modules and as functions."""

import torch
import torchmetrics
import torchmetrics.functional as F

torch.manual_seed(0)
logits = torch.randn(40, 4)
target = torch.randint(4, (40,))
for metric in (
    torchmetrics.Accuracy(task="multiclass", num_classes=4),
    torchmetrics.F1Score(task="multiclass", num_classes=4, average="macro"),
    torchmetrics.AUROC(task="multiclass", num_classes=4),
    torchmetrics.ConfusionMatrix(task="multiclass", num_classes=4),
    torchmetrics.CalibrationError(task="multiclass", num_classes=4, n_bins=5),
    torchmetrics.AveragePrecision(task="multiclass", num_classes=4),
):
    for part in range(0, 40, 10):
        metric.update(logits[part : part + 10].softmax(-1), target[part : part + 10])
    print(type(metric).__name__, metric.compute())
a, b = torch.randn(30), torch.randn(30)
for function in (F.mean_squared_error, F.pearson_corrcoef, F.spearman_corrcoef, F.r2_score):
    print(function.__name__, function(a, b))
images = torch.rand(2, 3, 32, 32)
noisy = (images + 0.1 * torch.randn(2, 3, 32, 32)).clamp(0, 1)
print(
    F.peak_signal_noise_ratio(noisy, images), F.structural_similarity_index_measure(noisy, images)
)
collection = torchmetrics.MetricCollection(
    [torchmetrics.MeanAbsoluteError(), torchmetrics.R2Score()]
)
print(collection(a, b))
