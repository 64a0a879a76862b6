# packages: torch-pruning==1.6.1, tqdm==4.70.1
"""Pruning by groups of layers that depend on each other, found in the graph of gradients."""

import torch
import torch_pruning as tp
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding=1, groups=1)

    def forward(self, x):
        return torch.relu(x + self.two(torch.relu(self.norm(self.one(x)))))


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    Block(8),
    nn.Conv2d(8, 16, 3, stride=2),
    Block(16),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 5),
)
x = torch.randn(2, 3, 12, 12)
print(tp.utils.count_ops_and_params(net, x))
pruner = tp.pruner.MetaPruner(
    net,
    x,
    importance=tp.importance.MagnitudeImportance(p=2),
    pruning_ratio=0.5,
    iterative_steps=2,
    ignored_layers=[net[-1]],
)
for _ in range(2):
    pruner.step()
    print(tp.utils.count_ops_and_params(net, x), [list(p.shape) for p in net.parameters()])
    loss = net(x).square().mean()
    loss.backward()
    print(round(loss.item(), 6), round(sum(p.grad.norm().item() for p in net.parameters()), 4))
