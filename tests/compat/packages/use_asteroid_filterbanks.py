# packages: asteroid-filterbanks==0.4.0
"""Learned and fixed filterbanks."""

import torch
from asteroid_filterbanks import make_enc_dec
from asteroid_filterbanks.transforms import mag, to_torch_complex

torch.manual_seed(0)
sound = torch.randn(2, 1, 300)
for name in ("free", "stft", "analytic_free", "param_sinc"):
    encoder, decoder = make_enc_dec(name, n_filters=16, kernel_size=16, stride=8)
    features = encoder(sound)
    print(name, features.shape, features.abs().mean().item(), decoder(features).std().item())
encoder, _ = make_enc_dec("stft", n_filters=16, kernel_size=16, stride=8)
print(mag(encoder(sound)).mean((0, 2)), to_torch_complex(encoder(sound)).dtype)
