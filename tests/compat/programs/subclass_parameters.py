"""Parameters over subclasses of Tensor, and copies of wrapper subclasses."""

import copy
import pickle

import torch
from torch import nn
from torch.utils._pytree import tree_map


class Scaled(torch.Tensor):
    """A wrapper of a tensor and a factor that its operators multiply with."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held, factor, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, requires_grad=requires_grad
        )
        made.held, made.factor = held, factor
        return made

    def __repr__(self):
        return f"Scaled({self.held.tolist()}, {self.factor})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return cls(func(args[0].held), args[0].factor)
        plain = tree_map(lambda t: t.held * t.factor if isinstance(t, cls) else t, args)
        return func(*plain, **(kwargs or {}))


class Named(torch.Tensor):
    pass


def describe(tensor):
    print(
        type(tensor).__name__,
        isinstance(tensor, nn.Parameter),
        isinstance(tensor, torch.Tensor),
        tensor.requires_grad,
        tensor.is_leaf,
    )


wrapper = Scaled(torch.arange(3.0), 2)
for value in (
    wrapper,
    torch.ones(2).as_subclass(Named),
    torch.ones(2),
    nn.Parameter(torch.ones(2)),
):
    describe(nn.Parameter(value))
    describe(nn.Parameter(value, requires_grad=False))
    describe(value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(wrapper)

    def forward(self, x):
        return (x * self.weight).sum()


net = Net()
print([name for name, _ in net.named_parameters()], net(torch.ones(3)).item())
for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
    describe(made.weight)
    print(made.weight, made.weight.held is net.weight.held, made(torch.ones(3)).item())

for made in (copy.deepcopy(wrapper), copy.copy(wrapper), pickle.loads(pickle.dumps(wrapper))):
    print(type(made).__name__, made, made.shape, made.held is wrapper.held)


class Plain(torch.Tensor):
    pass


class Noted(torch.Tensor):
    def __repr__(self):
        return super().__repr__(tensor_contents="noted")


# A tensor keeps its class while only another tensor, or a node of the graph, holds it.
x = torch.ones(2)
x.grad = torch.ones(2).as_subclass(Plain)
print(type(x.grad).__name__, torch.ones(2).as_subclass(Noted), nn.Parameter(x.grad))
