# packages: pytorch-crf==0.7.2
"""A conditional random field."""

import torch
from torchcrf import CRF

torch.manual_seed(0)
crf = CRF(4, batch_first=True)
emissions = torch.randn(3, 6, 4, requires_grad=True)
tags = torch.randint(4, (3, 6))
mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 3 + [0] * 3]).bool()
loss = -crf(emissions, tags, mask=mask, reduction="mean")
loss.backward()
print(loss.item(), emissions.grad[0], crf.transitions.grad, crf.decode(emissions, mask=mask))
