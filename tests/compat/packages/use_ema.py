# packages: ema-pytorch==0.8.3
"""A moving average of a network."""

import torch
from ema_pytorch import EMA
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
ema = EMA(model, beta=0.9, update_after_step=1, update_every=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 4)
for _ in range(5):
    optimizer.zero_grad()
    model(x)[:, 0].square().max().backward()
    optimizer.step()
    ema.update()
    print(ema.ema_model[0].weight.detach(), ema(x).mean().item())
