# packages: higher==0.2.1
"""Gradients through steps of an optimizer."""

import higher
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(10, 3), torch.randn(10, 1)
with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
    for _ in range(3):
        loss = nn.functional.mse_loss(inner(x), y)
        steps.step(loss)
        print(loss.item())
    nn.functional.mse_loss(inner(x), y).backward()
print([p.grad.norm().item() for p in model.parameters()])
