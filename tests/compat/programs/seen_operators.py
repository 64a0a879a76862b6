"""Code that watches operators: make_fx, tensors that answer for their sizes, saved wrappers, writes
to saved tensors, hooks of double backwards, states of older optimizers."""

import copy
import io
import weakref

import torch
import torch.utils.dlpack
from torch.fx.experimental.proxy_tensor import make_fx


def f(x, y):
    z = x.sin() + y * 2
    values, _ = torch.topk(z, 2)
    z.add_(1)
    x.cos()
    return values.sum(), z


x, y = torch.linspace(0, 1, 4), torch.ones(4)
traced = make_fx(f)(x, y)
print(traced.code, traced(x, y))
print([node.op for node in traced.graph.nodes])
print(
    make_fx(lambda x: x + torch.tensor([1.0, 2.0]))(torch.ones(2)).code.count("_tensor_constant0")
)
print(make_fx(lambda x: x.exp(), {torch.ops.aten.exp.default: lambda x: x * 2})(y).code)


class Answering(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            dtype=inner.dtype,
            dispatch_sizes_strides_policy="sizes",
            dispatch_layout=True,
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.sym_size.default:
            return (5, 3)
        if func is torch.ops.prim.layout.default:
            return torch.sparse_csr
        if func is torch.ops.aten.dim.default:
            return 2
        return NotImplemented


answering = Answering(torch.ones(2, 2))
print(answering.size(), answering.shape, answering.size(1), answering.dim(), answering.layout)
try:
    answering.stride()
except TypeError as error:
    print(str(error).split("'")[0])


class Wrapper(torch.Tensor):
    __slots__ = ["inner"]

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = tuple(a.inner if isinstance(a, Wrapper) else a for a in args)
        made = func(*args, **(kwargs or {}))
        return Wrapper(made) if isinstance(made, torch.Tensor) else made


wrapper = Wrapper(torch.ones(3))
buffer = io.BytesIO()
torch.save(wrapper, buffer)
buffer.seek(0)
with torch.serialization.safe_globals([Wrapper]):
    loaded = torch.load(buffer)
print(type(loaded).__name__, loaded.inner, wrapper.untyped_storage().size())
for use in ("data_ptr", "resize_"):
    try:
        getattr(wrapper.untyped_storage(), use)(*([0] if use == "resize_" else []))
    except RuntimeError as error:
        print(str(error).count("invalid python storage"))

with torch.autograd.graph.allow_mutation_on_saved_tensors() as saved:
    a = torch.ones(2, requires_grad=True)
    b = a * 2
    out = (b * b).sum()
    b.mul_(100)
    out.backward()
    print(a.grad)

with torch.autograd.graph.allow_mutation_on_saved_tensors() as saved:
    a = torch.ones(2, requires_grad=True).clone()
    b, c = a**2, a**2
    print(len(saved.tid_to_weakhandle), len(saved.cloned))
    a.mul_(100)
    print(len(saved.cloned))
    del b, c
    print(len(saved.cloned))

print(torch._C._jit_resolve_packet("aten::sum", torch.ones(2), dim=0))
try:
    torch._C._jit_resolve_packet("aten::sum", torch.ones(2), "text", 3)
except RuntimeError:
    print("no overload")

counts = []
loss = torch.nn.MSELoss()
loss.register_full_backward_hook(lambda module, into, out: counts.append(1))
v = torch.rand(1, requires_grad=True)
(first,) = torch.autograd.grad(loss(v, torch.rand(1)), v, create_graph=True)
print(len(counts), torch.autograd.grad(first, v), len(counts))

for name in ("SGD", "Adam", "Adagrad", "NAdam", "ASGD", "Rprop", "SparseAdam"):
    options = {"momentum": 0.9} if name == "SGD" else {}
    embedding = torch.nn.Embedding(3, 2, sparse=name == "SparseAdam")
    torch.nn.init.ones_(embedding.weight)
    optimizer = getattr(torch.optim, name)(embedding.parameters(), lr=0.1, **options)
    for _turn in range(4):
        optimizer.zero_grad()
        (embedding(torch.tensor([0, 2])) ** 2).sum().backward()
        optimizer.step()
        state = copy.deepcopy(optimizer.state_dict())
        for group in state["param_groups"]:
            for option in ("maximize", "foreach", "differentiable"):
                group.pop(option, None)
        for own in state["state"].values():
            for count in ("step", "eta", "mu", "mu_product"):
                if isinstance(own.get(count), torch.Tensor):
                    own[count] = own[count].item()
        optimizer.load_state_dict(state)
    print(name, embedding.weight.flatten().tolist())

capsule = torch.utils.dlpack.to_dlpack(torch.arange(3))
print(torch.asarray(capsule), torch.asarray(torch.utils.dlpack.to_dlpack(y), copy=False))
print(torch.is_autocast_enabled(device_type="cpu"), torch.get_autocast_dtype(device_type="cpu"))
for dtype in (torch.uint16, torch.uint32, torch.uint64):
    print(max(torch.randint(0, 7, (4,), dtype=dtype).tolist()) < 7)
x = torch.randn(2, 8, 6, 6).contiguous(memory_format=torch.channels_last)
resize = torch.nn.functional.interpolate
print(
    torch.nn.functional.pixel_shuffle(x, 2).stride(),
    torch.nn.functional.pixel_unshuffle(x, 2).stride(),
)
print(
    resize(x, scale_factor=2, mode="bicubic").stride(),
    resize(x, size=3, mode="bilinear", antialias=True).stride(),
)
try:
    torch.ones(3).index_put_((torch.tensor([0]),), torch.ones(1).double())
except RuntimeError as error:
    print(type(error).__name__)


class Printing(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        named = {name: value for name, value in (kwargs or {}).items()}
        print(func, len(args), named)
        return func(*args, **named)


like = torch.ones(2, requires_grad=True)
with Printing():
    torch.empty(2), torch.zeros(2, dtype=torch.float64), torch.full((2,), 1.0), torch.arange(3)
    torch.ones_like(like), like.new_zeros(3), torch.randn(2, device="cpu")
    total = (like * like).sum()
    torch.autograd.grad(total, like)
# A tensor that others own keeps its object as long as there are weak references to it.
alias = torch.split(torch.ones(4), 2)[0]._base
reference = weakref.ref(alias)
views = alias[:2]
del alias
print(reference() is views._base, reference())
