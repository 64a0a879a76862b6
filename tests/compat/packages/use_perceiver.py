# packages: perceiver-pytorch==0.11.0, einops==0.8.2
"""Perceivers of images and of many inputs."""

import torch
from perceiver_pytorch import Perceiver, PerceiverIO
from torch import nn

torch.manual_seed(0)
model = Perceiver(
    input_channels=3,
    input_axis=2,
    num_freq_bands=3,
    max_freq=10.0,
    depth=2,
    num_latents=8,
    latent_dim=16,
    cross_heads=1,
    latent_heads=2,
    cross_dim_head=8,
    latent_dim_head=8,
    num_classes=4,
)
images, labels = torch.randn(2, 8, 8, 3), torch.tensor([0, 3])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
io = PerceiverIO(dim=8, queries_dim=8, logits_dim=5, depth=1, num_latents=6, latent_dim=16)
print(io(torch.randn(1, 12, 8), queries=torch.randn(4, 8)).mean(1))
