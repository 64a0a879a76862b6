# packages: lion-pytorch==0.2.5
"""An optimizer from outside."""

import torch
from lion_pytorch import Lion
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
optimizer = Lion(model.parameters(), lr=1e-2, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
x = torch.randn(64, 6)
y = x.sin().sum(1, keepdim=True)
for _ in range(10):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(loss.item(), optimizer.param_groups[0]["lr"])
