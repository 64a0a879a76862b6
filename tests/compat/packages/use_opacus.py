# packages: opacus==1.6.0
"""Gradients of each example, and training with differential privacy."""

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
layers = [nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)]
model = GradSampleModule(nn.Sequential(*layers))
model(torch.randn(5, 1, 8, 8)).square().mean().backward()
for parameter in model.parameters():
    print(tuple(parameter.grad_sample.shape), parameter.grad_sample.abs().sum().item())

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    data_loader=DataLoader(data, batch_size=8),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    print(loss.item())
print(engine.get_epsilon(1e-3))
