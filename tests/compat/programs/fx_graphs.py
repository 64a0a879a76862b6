"""torch.fx: modules traced, graphs printed, changed and run, by an interpreter as well."""

import copy
import math
import operator
import pickle

import torch
from torch import fx, nn


def scaled(x, n):
    return x * float(n)


fx.wrap("scaled")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, 4))
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: torch.Tensor, power=2, *, bias=None):
        batch, width = x.shape
        y = self.layers(x) * (self.gain * 2) + self.shift
        y = scaled(y, math.sqrt(width))
        parts = torch.cat([y[:, 1:3], -y[:, :1]], dim=1).softmax(dim=-1)
        first, second, third = parts.unbind(1)
        y = torch.tanh(y) + torch.ones(4)
        return {"y": y**power, "parts": (first + second, 1 / third), "size": batch}


torch.manual_seed(0)
net = Net()
x = torch.linspace(-1, 1, 12).view(3, 4)
traced = fx.symbolic_trace(net)
print(traced.graph)
print(traced.code)
for node in traced.graph.nodes:
    print(node.op, node, node.args, node.kwargs, list(node.users), len(node.all_input_nodes))


def show(result):
    print(result["size"], result["y"].sum().item(), [p.sum().item() for p in result["parts"]])


show(net(x))
show(traced(x))
show(copy.deepcopy(traced)(x))
show(fx.Interpreter(traced).run(x))
print(sorted(traced.state_dict()), [name for name, _ in traced.named_modules()])
traced(x)["y"].sum().backward()
print(net.gain.grad.tolist() == traced.gain.grad.tolist(), traced.gain.grad.sum().item())

# Every multiplication becomes a sum, and an unused node goes.
for node in traced.graph.nodes:
    if node.target is operator.mul:
        with traced.graph.inserting_after(node):
            new = traced.graph.call_function(torch.add, node.args)
        node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
traced.graph.lint()
print(traced.graph.eliminate_dead_code())
traced.recompile()
print(traced.code)
show(traced(x))


class Negated(fx.Transformer):
    def call_module(self, target, args, kwargs):
        return -super().call_module(target, args, kwargs)


print(Negated(fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2)))).transform().code)

graph = fx.Graph()
a = fx.Proxy(graph.placeholder("a", torch.Tensor))
b = torch.matmul(a, a.t()).reshape(-1)
graph.output(torch.relu(b - 0.5).node, torch.Tensor)
made = fx.GraphModule({}, graph, "Made")
print(made.code, made(x).sum().item(), type(made).__name__)
print(fx.symbolic_trace(lambda x, flag: x + 1 if flag else x, {"flag": True}).code)
again = pickle.loads(pickle.dumps(made))
print(again(x).sum().item(), isinstance(again, fx.GraphModule))
for function in (lambda x: x if x.sum() > 0 else -x, lambda x: len(x), lambda x: list(x)):
    try:
        fx.symbolic_trace(function)
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__)

# Where new nodes go, within a context and without one, and what they are called.
graph = fx.Graph()
x = graph.placeholder("x")
with graph.inserting_after(x):
    last, first = graph.call_function(torch.sin, (x,)), graph.call_function(torch.cos, (x,))
graph.inserting_before(last)
graph.call_method("relu_", (first,)), graph.call_method("relu_", (first,))
graph.inserting_after(last)
graph.create_node("call_function", torch.add, (first, last), name="sum_1")
graph.create_node("call_function", torch.add, (first, last), name="sum")
graph.create_node("call_function", torch.add, (first, last), name="sum_1")
with graph.inserting_after():
    graph.output(last)
with graph.inserting_before():
    graph.placeholder("y")
print([node.name for node in graph.nodes])


class Halved(fx.Tracer):
    """A tracer that patches calls by itself, as those of other libraries do."""

    @fx._symbolic_trace.compatibility(is_backward_compatible=True)
    def trace(self, root, concrete_args=None):
        self.root, self.graph = root, fx.Graph(tracer_cls=type(self))
        function, args = self.create_args_for_root(type(root).forward, True, concrete_args)

        def called(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return fx._symbolic_trace._orig_module_call(module, *args, **kwargs)

            return self.call_module(module, forward, args, kwargs) / 2

        with fx._symbolic_trace._Patcher() as patcher:
            patcher.patch_method(nn.Module, "__call__", called, deduplicate=False)
            fx._symbolic_trace._patch_wrapped_functions(patcher)
            fx._symbolic_trace._autowrap_check(
                patcher, function.__globals__, self._autowrap_function_ids
            )
            self.create_node("output", "output", (self.create_arg(function(*args)),), {})
        return self.graph


small = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
graph = Halved().trace(small)
print(graph)
print(fx.GraphModule(small, graph)(torch.ones(1, 2)).sum().item())
