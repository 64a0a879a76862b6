# packages: entmax==1.3
"""Sparse softmaxes and their losses."""

import torch
from entmax import entmax15, entmax15_loss, entmax_bisect, sparsemax, sparsemax_loss

torch.manual_seed(0)
x = torch.randn(3, 7, requires_grad=True)
target = torch.tensor([1, 4, 6])
for function in (sparsemax, entmax15, lambda v, dim: entmax_bisect(v, 1.3, dim=dim)):
    p = function(x, dim=-1)
    (grad,) = torch.autograd.grad((p * torch.arange(7.0)).sum(), x)
    print(p, grad)
for loss in (sparsemax_loss, entmax15_loss):
    value = loss(x, target).sum()
    (grad,) = torch.autograd.grad(value, x)
    print(value.item(), grad)
