# packages: tensordict==0.15.3, pyvers==0.2.3, cloudpickle==3.1.3
"""Dictionaries of tensors: batches of them, modules over them, classes, vmap."""

import torch
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

torch.manual_seed(0)
inner = TensorDict(c=torch.randn(3, 2), batch_size=[3])
whole = TensorDict(a=torch.randn(3, 4), b=inner, batch_size=[3])
both = torch.stack([whole, whole + 1], 0)
print(both.batch_size, both["b", "c"].sum(), both.reshape(-1)["a"].shape, whole[1]["a"])
print(whole.apply(torch.exp)["b", "c"], sorted(whole.flatten_keys(".").keys()))

first = TensorDictModule(torch.nn.Linear(4, 2), in_keys=["a"], out_keys=["z"])
second = TensorDictModule(torch.nn.Linear(2, 2), in_keys=["z"], out_keys=["y"])
network = TensorDictSequential(first, second)
loss = network(whole)["y"].square().mean()
loss.backward()
print(loss, first.module.weight.grad)
parameters = TensorDict.from_module(network)
with parameters.apply(torch.zeros_like).to_module(network):
    print(network(whole)["y"].detach())
print(network(whole)["y"].detach())


@tensorclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor


pairs = Pair(x=torch.randn(4, 2), y=torch.randn(4), batch_size=[4])
print(pairs[:2].x, torch.cat([pairs, pairs]).y.shape)
print(torch.vmap(lambda row, x: row["a"] * x, (0, 0))(whole, torch.arange(3.0)))
print(torch.vmap(lambda x: TensorDict(double=x * 2, batch_size=[]))(torch.ones(3, 2))["double"])
