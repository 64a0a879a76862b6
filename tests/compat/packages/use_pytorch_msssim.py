# packages: pytorch-msssim==1.0.0
"""Similarities of images."""

import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim

torch.manual_seed(0)
x = torch.rand(1, 3, 176, 176)
y = (x + 0.1 * torch.randn(1, 3, 176, 176)).clamp(0, 1).requires_grad_()
print(ssim(x, y, data_range=1.0), ms_ssim(x, y, data_range=1.0, size_average=False))
loss = 1 - SSIM(data_range=1.0, channel=3)(x, y)
loss.backward()
print(loss.item(), y.grad.abs().mean().item(), MS_SSIM(data_range=1.0)(x, y).item())
