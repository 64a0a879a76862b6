# packages: julius==0.2.8
"""Filters and resampling of sound."""

import julius
import torch

torch.manual_seed(0)
sound = torch.randn(2, 400, requires_grad=True)
low = julius.lowpass_filter(sound, 0.1)
print(
    low[:, :5], julius.resample_frac(sound, 4, 5)[:, :5], julius.split_bands(sound, 10, 3).mean(-1)
)
print(julius.fft_conv1d(sound.unsqueeze(1), torch.randn(1, 1, 32))[0, 0, :5])
low.square().sum().backward()
print(sound.grad[:, :4], julius.bandpass_filter(sound, 0.1, 0.2)[0, :4])
