# packages: torch-optimizer==0.3.0, pytorch-ranger==0.1.1
"""Many optimizers from outside on one problem."""

import torch
import torch_optimizer
from torch import nn

x = torch.linspace(-1, 1, 40).reshape(10, 4)
y = (x**2).sum(1, keepdim=True)
NAMES = (
    "AdaBound AdaMod AdamP DiffGrad Lamb NovoGrad PID QHAdam QHM RAdam SGDP SGDW Shampoo Yogi "
    "AggMo SWATS AdaBelief Apollo A2GradExp Adahessian"
)
for name in NAMES.split():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = getattr(torch_optimizer, name)(model.parameters(), lr=1e-2)
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(create_graph=name == "Adahessian")
        optimizer.step()
    print(name, loss.item(), model[0].weight.detach().norm().item())
