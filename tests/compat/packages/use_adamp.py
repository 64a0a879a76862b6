# packages: adamp==0.3.0
"""Two optimizers that project."""

import torch
from adamp import SGDP, AdamP
from torch import nn

x = torch.linspace(-1, 1, 60).reshape(10, 2, 3)
for kind in (AdamP, SGDP):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(2, 4, 2), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1)
    )
    optimizer = kind(model.parameters(), lr=1e-2, weight_decay=1e-2)
    for _ in range(5):
        loss = (model(x) - x.sum((1, 2)).unsqueeze(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, loss.item())
