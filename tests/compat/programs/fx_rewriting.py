"""torch.fx beyond tracing: starred parameters, operators by overload, replaced patterns, shapes."""

import copy
import dataclasses
import operator

import torch
import torch.fx
from torch import nn
from torch.fx.passes.shape_prop import ShapeProp

torch.fx.wrap("len")
torch.fx.wrap("len")


def starred(x, *rest, scale=2.0, **more):
    return x * scale + rest[0] - more["bias"]


graph = torch.fx.Tracer().trace(starred)
print([(n.op, n.name, n.target, n.args) for n in graph.nodes][:5])


def two(x, *rest):
    return x * 2 + rest[0] - rest[1]


traced = torch.fx.symbolic_trace(two)
print(traced.code)
one = torch.ones(2)
print(torch.fx.Interpreter(torch.fx.symbolic_trace(lambda x, *r: x + r[0])).run(one, one))


class Starred(nn.Module):
    def forward(self, x, *args, **kwargs):
        return torch.relu(x) + args[0] * kwargs["by"]


print(torch.fx.symbolic_trace(Starred()).code)


class ByOverload(nn.Module):
    def forward(self, x):
        y = torch.ops.aten.add.Tensor(x, x)
        return torch.ops.aten.cat([torch.ops.aten.sigmoid(y), y])


traced = torch.fx.symbolic_trace(ByOverload())
print(traced(torch.zeros(2)), [str(n.target) for n in traced.graph.nodes])
print(traced.code)

# Statements, names that mean something, targets
graph = torch.fx.Graph()
a, b = graph.placeholder("a"), graph.placeholder("b")
graph.call_function(operator.imul, (a, b))
graph.output(graph.create_node("call_function", operator.add, (a, float("inf")), name="inf"))
traced = torch.fx.GraphModule({}, graph)
print(traced(2, 3), traced.code)
try:
    torch.fx.Node(graph, "foo", "call_function", "foo", (), {})
except ValueError:
    print("ValueError")


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


def paired(x):
    return Pair(x + 1, right=x * 2)


print(torch.fx.symbolic_trace(paired)(one))


class Kept(metaclass=torch.fx.ProxyableClassMeta):
    def __init__(self, value):
        self.value = value

    def twice(self):
        return Kept(self.value * 2)


traced = torch.fx.symbolic_trace(lambda x, y: Kept(x + y).twice())
print(traced(one, one).value, [n.name for n in traced.graph.nodes])

print([n.op for n in torch.fx.symbolic_trace(lambda x: x.add(Kept(one))).graph.nodes])
overload = torch.ops.aten.add.Tensor
print(
    isinstance(overload, torch._ops.OpOverload), isinstance(overload, torch._ops.OpOverloadPacket)
)


class WithoutSelf(nn.Module):
    def forward(*args):
        return args[1] + 1


try:
    torch.fx.symbolic_trace(WithoutSelf())
except RuntimeError:
    print("RuntimeError")

# Parameters that are given
traced = torch.fx.symbolic_trace(lambda x, val=None: x if val is None else x + val, {"val": None})
print(traced(one), traced.code)
try:
    traced(one, one)
except AssertionError as error:
    print(error)
traced = torch.fx.symbolic_trace(lambda x, y: x + y, concrete_args={"x": torch.fx.PH, "y": 2})
print(traced(one, 2))

# Functions that are wrapped stay nodes when what was traced is traced again
traced = torch.fx.symbolic_trace(lambda x: len(x) + 1)
again = torch.fx.symbolic_trace(traced)
print([n.name for n in again.graph.nodes], again([1, 2]))
tracer = torch.fx.Tracer()
tracer.trace(two)
print(str(copy.deepcopy(tracer).graph) == str(tracer.graph))
tracer.traced_func_name = "absent"
try:
    tracer.trace(nn.Linear(2, 2))
except AssertionError:
    print("AssertionError")


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"PascalCase": nn.ReLU(), "ALL_CAPS": nn.Tanh()})

    def forward(self, x):
        return self.parts["PascalCase"](x) + self.parts["ALL_CAPS"](x)


print([n.name for n in torch.fx.symbolic_trace(Named()).graph.nodes])


# Patterns
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 2))

    def forward(self, x, y):
        first = torch.cat([x, y]).sum(dim=0)
        second = torch.cat([first[None], y]).sum(dim=0)
        kept = torch.cat([x, x])
        return first + second.relu() * kept.sum(dim=0) + kept.mean() + self.weight


def pattern(a, b):
    return torch.cat([a, b]).sum(dim=0)


def replacement(a, b):
    return torch.stack([a.sum(dim=0), b.sum(dim=0)]).sum(dim=0)


net = Net()
traced = torch.fx.symbolic_trace(net)
x, y = torch.arange(4.0).reshape(2, 2), torch.ones(2, 2)
before = traced(x, y)
matches = torch.fx.replace_pattern(traced, pattern, replacement)
traced.graph.lint()
print(len(matches), [str(match.anchor) for match in matches], torch.equal(before, traced(x, y)))
print([n.name for n in traced.graph.nodes if n.op == "call_function" and "cat" in n.name])

traced = torch.fx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(torch.neg(x)))))
print(
    len(
        torch.fx.replace_pattern(
            traced, lambda x: torch.relu(torch.neg(x)), lambda x: torch.tanh(x)
        )
    )
)
print(traced.code)
traced = torch.fx.symbolic_trace(lambda x: (torch.neg(x) + x, x * 3))
print(
    len(torch.fx.subgraph_rewriter.replace_pattern(traced, lambda a, b: a + b, lambda a, b: b - a))
)
print(traced.code)

# Shapes
traced = torch.fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()))
ShapeProp(traced).propagate(torch.ones(2, 3, 5, 5).to(memory_format=torch.channels_last))
for node in traced.graph.nodes:
    meta = node.meta["tensor_meta"]
    print(node.name, tuple(meta.shape), meta.dtype, meta.stride, meta.memory_format)
    print(meta.requires_grad, node.meta["type"].__name__)
