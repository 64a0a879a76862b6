"""Names that trainers and model libraries use: modes, trees with paths, Sobol' sequences, flex
attention, pruning, lists of tensors, futures, compiled modules."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Replicate
from torch.fx import GraphModule
from torch.nn.attention.flex_attention import (
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
)
from torch.nn.utils import fusion, prune
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, schedule
from torch.quasirandom import SobolEngine
from torch.utils import _pytree as pytree

# Modes, and devices as contexts.
with torch.device("meta"):
    print(torch.ones(2).device, torch.nn.Linear(2, 3).weight.device, torch.tensor([1.0]).device)
print(torch.ones(2).device)


class Counting(TorchFunctionMode):
    def __init__(self):
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


with Counting() as outer, Counting() as inner:
    print((torch.arange(3.0) * 2).relu(), outer.calls, inner.calls)

# Classes that nothing is an instance of.
x = torch.linspace(-1, 1, 12).view(3, 4)
print([isinstance(x, kind) for kind in (DTensor, FullyShardedDataParallel, GraphModule)])
print(type(Replicate()).__name__)

# Sequences.
for options in ({}, {"scramble": True, "seed": 3}):
    engine = SobolEngine(4, **options)
    print(engine, engine.draw(3), engine.draw(2, dtype=torch.float64))
    print(engine.reset().fast_forward(4).draw(1))

# Attention.
q, k, v = torch.sin(torch.arange(2 * 2 * 6 * 4.0)).view(2, 2, 6, 4), x.repeat(2, 2, 2, 1), None
k, v = k.view(2, 2, 6, 4), k.view(2, 2, 6, 4).cos()


def causal(batch, head, query, key):
    return query >= key


def near(batch, head, query, key):
    return query - key < 3


def sloped(score, batch, head, query, key):
    return score - (head + 1) * 0.1 * (query - key)


mask = create_block_mask(and_masks(causal, near), None, None, 6, 6, device="cpu", BLOCK_SIZE=2)
print(create_mask(causal, 1, 1, 3, 3, device="cpu").int(), mask.shape, mask.to_dense())
print(flex_attention(q, k, v, score_mod=sloped, block_mask=mask))
print(flex_attention(q, k, v))

# Pruning and folding.
layer = torch.nn.Linear(4, 3)
layer.weight.data.copy_(x)
prune.L1Unstructured.apply(layer, "weight", amount=0.25)
prune.LnStructured.apply(layer, "weight", amount=1, n=2, dim=0)
print(layer.weight_mask, len(layer._forward_pre_hooks))
convolution, norm = torch.nn.Conv2d(1, 2, 2), torch.nn.BatchNorm2d(2)
norm.running_mean += 0.5
folded = fusion.fuse_conv_bn_eval(convolution.eval(), norm.eval())
image = torch.ones(1, 1, 3, 3)
print(torch.allclose(folded(image), norm(convolution(image)), atol=1e-5))

# Lists of tensors, trees.
print(torch._foreach_add([x, x[0]], [x, x[1]]), torch._foreach_mul([x], 2.0))
print(torch._foreach_addcmul([x[0]], [x[1]], [x[2]], value=0.5))
tree = {"a": [1, (2, 3)], "b": {"c": 4}}
print([(pytree.keystr(path), leaf) for path, leaf in pytree.tree_leaves_with_path(tree)])
print(pytree.tree_map_with_path(lambda path, leaf: leaf + len(path), tree))

# Steps of a profile, futures, compiled modules, hooks.
plan = schedule(wait=1, warmup=1, active=2, repeat=1)
print([plan(step).name for step in range(6)], ProfilerActivity.CPU.name)
first = torch.futures.Future()
second = first.then(lambda done: done.value() + 1)
first.set_result(41)
print(second.wait(), torch.futures.wait_all([first, second]))
network = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
compiled = torch.compile(network, mode="reduce-overhead", dynamic=False)
print(list(compiled.state_dict()), torch.allclose(compiled(x), network(x), atol=1e-6))
handle = network.register_forward_hook(lambda *call: None)
print(len(network._forward_hooks), len(network._backward_hooks))
network._forward_hooks.clear()
print(len(network._forward_hooks))


class Watching(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def __getattr__(self, name):
        if name == "weight":
            print("asked for", name)
        return super().__getattr__(name)


print(Watching().weight.item())

# What is called when a backward has ended.
engine = torch.autograd.Variable._execution_engine
x, log = torch.ones(2, requires_grad=True), []


def first():
    log.append(x.grad.tolist())
    engine.queue_callback(lambda: log.append("second"))


def refuse():
    raise ValueError("no")


y = x * 2
y.register_hook(lambda grad: engine.queue_callback(first))
y.sum().backward()
print(log)
for function in (refuse, None):
    try:
        y = x * 2
        if function is None:
            engine.queue_callback(first)
        y.register_hook(lambda grad: engine.queue_callback(refuse))
        y.sum().backward()
    except Exception as error:
        print(type(error).__name__)
library = torch.library.Library("rarer_names", "DEF")


@torch.library.define(library, "twice(Tensor x) -> Tensor")
def twice(x):
    return x * 2


library.define("count(Tensor(a!) x) -> None")


@torch.library.impl(library, "count", "CPU")
def count(x):
    x.add_(1)


number = torch.zeros(2)
print(torch.ops.rarer_names.twice(number + 1), torch.ops.rarer_names.count(number), number)
