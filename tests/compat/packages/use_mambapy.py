# packages: mambapy==1.2.0
"""Mamba in plain PyTorch: its parallel scan trained, and its step by step inference."""

import torch
from mambapy.mamba import Mamba, MambaConfig

torch.manual_seed(0)
net = Mamba(MambaConfig(d_model=16, n_layers=2))
opt = torch.optim.AdamW(net.parameters(), 1e-2)
x = torch.randn(2, 13, 16)
for _ in range(4):
    loss = (net(x) - x.cumsum(1)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("loss", round(loss.item(), 5))
config = net.config
caches = [(None, torch.zeros(2, config.d_inner, config.d_conv - 1)) for _ in range(2)]
with torch.no_grad():
    whole = net(x)
    for t in range(13):
        y, caches = net.step(x[:, t], caches)
        print(t, bool((y - whole[:, t]).abs().max() < 1e-4), round(y.sum().item(), 4))
