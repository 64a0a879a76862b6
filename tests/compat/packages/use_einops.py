# packages: einops==0.8.2
"""Rearrangements, their layers, and einsum by names."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8)
print(rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4).sum(1)[:, :5])
print(
    reduce(x, "b c (h 2) (w 2) -> b c h w", "max").mean((2, 3)), repeat(x[0, 0, 0, :2], "a -> a 2")
)
packed, shapes = pack([x[0, 0, 0], x[0, 0]], "* w")
print(packed.shape, [part.shape for part in unpack(packed, shapes, "* w")])
print(einsum(x[:, 0, :, :3], x[:, 1, :, :3], "b h i, b h j -> b i j"))
net = nn.Sequential(
    nn.Conv2d(3, 4, 3),
    Reduce("b c (h 2) (w 2) -> b c h w", "mean"),
    nn.ReLU(),
    Rearrange("b c h w -> b (h w) c"),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=4, d=5),
)
loss = net(x).square().mean()
loss.backward()
print(loss.item(), [p.grad.norm().item() for p in net.parameters()])
