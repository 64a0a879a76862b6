"""Changes that libraries make to classes of PyTorch: methods that they add and replace, modules
whose class they change, and names that they override or call."""

import copy
import io
import pickle

import torch
import torch.distributions as dist
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn

# Methods of Tensor.
torch.Tensor.doubled = lambda self: self * 2
print(torch.ones(2).doubled(), nn.Parameter(torch.ones(1)).doubled().tolist())
backward = torch.Tensor.backward
torch.Tensor.backward = lambda self, *args: (print("patched"), backward(self, *args))[1]
x = torch.ones(2, requires_grad=True)
x.sum().backward()
torch.Tensor.backward = backward
x.sum().backward()
print(x.grad)
add, get_item, text = torch.Tensor.__add__, torch.Tensor.__getitem__, torch.Tensor.__repr__
torch.Tensor.__add__ = lambda self, other: add(self, other) * 10
torch.Tensor.__getitem__ = lambda self, index: get_item(self, index) + 100
torch.Tensor.__repr__ = lambda self: "a tensor"
print(torch.ones(2) + 1, (torch.ones(2) + 1).tolist(), torch.arange(3)[1].item())
torch.Tensor.__add__, torch.Tensor.__getitem__, torch.Tensor.__repr__ = add, get_item, text
print(torch.ones(2) + 1, torch.arange(3)[1])
torch.Tensor.turned = property(lambda self: self.t())
print(torch.ones(2, 3).turned.shape)
del torch.Tensor.turned, torch.Tensor.doubled
print(hasattr(x, "turned"), hasattr(x, "doubled"), x._cdata == x._cdata, x._cdata == x.t()._cdata)


class Named(nn.Linear):
    """A class that modules get later, and that wants to see what is read."""

    def __getattr__(self, name):
        found = super().__getattr__(name)
        return found * 2 if name == "weight" else found


layer = nn.Linear(2, 2)
nn.init.ones_(layer.weight)
layer.__class__ = Named
print(layer.weight.tolist(), sorted(layer.state_dict()), len(list(layer.parameters())))
del layer.bias
print(hasattr(layer, "bias"))
layer.bias = nn.Parameter(torch.ones(2))
layer.__class__ = nn.Linear
print(layer.weight.tolist(), layer(torch.ones(2)).tolist())
both = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
members = both._named_members(lambda module: module._buffers.items())
print([name for name, _ in members])
print(nn.ModuleList([nn.ReLU(), nn.ReLU()])._get_abs_string_index(-1))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.loads = nn.Parameter(torch.ones(1)), 0
        self._register_load_state_dict_pre_hook(self.count)

    def count(self, *args):
        self.loads += 1


counts = Counts()
for other in (copy.deepcopy(counts), pickle.loads(pickle.dumps(counts))):
    other.load_state_dict(counts.state_dict())
    print(counts.loads, other.loads)

# Arguments by their other names, and a dtype of None.
print(torch.split(tensor=torch.arange(4), split_size_or_sections=[1, 3], dim=0))
print(torch.randint(5, (2,), dtype=None).dtype, torch.randint(1, 5, (2,), dtype=None).dtype)
print(torch._segment_reduce(torch.ones(3), "sum", offsets=torch.tensor([0, 1, 3]), axis=0))
leaves, spec = pytree.tree_flatten({"size": torch.Size([1, 2])})
print(leaves, pytree.tree_unflatten(leaves, spec))
traced = torch.jit.trace_module(nn.Linear(2, 1), {"forward": torch.ones(1, 2)})
print(isinstance(traced, nn.Module), len(list(traced.parameters())))

# Distributions whose parts are expanded, saved and read.
for region in (dist.constraints.positive, dist.constraints.greater_than(torch.zeros(2))):
    print(type(dist.transform_to(region)).__name__, dist.transform_to(region)(torch.zeros(2)))
file = io.BytesIO()
torch.save([dist.Normal(torch.zeros(2), 1.0), dist.constraints.interval(0, 1)], file)
file.seek(0)
print(torch.load(file, weights_only=False))

# Parts of attention, and eigenvalues by a matrix that need not be whole.
torch.manual_seed(1)
q, w, bias = torch.randn(4, 2, 6), torch.randn(18, 6), torch.randn(18)
for inputs in ((q, q, q), (q, q * 2, q * 3)):
    for part in F._in_projection_packed(*inputs, w, bias):
        print(part.shape, round(part.sum().item(), 3))
parts = F._in_projection(q, q * 2, q, *w.chunk(3), *bias.chunk(3))
print([round(part.sum().item(), 3) for part in parts])
mask = torch.tensor([[True, False]])
print(F._canonical_mask(mask, "mask", None, "other", torch.float32), F._none_or_dtype(mask))
print(
    F._mha_shape_check(q, q, q, None, None, 2), F._mha_shape_check(q[0], q[0], q[0], None, None, 2)
)
exact = (torch.diag(torch.arange(6.0).double()) + 0.1).requires_grad_()
start = torch.eye(6, 1, dtype=torch.float64)
print(torch.autograd.gradcheck(lambda a: torch.lobpcg(a, 1, X=start)[0], exact))
half = torch.randn(6, 6)
matrix, other = half @ half.mT, torch.eye(6) + half.mT @ half
for options in ({"k": 2}, {"k": 2, "largest": False}, {"B": other}):
    values, vectors = torch.lobpcg(matrix, niter=200, tol=1e-8, **options)
    right = options.get("B", torch.eye(6)) @ vectors * values
    print(values.shape, vectors.shape, torch.allclose(matrix @ vectors, right, atol=0.02))
    print([round(value, 2) for value in values.tolist()])
