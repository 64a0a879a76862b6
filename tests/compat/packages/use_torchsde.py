# packages: torchsde==0.2.6, trampoline==0.1.2
"""A stochastic differential equation with noise of a tree of Brownian increments."""

import torch
import torchsde
from torch import nn


class Sde(nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.drift = nn.Linear(3, 3)
        self.noise = nn.Parameter(torch.full((3,), 0.2))

    def f(self, t, y):
        return torch.tanh(self.drift(y))

    def g(self, t, y):
        return self.noise.expand_as(y) * torch.sigmoid(y)


torch.manual_seed(0)
sde = Sde()
start = torch.randn(4, 3)
times = torch.linspace(0, 1, 4)
for method in ("euler", "milstein", "srk"):
    noise = torchsde.BrownianInterval(
        0.0, 1.0, size=(4, 3), entropy=7, levy_area_approximation="space-time"
    )
    path = torchsde.sdeint(sde, start, times, bm=noise, method=method, dt=0.1)
    loss = path[-1].square().mean()
    loss.backward()
    print(method, loss.item(), sde.drift.weight.grad, sde.noise.grad)
    sde.zero_grad()
