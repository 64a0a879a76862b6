"""Sparse tensors as programs use them: printing, arithmetic, files, modules, gradients."""

import copy
import io
import pickle
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)


def tells(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
x = torch.tensor([[0.0, 0, 1, 2], [0, 0, 3, 0], [4, 0, 0, 0], [0, 0, 0, 5]])

# How they print.
print(s, str(s), f"{s}", s.coalesce(), sep="\n")
print(s.coalesce().requires_grad_(), s.clone().requires_grad_().abs())
for dtype in (torch.float64, torch.float16, torch.int64, torch.int8, torch.bool, torch.complex64):
    print(s.to(dtype), torch.zeros(2, 3, dtype=dtype).to_sparse())
for made in (
    x.to_sparse_csr(),
    x.to_sparse_csc(),
    x.to_sparse_bsr((2, 2)),
    x.to_sparse_bsc((2, 1)),
    x.to_sparse_bsr(1),
):
    print(made, made.layout, made.values().shape, made.to_dense(), made.is_sparse, made._nnz())
print(torch.sparse_coo_tensor([[0, 1, 1]], torch.ones(3, 2, dtype=torch.float64), (3, 2)))
print(torch.sparse_coo_tensor(size=(2, 3)), torch.zeros(2, 3).to_sparse_csr())
print(torch.eye(50).to_sparse())
print(torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]), [s], {"a": s.coalesce()})
parts = [0, 1, 2], [0, 1], [1.0, 2.0]
print(torch.sparse_compressed_tensor(*parts, (2, 2), layout=torch.sparse_csc))
print(torch.sparse_bsr_tensor([0, 1, 2], [0, 1], torch.ones(2, 1, 2), (2, 4)).to_dense())

# What they are.
print(isinstance(s, torch.Tensor), torch.is_tensor(s), s.layout, s.is_sparse, s.is_sparse_csr)
print(s.shape, s.size(), s.size(0), s.dim(), s.ndim, s.numel(), s.nelement(), s.dtype, s.device)
print(s.sparse_dim(), s.dense_dim(), s._nnz(), s.is_coalesced(), s.coalesce().is_coalesced())
print(s.requires_grad, s.is_leaf, s.grad_fn, s.grad, s.is_floating_point(), s.is_complex(), len(s))
print(s.type(), s.stride(), s.is_contiguous(), s.element_size(), s._dimI(), s._dimV())
print(s in [s], s.data.shape, s.to_sparse() is s, s.is_same_size(x[:2, :3]))
print(x.layout, x.is_sparse, x.to_dense() is x, x.sparse_dim(), x.dense_dim())

# Arithmetic.
d = torch.arange(6.0).reshape(2, 3)
for made in (
    s + s, s - s, s * 2, 2 * s, s / 2, s // 2, -s, s * d, d * s, s * s, d + s, d - s, s.abs(), s**2,
    s.pow(2), s.sqrt(), torch.sin(s), s.neg(), torch.add(s, s, alpha=2), s.sub(s), s.mul(3),
    s.relu(), s.sign(), torch.nn.functional.relu(s), s.isnan(), s.nan_to_num(), s.float(),
    s.double(), s.sum(), s.sum(0), s.sum(0, keepdim=True), s.sum((0, 1)), torch.sum(s, 1), s.norm(),
    s.any(), torch.sparse.sum(s), torch.sparse.sum(s, 0), torch.sparse.softmax(s, 1), s.t(), s.T,
    s[0], s[1, 2], s.transpose(0, 1), s.permute(1, 0), s.unsqueeze(0), torch.cat([s, s]),
    torch.cat([s, s], 1), torch.stack([s, s]), s.index_select(0, torch.tensor([1])),
    s.select(1, 2), s @ d.t(), s @ s.t(), torch.mm(s, d.t()), torch.sparse.mm(s, d.t()),
    torch.mv(s, d[0]), s.mv(d[0]), d.t() @ s, torch.addmm(torch.ones(2, 2), s, d.t()),
    torch.sparse.addmm(torch.ones(2, 2), s, d.t()), s.sparse_mask(s.coalesce()),
    d.sparse_mask(s.coalesce()), torch.zeros_like(s), torch.empty_like(s), s.new_zeros(2, 3),
    s.clone(), s.detach(), s.to_dense(), list(s), s.coalesce().indices(), s.is_same_size(s),
    s.half(), s.long(), torch.abs(s), torch.neg(s), torch.zeros_like(s, layout=torch.strided),
    torch.smm(s, d.t()), torch.hspmm(s, d.t()).to_dense(), s.add(s), s.matmul(d.t()), s.mm(d.t()),
):  # fmt: skip
    if isinstance(made, torch.Tensor) and made.is_sparse:
        made = made.coalesce()
    print(made)

# In place.
t = s.clone()
for name, *args in (("mul_", 2), ("div_", 4), ("add_", s), ("sub_", s), ("neg_",), ("zero_",),
                    ("copy_", s), ("resize_as_", s), ("sparse_resize_", (3, 4), 2, 0),
                    ("sparse_resize_and_clear_", (3, 4), 2, 0)):  # fmt: skip
    print(name, getattr(t, name)(*args).coalesce(), t.shape)
