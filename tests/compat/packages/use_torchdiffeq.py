# packages: torchdiffeq==0.2.5
"""An ODE is fitted: dopri5 and rk4 forward, gradients through the solver and by the adjoint."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)
times = torch.linspace(0.0, 2.0, 12)
rotation = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
with torch.no_grad():
    truth = odeint(lambda t, y: y**3 @ rotation, torch.tensor([[2.0, 0.0]]), times, method="dopri5")
print(truth.squeeze(1))


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


for solve, method in ((odeint, "rk4"), (odeint_adjoint, "dopri5"), (odeint, "midpoint")):
    torch.manual_seed(1)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    for _ in range(4):
        optimizer.zero_grad()
        loss = (solve(field, truth[0], times, method=method) - truth).abs().mean()
        loss.backward()
        optimizer.step()
        print(method, loss.item(), field.net[0].weight.grad.norm().item())
