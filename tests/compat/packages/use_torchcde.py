# packages: torchcde==0.2.5, torchdiffeq==0.2.5, torchsde==0.2.6, trampoline==0.1.2
"""A neural controlled differential equation over a spline."""

import torch
import torchcde
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 8)

    def forward(self, t, z):
        return self.linear(z).tanh().view(*z.shape, 2)


torch.manual_seed(0)
path = torch.cat([torch.linspace(0, 1, 6).expand(3, 6).unsqueeze(-1), torch.randn(3, 6, 1)], -1)
for make in (
    torchcde.natural_cubic_coeffs,
    torchcde.hermite_cubic_coefficients_with_backward_differences,
):
    coefficients = make(path)
    spline = torchcde.CubicSpline(coefficients)
    field = Field()
    start = torch.randn(3, 4)
    z = torchcde.cdeint(spline, field, start, spline.interval, adjoint=False, method="rk4")
    z[:, -1].square().mean().backward()
    print(spline.evaluate(0.5), z[:, -1], field.linear.weight.grad.norm().item())
