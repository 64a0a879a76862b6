# packages: nflows==0.14, matplotlib==3.11.2, cycler==0.12.1, fonttools==4.68.0
# packages: kiwisolver==1.5.1, pillow==13.0.0, pyparsing==3.3.3, python-dateutil==4.0.0
"""Normalizing flows: autoregressive, with splines."""

import torch
from nflows import distributions, flows, transforms

torch.manual_seed(0)
t = transforms.CompositeTransform(
    [
        transforms.ReversePermutation(2),
        transforms.MaskedAffineAutoregressiveTransform(2, 4),
        transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
            2, 4, tails="linear", tail_bound=3.0
        ),
    ]
)
fl = flows.Flow(t, distributions.StandardNormal([2]))
l = -fl.log_prob(torch.randn(16, 2)).mean()
l.backward()
print(l.item())
print(fl.sample(4).sum().item())
