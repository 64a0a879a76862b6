"""Autograd as programs observe it: saved-tensor hooks, settings, profiler events."""

import warnings

import torch
from torch.autograd import profiler
from torch.autograd.graph import saved_tensors_hooks

warnings.simplefilter("ignore")
seen = []


def pack(t):
    seen.append((tuple(t.shape), t.grad_fn.name() if t.grad_fn is not None else None, t.is_leaf))
    return t


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
with saved_tensors_hooks(pack, lambda t: t):
    y = x.exp()
    z = (y * x).sigmoid()
z.sum().backward(retain_graph=True)
print(seen, x.grad)
(first,) = torch.autograd.grad(z.sum(), x, create_graph=True)
print(torch.autograd.grad(first.sum(), x))
with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t * 2):
    y = x.exp()
print(torch.autograd.grad(y.sum(), x))
try:
    with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        x.detach() * x
except RuntimeError:
    print("a pack hook that writes is refused")

print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
torch.set_anomaly_enabled(True)
print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
torch.set_anomaly_enabled(False)

with profiler.profile(record_shapes=True) as profile:
    with profiler.record_function("mine"):
        torch.mm(torch.ones(2, 3), torch.ones(3, 4))
    torch.mm(torch.ones(1, 3), torch.ones(3, 4))
events = profile.function_events
products = [e for e in events if e.name == "aten::mm"]
print([e.input_shapes[:2] for e in products], [e.count for e in products])
print(products[0].cpu_parent.name, products[1].cpu_parent, products[0].time_range.elapsed_us() > 0)
print(type(events).__name__, type(products[0]).__name__, events.total_average().key)
averages = {e.key: e for e in profile.key_averages()}
print(averages["aten::mm"].count, averages["mine"].count, averages["aten::mm"].cpu_time_total > 0)
by_shape = [e for e in profile.key_averages(group_by_input_shape=True) if e.key == "aten::mm"]
print(sorted((e.count, str(e.input_shapes[:2])) for e in by_shape))
table = profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
print([word in table for word in ("Name", "Self CPU", "# of Calls", "Self CPU time total:")])
with profiler.profile(enabled=False) as nothing:
    x * 2
print(nothing)
with profiler.emit_nvtx(False):
    print("emit_nvtx does nothing")


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by=2):
        ctx.by = by
        return x * by

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.by, None


print(torch.autograd.grad(Scale.apply(x, by=3).sum(), x))
print("saved_tensors" in dir(Scale.apply(x).grad_fn))


# Hooks: of tensors that are gone, of nodes that do not run, and what a backward tells of itself.
order = []
x = torch.ones(2, requires_grad=True)
y = x * 2
handle = y.register_hook(lambda g: order.append("removed"))
z = (y * 3).sum()
del y
handle.remove()
z.backward(retain_graph=True)
print(order)
b = x.clone()
b.grad_fn.register_prehook(lambda grads: order.append("before b"))
b.register_hook(lambda g: order.append("b"))
leaf = b.grad_fn.next_functions[0][0]
leaf.register_prehook(lambda grads: order.append("before x"))
x.register_hook(lambda g: order.append("x"))
c = (b * 2).sum()
torch.autograd.grad(c, [b], retain_graph=True)
torch.autograd.grad(c, [x, b], retain_graph=True)
c.backward(inputs=[b], retain_graph=True)
c.backward(retain_graph=True)
print(order)
b.retain_grad()
b.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
c.backward(retain_graph=True)
print(b.grad, x.grad)

seen = []
w = torch.ones(2, requires_grad=True)
d, e = x * 2, w * 3
f = d.sin()
f.register_hook(lambda g: seen.append(torch._C._current_graph_task_id() >= 0))
nodes = [d.grad_fn, e.grad_fn, f.grad_fn]
f.register_hook(lambda g: seen.append([torch._C._will_engine_execute_node(n) for n in nodes]))
f.sum().backward(inputs=[x], retain_graph=True)
print(seen[:2], torch._C._current_graph_task_id())
multi = []
torch.autograd.graph.register_multi_grad_hook([d, f], lambda grads: multi.append(len(grads)))
torch.autograd.grad(f.sum(), [d], retain_graph=True)
f.sum().backward()
print(multi)
print(isinstance(leaf, torch._C._functions.AccumulateGrad), torch.autograd.torch is torch)
for wrong in (lambda: delattr(x, "data"), lambda: setattr(x, "data", torch.eye(2).to_sparse())):
    try:
        wrong()
    except RuntimeError:
        print("refused")
with torch.autograd.forward_ad.dual_level():
    print(torch.autograd.forward_ad.make_dual(torch.ones(2), torch.zeros(2)))
guard = torch._C._AutoDispatchBelowAutograd()
below = (x * 2).requires_grad
del guard
print(below, (x * 2).requires_grad)
