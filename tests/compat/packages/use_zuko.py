# packages: zuko==1.6.0
"""Normalizing flows of nine kinds: densities, their gradients, samples."""

import torch
import zuko.flows

for name in "NSF MAF NICE CNF NAF UNAF SOSPF BPF GF".split():
    torch.manual_seed(0)
    flow = getattr(zuko.flows, name)(3, 2, hidden_features=[16, 16])
    x, context = torch.randn(8, 3) * 0.5, torch.randn(8, 2)
    loss = -flow(context).log_prob(x).mean()
    loss.backward()
    found = [p.grad.abs().sum().item() for p in flow.parameters() if p.grad is not None]
    print(name, loss.item(), sum(found), tuple(flow(context).sample((2,)).shape))
