# packages: einx==0.4.3, frozendict==2.5.1
"""Operators by names of dimensions."""

import einx
import torch

torch.manual_seed(0)
x = torch.randn(2, 6, 4)
print(einx.id("a (b c) d -> a b (c d)", x, b=2).shape, einx.sum("a [b] c", x))
print(einx.softmax("a [b] c", x).sum(1), einx.add("a b c, c", x, torch.arange(4.0))[0, 0])
print(einx.dot("a [b] c, [b] d -> a c d", x, torch.randn(6, 3))[0])
