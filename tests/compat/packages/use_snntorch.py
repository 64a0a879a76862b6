# packages: snntorch==1.0.0
"""A spiking network with surrogate gradients."""

import snntorch as snn
import torch
from snntorch import surrogate
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(6, 12), nn.Linear(12, 3)
leaky1 = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
leaky2 = snn.Leaky(beta=0.8, spike_grad=surrogate.atan())
x, target = torch.rand(8, 6) * 3, torch.randint(3, (8,))
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2)
for _ in range(5):
    m1, m2, total = leaky1.init_leaky(), leaky2.init_leaky(), 0
    for _ in range(6):
        spikes, m1 = leaky1(first(x), m1)
        spikes, m2 = leaky2(second(spikes), m2)
        total = total + m2
    loss = nn.functional.cross_entropy(total, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), spikes.sum().item())