t = s.clone()
t += s
t *= 3
print(t.coalesce(), d.clone().add_(s), d.clone().add_(s, alpha=2), d.clone().sub_(s))
print(d.clone().mul_(s).to_dense())
small = s.coalesce().to(torch.uint8)
print(small.mul_(s.coalesce().to(torch.int16)).to_dense())
t = s.coalesce().clone()
t._values().fill_(7)
print(t, t.sin_())

# What is not there.
for function in (
    lambda: s.exp(), lambda: s.view(3, 2), lambda: s.numpy(), lambda: s == s, lambda: s.indices(),
    lambda: s.values(), lambda: s / d, lambda: x.indices(), lambda: x.values(),
    lambda: x.coalesce(), lambda: x.is_coalesced(), lambda: x.crow_indices(),
    lambda: s.crow_indices(), lambda: s.cumsum(0), lambda: s.max(), lambda: s.mean(),
    lambda: torch.ones_like(s), lambda: s + 1, lambda: s.fill_(1), lambda: bool(s),
    lambda: s.item(), lambda: s @ s, lambda: s > 0, lambda: s.sort(), lambda: torch.equal(s, s),
    lambda: s.data_ptr(), lambda: s.dot(s), lambda: s.std(),
):  # fmt: skip
    print(tells(function))

# Kept: copies, pickles, files, modules.
for made in (s, s.coalesce(), x.to_sparse_csr(), x.to_sparse_bsr((2, 2)), x.to_sparse_csc()):
    file = io.BytesIO()
    torch.save({"a": made, "b": [made]}, file)
    file.seek(0)
    print(torch.load(file)["a"], pickle.loads(pickle.dumps(made)), made.clone())
    if made.is_sparse:
        print(copy.deepcopy(made), copy.copy(made))


class Graph(nn.Module):
    def __init__(self, adjacency):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.weight = nn.Parameter(torch.ones(4, 2))

    def forward(self, features):
        return torch.sparse.mm(self.adjacency, features @ self.weight)


net = Graph(x.to_sparse())
print(net.state_dict().keys(), net(x).detach())
net(x).sum().backward()
print(net.weight.grad)
print(net.double().adjacency, net.to("cpu").adjacency.dtype)
again = Graph(torch.zeros(4, 4).to_sparse())
again.load_state_dict(net.state_dict())
print(again.adjacency.coalesce())

# Gradients.
w = x.to_sparse().requires_grad_()
y = torch.ones(4, 2, requires_grad=True)
torch.sparse.mm(w, y).pow(2).sum().backward()
print(w.grad, y.grad)
z = x.clone().requires_grad_()
(z.to_sparse() * 3).to_dense().pow(2).sum().backward()
print(z.grad)
v = torch.tensor([1.0, 2, 3], requires_grad=True)
torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], v, (2, 3)).to_dense().pow(2).sum().backward()
print(v.grad)
p = nn.Parameter(x.to_sparse())
print(isinstance(p, nn.Parameter), p.requires_grad, p.is_sparse, p)
net = nn.Module()
net.weight, net.rows = p, nn.Parameter(x.to_sparse_csr(), requires_grad=False)
print(list(net.state_dict()), [(name, q.layout) for name, q in net.named_parameters()])
optimizer = torch.optim.SGD([p], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    torch.sparse.mm(net.weight, y).pow(2).sum().backward()
    optimizer.step()
print(net.weight.detach().coalesce(), net.weight.grad.coalesce(), p is net.weight)

# Older names.
i, v = torch.LongTensor([[0, 1, 1], [2, 0, 2]]), torch.FloatTensor([3, 4, 5])
print(torch.sparse.FloatTensor(i, v, torch.Size([2, 3])).to_dense(), torch.sparse.FloatTensor(2, 3))
print(torch.sparse.DoubleTensor(i, v.double(), torch.Size([2, 3])).coalesce(), torch.spmm(s, d.t()))
print(isinstance(s, torch.sparse.FloatTensor), isinstance(x, torch.sparse.FloatTensor))


class Special(torch.autograd.Function):
    """A product whose gradient for the values is taken at their places."""

    @staticmethod
    def forward(ctx, indices, values, shape, b):
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            dense = grad_output.matmul(b.t())
            edges = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            grad_values = dense.view(-1)[edges]
        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


values, b = torch.tensor([1.0, 2, 3], requires_grad=True), torch.ones(3, 2, requires_grad=True)
Special.apply(torch.tensor([[0, 1, 2], [2, 0, 1]]), values, torch.Size([3, 3]), b).pow(
    2
).sum().backward()
print(values.grad, b.grad)

# Embeddings.
net = nn.Embedding(5, 2, sparse=True)
optimizer = torch.optim.SparseAdam(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(torch.tensor([1, 3, 1])).pow(2).sum()
    loss.backward()
    optimizer.step()
print(net.weight.grad.coalesce(), net.weight, optimizer.state_dict()["state"])
