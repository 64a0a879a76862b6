"""Tensors that have shapes, dtypes and devices but no memory, and values that depend on data."""

import torch
from torch import nn
from torch._subclasses import FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode


@torch.library.custom_op("fake_tensors::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)


@twice.register_fake
def _(x):
    print("shapes of twice")
    return torch.empty_like(x)


def told(x):
    print(type(x).__name__, tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad)


with FakeTensorMode() as mode:
    x = torch.randn(2, 3, requires_grad=True)
    told(x)
    told(x @ torch.randn(3, 5))
    told(nn.Linear(3, 4)(x))
    told(x.t().contiguous())
    told(x.to(torch.float16).sum(1))
    told(twice(x.detach()))
    y = torch.zeros(3)
    print(y.add_(1) is y, isinstance(y, FakeTensor))
    for part in x.split(1):
        told(part)
    x.exp().sum().backward()
    told(x.grad)
    for name, call in (
        ("item", lambda: y.sum().item()),
        ("nonzero", lambda: y.nonzero()),
        ("shape", lambda: torch.mm(y.view(1, 3), y.view(1, 3))),
    ):
        try:
            call()
        except Exception as error:
            print(name, "fails", isinstance(error, RuntimeError) or name != "shape")
    real = mode.from_tensor(torch.ones(4, 2).t())
    told(real)
told(real * 2)
told(torch.ones(2))
